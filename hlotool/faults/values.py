"""Wrong forms of a value that several kinds of fault need."""

from __future__ import annotations

from hlotool.faults.edit import Edit
from hlotool.faults.fits import array_of
from hlotool.ir.attributes import SliceDim
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape


def scaled(edit: Edit, value: Instruction, factor: float) -> Instruction:
    """The value times a factor; an integer plus one."""
    shape = array_of(value)
    if shape.element_type.is_integer:
        return edit.op("add", value, edit.filled(1, shape), shape=shape)
    return edit.op("multiply", value, edit.filled(factor, shape), shape=shape)


def part(edit: Edit, value: Instruction, dimension: int, start: int, limit: int) -> Instruction:
    """`value[..., start:limit, ...]`."""
    dims = array_of(value).dims
    ranges = tuple(
        SliceDim(start, limit) if d == dimension else SliceDim(0, size) for d, size in enumerate(dims)
    )
    return edit.op("slice", value, slice=ranges)


def joined(edit: Edit, parts: tuple[Instruction, ...], dimension: int, shape: ArrayShape) -> Instruction:
    """The parts one after the other, empty ones left out; together of `shape`."""
    filled = tuple(p for p in parts if array_of(p).dims[dimension])
    return edit.op("concatenate", *filled, shape=shape, dimensions=(dimension,))


def shifted_by(edit: Edit, value: Instruction, dimension: int, steps: int) -> Instruction:
    """The value rotated: element i is what element i - steps was."""
    shape = array_of(value)
    size = shape.dims[dimension]
    tail = part(edit, value, dimension, size - steps, size)
    return joined(edit, (tail, part(edit, value, dimension, 0, size - steps)), dimension, shape)
