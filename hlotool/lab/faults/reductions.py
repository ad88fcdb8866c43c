"""Wrong reductions, contractions and sorts."""

from __future__ import annotations

from msgspec.structs import replace

from hlotool.ir.attributes import Window, WindowDim
from hlotool.ir.module import Instruction
from hlotool.lab.faults.edit import Edit, FaultKind, Place
from hlotool.lab.faults.parts import (
    FLOATS,
    INTEGERS,
    array_of,
    both,
    equal_dimensions,
    ints,
    is_opcode,
    part,
    window,
)


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

REDUCTIONS = (
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


def _contracting(edit: Edit, target: Instruction) -> None:
    """Transposes a square operand on the way into the dot."""
    side, (i, j) = edit.choose(_square(target))
    operand = target.operands[side]
    permutation = list(range(array_of(operand).rank))
    permutation[i], permutation[j] = j, i
    edit.set_operand(side, edit.op("transpose", operand, shape=operand.shape, dimensions=tuple(permutation)))


def _square(target: Instruction) -> list[tuple[int, tuple[int, int]]]:
    """Operands with a contracting dimension as large as another one: (operand, dimensions)."""
    found = []
    for side, name in enumerate(("lhs_contracting_dims", "rhs_contracting_dims")):
        contracted = ints(target, name)
        for pair in equal_dimensions(array_of(target.operands[side]).dims):
            if (pair[0] in contracted) != (pair[1] in contracted):
                found.append((side, pair))
    return found


def _short(edit: Edit, target: Instruction) -> None:
    """The last step along one contracted dimension is left out."""
    lhs, rhs = ints(target, "lhs_contracting_dims"), ints(target, "rhs_contracting_dims")
    position = int(edit.rng.integers(len(lhs)))
    for number, dimension in enumerate((lhs[position], rhs[position])):
        operand = target.operands[number]
        size = array_of(operand).dims[dimension]
        edit.set_operand(number, part(edit, operand, dimension, 0, size - 1))


def _contracts(place: Place) -> bool:
    dims = ints(place.instruction, "lhs_contracting_dims")
    sizes = array_of(place.instruction.operands[0]).dims
    return bool(dims) and all(sizes[d] > 1 for d in dims)


def _padding(edit: Edit, target: Instruction) -> None:
    old = window(target)
    dimension = edit.choose(_padded(old))
    one = old.dims[dimension]
    step = 1 if one.pad_high > 0 else -1
    _set(edit, old, dimension, replace(one, pad_low=one.pad_low + step, pad_high=one.pad_high - step))


def _padded(old: Window) -> list[int]:
    return [d for d, one in enumerate(old.dims) if max(one.pad_high, one.pad_low) > 0]


def _reversal(edit: Edit, target: Instruction) -> None:
    old = window(target)
    dimension = edit.choose(_sized(old))
    one = old.dims[dimension]
    _set(edit, old, dimension, replace(one, reversal=not one.reversal))


def _sized(old: Window) -> list[int]:
    return [d for d, one in enumerate(old.dims) if one.size > 1]


def _set(edit: Edit, old: Window, dimension: int, new: WindowDim) -> None:
    dims = list(old.dims)
    dims[dimension] = new
    edit.set_attributes(window=Window(tuple(dims)))


_CONVOLUTION = is_opcode("convolution")

CONTRACTIONS = (
    FaultKind(
        "contracted along the wrong dimension",
        "a transpose folded into a dot that is none",
        lambda p: is_opcode("dot")(p) and bool(_square(p.instruction)),
        _contracting,
    ),
    FaultKind(
        "last contraction step missing",
        "a tiled dot without its remainder",
        both(is_opcode("dot"), _contracts),
        _short,
    ),
    FaultKind(
        "wrong convolution padding",
        "low and high padding mixed up",
        lambda p: _CONVOLUTION(p) and bool(_padded(window(p.instruction))),
        _padding,
    ),
    FaultKind(
        "kernel reversed",
        "a correlation taken for a convolution",
        lambda p: _CONVOLUTION(p) and bool(_sized(window(p.instruction))),
        _reversal,
    ),
)


def _descending(edit: Edit, target: Instruction) -> None:
    """The result of every operand is read from the other end."""
    edit.after()
    (dimension,) = ints(target, "dimensions")
    if len(target.operands) == 1:
        edit.replace(edit.op("reverse", target, shape=target.shape, dimensions=(dimension,)))
        return
    parts = [
        edit.op("get-tuple-element", target, shape=o.shape, index=n) for n, o in enumerate(target.operands)
    ]
    turned = [edit.op("reverse", p, shape=p.shape, dimensions=(dimension,)) for p in parts]
    edit.replace(edit.op("tuple", *turned, shape=target.shape))


def _payload(edit: Edit, target: Instruction) -> None:
    """One of the operands that follow the keys stays as it was."""
    edit.after()
    parts = [
        edit.op("get-tuple-element", target, shape=o.shape, index=n) for n, o in enumerate(target.operands)
    ]
    stale = edit.choose(range(1, len(parts)))
    parts[stale] = target.operands[stale]
    edit.replace(edit.op("tuple", *parts, shape=target.shape))


def _has_payload(place: Place) -> bool:
    return len(place.instruction.operands) > 1


def _sorts_something(place: Place) -> bool:
    (dimension,) = ints(place.instruction, "dimensions")
    return array_of(place.instruction.operands[0]).dims[dimension] > 1


SORTING = (
    FaultKind(
        "sorted the other way",
        "a comparator negated",
        both(is_opcode("sort"), _sorts_something),
        _descending,
        "reversed",
    ),
    FaultKind(
        "payload not sorted",
        "keys sorted, and one of the values that go with them not",
        both(is_opcode("sort"), _sorts_something, _has_payload),
        _payload,
    ),
)
