"""A part of a value is stale, missing, or another part."""

from __future__ import annotations

from hlotool.faults.edit import Edit
from hlotool.faults.fits import array_of, both, is_array, is_value
from hlotool.faults.kind import FaultKind, Place
from hlotool.faults.values import part, shifted_by
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape


def _untouched(edit: Edit, target: Instruction) -> None:
    """The last quarter of the rows."""
    edit.after()
    shape = array_of(target)
    rows = shape.dims[0]
    limit = rows - max(1, rows // 4)
    edit.replace(edit.where(edit.is_at(shape, 0, limit, "GE"), edit.filled(0, shape), target))


def _remainder(edit: Edit, target: Instruction) -> None:
    """What is left after the last full vector of four along the innermost dimension."""
    edit.after()
    shape = array_of(target)
    limit = shape.dims[-1] // 4 * 4
    mask = edit.is_at(shape, shape.rank - 1, limit, "GE")
    edit.replace(edit.where(mask, edit.filled(0, shape), target))


def _has_remainder(place: Place) -> bool:
    return (
        place.array is not None
        and place.array.rank > 0
        and place.array.dims[-1] > 4
        and place.array.dims[-1] % 4 > 0
    )


def _row(edit: Edit, target: Instruction) -> None:
    edit.after()
    shape = array_of(target)
    row = int(edit.rng.integers(1, shape.dims[0]))
    neighbour = shifted_by(edit, target, 0, 1)
    edit.replace(edit.where(edit.is_at(shape, 0, row), neighbour, target))


def _has_rows(place: Place) -> bool:
    shape = place.array
    return shape is not None and shape.rank > 1 and shape.dims[0] > 2 and shape.size > shape.dims[0]


def _stale(edit: Edit, target: Instruction) -> None:
    edit.replace(edit.choose(_twins(target)))


def _twins(target: Instruction) -> list[Instruction]:
    """Operands whose buffer the result might have taken."""
    return [o for o in target.operands if o.shape == target.shape and not o.opcode.endswith("-start")]


def _half_stale(edit: Edit, target: Instruction) -> None:
    """The second half of the rows still holds the operand."""
    edit.after()
    shape = array_of(target)
    old = edit.choose(_twins(target))
    edit.replace(edit.where(edit.is_at(shape, 0, shape.dims[0] // 2, "GE"), old, target))


def _has_twin(place: Place) -> bool:
    return bool(_twins(place.instruction)) and place.instruction.opcode not in ("copy", "reshape")


def _has_two_rows(place: Place) -> bool:
    return place.array is not None and place.array.rank > 0 and place.array.dims[0] > 1


def _blocks(edit: Edit, target: Instruction) -> None:
    edit.after()
    shape = array_of(target)
    dimension = _even_dimension(shape)
    half = shape.dims[dimension] // 2
    first, second = part(edit, target, dimension, 0, half), part(edit, target, dimension, half, 2 * half)
    edit.replace(edit.op("concatenate", second, first, shape=shape, dimensions=(dimension,)))


def _even_dimension(shape: ArrayShape) -> int:
    return max(range(shape.rank), key=lambda d: shape.dims[d] * (shape.dims[d] % 2 == 0))


def _has_even_dimension(place: Place) -> bool:
    return place.array is not None and any(n > 1 and n % 2 == 0 for n in place.array.dims)


KINDS = (
    FaultKind(
        "untouched rows",
        "a grid of too few blocks: the last quarter of the output is never written",
        both(is_array, _has_two_rows),
        _untouched,
        "untouched region",
    ),
    FaultKind(
        "dropped remainder",
        "a vectorised loop without the loop for what is left over",
        both(is_array, _has_remainder),
        _remainder,
        "untouched region",
    ),
    FaultKind(
        "row repeats its neighbour",
        "an off-by-one row index",
        both(is_array, _has_rows),
        _row,
        "off by one row",
    ),
    FaultKind(
        "stale buffer",
        "buffer assignment lets a reader see the operand's memory before it is overwritten",
        both(is_value, _has_twin),
        _stale,
        "stale value",
    ),
    FaultKind(
        "half stale buffer",
        "a missing barrier between two halves of an in-place update",
        both(is_array, _has_twin, _has_two_rows),
        _half_stale,
        "stale value",
    ),
    FaultKind(
        "swapped blocks",
        "two tiles stored in each other's place",
        both(is_array, _has_even_dimension),
        _blocks,
        "swap",
    ),
)
