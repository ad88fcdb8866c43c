"""Reductions over the wrong elements, or from the wrong start."""

from __future__ import annotations

from dataclasses import replace

from hlotool.faults.attrs import ints, window
from hlotool.faults.edit import Edit
from hlotool.faults.fits import FLOATS, INTEGERS, array_of, both, equal_dimensions, is_opcode
from hlotool.faults.kind import FaultKind, Place
from hlotool.faults.values import part
from hlotool.ir.attributes import Window, WindowDim
from hlotool.ir.module import Instruction


def _missing(edit: Edit, target: Instruction) -> None:
    """The last slice of one reduced dimension, of every operand."""
    dimension = edit.choose(_reducible(target))
    count = len(target.operands) // 2
    size = array_of(target.operands[0]).dims[dimension]
    for number, operand in enumerate(target.operands[:count]):
        edit.set_operand(number, part(edit, operand, dimension, 0, size - 1))


def _twice(edit: Edit, target: Instruction) -> None:
    dimension = edit.choose(_reducible(target))
    count = len(target.operands) // 2
    for number, operand in enumerate(target.operands[:count]):
        first = part(edit, operand, dimension, 0, 1)
        edit.set_operand(number, edit.op("concatenate", operand, first, dimensions=(dimension,)))


def _reducible(target: Instruction) -> list[int]:
    """Reduced dimensions of at least two elements."""
    sizes = array_of(target.operands[0]).dims
    return [d for d in ints(target, "dimensions") if sizes[d] > 1]


def _init(edit: Edit, target: Instruction) -> None:
    """One more than it should be, or the zero of a sum where a maximum needs minus infinity."""
    number = len(target.operands) // 2
    old = target.operands[number]
    shape = array_of(old)
    if _is_extreme(old):
        edit.set_operand(number, edit.constant(0, shape))
    else:
        edit.set_operand(number, edit.op("add", old, edit.constant(1, shape), shape=shape))


def _is_extreme(value: Instruction) -> bool:
    """An infinity or the last number of a type: adding one does nothing."""
    if value.literal is None:
        return False
    return abs(float(value.literal.array)) > 1e9


def _has_number_init(place: Place) -> bool:
    init = place.instruction.operands[len(place.instruction.operands) // 2]
    return array_of(init).element_type in FLOATS | INTEGERS


def _dimension(edit: Edit, target: Instruction) -> None:
    edit.set_attributes(dimensions=edit.choose(_other_dimensions(target)))


def _other_dimensions(target: Instruction) -> list[tuple[int, ...]]:
    reduced = ints(target, "dimensions")
    pairs = equal_dimensions(array_of(target.operands[0]).dims)
    swaps = [(i, j) if i in reduced else (j, i) for i, j in pairs if (i in reduced) != (j in reduced)]
    return [tuple(sorted({*reduced, new} - {old})) for old, new in swaps]


def _window(edit: Edit, target: Instruction) -> None:
    """The window begins one element earlier or later."""
    dims = list(window(target).dims)
    dimension = edit.choose(_wide(dims))
    one = dims[dimension]
    step = 1 if one.pad_high > 0 else -1
    dims[dimension] = replace(one, pad_low=one.pad_low + step, pad_high=one.pad_high - step)
    edit.set_attributes(window=Window(tuple(dims)))


def _wide(dims: list[WindowDim]) -> list[int]:
    """Dimensions whose window can move by one; padding stays positive, as XLA wants it in gradients."""
    return [d for d, one in enumerate(dims) if one.pad_high > 0 or one.pad_low > 0]


def _has_wide_window(place: Place) -> bool:
    return bool(_wide(list(window(place.instruction).dims)))


def _combiner(edit: Edit, target: Instruction) -> None:
    """The reducer forgets what it has, or what comes."""
    edit.set_root(edit.choose(target.operands))


def _in_reducer(place: Place) -> bool:
    root = place.computation.root is place.instruction
    return root and bool(place.callers & {"reduce", "reduce-window"}) and len(place.instruction.operands) == 2


_REDUCE = is_opcode("reduce")

KINDS = (
    FaultKind(
        "missing element of a reduction",
        "a loop that ends one step early",
        lambda p: _REDUCE(p) and bool(_reducible(p.instruction)),
        _missing,
    ),
    FaultKind(
        "element reduced twice",
        "two tiles of a reduction that overlap",
        lambda p: _REDUCE(p) and bool(_reducible(p.instruction)),
        _twice,
    ),
    FaultKind(
        "wrong init value",
        "an accumulator that is not initialised",
        both(is_opcode("reduce", "reduce-window"), _has_number_init),
        _init,
    ),
    FaultKind(
        "reduced along the wrong dimension",
        "a dimension number not adapted after a transpose",
        lambda p: _REDUCE(p) and bool(_other_dimensions(p.instruction)),
        _dimension,
    ),
    FaultKind(
        "window off by one",
        "low and high padding of a window mixed up",
        both(is_opcode("reduce-window"), _has_wide_window),
        _window,
    ),
    FaultKind(
        "reducer loses a side",
        "a reducer replaced by one of its parameters",
        both(is_opcode("add", "multiply", "maximum", "minimum"), _in_reducer),
        _combiner,
    ),
)
