"""Dots and convolutions with the wrong dimensions."""

from __future__ import annotations

from dataclasses import replace

from hlotool.faults.attrs import ints, window
from hlotool.faults.edit import Edit
from hlotool.faults.fits import array_of, both, equal_dimensions, is_opcode
from hlotool.faults.kind import FaultKind, Place
from hlotool.faults.values import part
from hlotool.ir.attributes import Window, WindowDim
from hlotool.ir.module import Instruction


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

KINDS = (
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
