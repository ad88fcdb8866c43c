"""What kinds of fault are made of: conditions on a place, attributes, wrong forms of a value."""

from __future__ import annotations

from typing import cast

from hlotool.ir.attributes import PaddingDim, SliceDim, Window
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, ElementType
from hlotool.lab.faults.edit import Edit, Fits, Place

#: Float types that XLA computes with everywhere.
FLOATS = frozenset({ElementType.F16, ElementType.BF16, ElementType.F32, ElementType.F64})
INTEGERS = frozenset(
    {
        ElementType.S8,
        ElementType.S16,
        ElementType.S32,
        ElementType.S64,
        ElementType.U8,
        ElementType.U16,
        ElementType.U32,
        ElementType.U64,
    }
)
NUMBERS = FLOATS | INTEGERS

#: Results that no other value can stand for, or that hold nothing computed.
_PINNED = frozenset(
    {"constant", "parameter", "infeed", "bitcast", "get-tuple-element", "domain", "opt-barrier"}
)


def is_value(place: Place) -> bool:
    """A computed array of a type that XLA does arithmetic in; not half of an asynchronous pair."""
    shape, opcode = place.array, place.instruction.opcode
    if shape is None or shape.element_type not in NUMBERS or shape.size == 0:
        return False
    return opcode not in _PINNED and not opcode.endswith(("-start", "-update"))


def is_array(place: Place) -> bool:
    """A value of at least two elements."""
    return is_value(place) and place.array is not None and place.array.size > 1


def is_float(place: Place) -> bool:
    """A float value."""
    return is_value(place) and place.array is not None and place.array.element_type in FLOATS


def is_integer(place: Place) -> bool:
    """An integer value."""
    return is_value(place) and place.array is not None and place.array.element_type in INTEGERS


def is_opcode(*names: str) -> Fits:
    """One of these operations, on arrays of fixed size."""
    wanted = frozenset(names)

    def fits(place: Place) -> bool:
        return place.instruction.opcode in wanted and all(map(_is_static, place.instruction.operands))

    return fits


def both(*conditions: Fits) -> Fits:
    """All of several conditions."""
    return lambda place: all(condition(place) for condition in conditions)


def array_of(instruction: Instruction) -> ArrayShape:
    """The shape of an instruction that is known to give an array."""
    shape = instruction.shape
    if not isinstance(shape, ArrayShape):
        raise TypeError(f"{instruction.name} gives no array")
    return shape


def _is_static(instruction: Instruction) -> bool:
    return not (isinstance(instruction.shape, ArrayShape) and instruction.shape.is_dynamic)


def equal_dimensions(dims: tuple[int, ...], least: int = 2) -> list[tuple[int, int]]:
    """Pairs of dimensions of the same size."""
    return [
        (i, j) for i, n in enumerate(dims) for j in range(i + 1, len(dims)) if dims[j] == n and n >= least
    ]


def longest(dims: tuple[int, ...]) -> int:
    """The dimension of most elements."""
    return max(range(len(dims)), key=lambda d: dims[d])


def ints(instruction: Instruction, name: str) -> tuple[int, ...]:
    """A list of numbers, such as `dimensions`."""
    return cast("tuple[int, ...]", instruction.attributes.get(name, ()))


def slice_ranges(instruction: Instruction) -> tuple[SliceDim, ...]:
    """The `slice` attribute."""
    return cast("tuple[SliceDim, ...]", instruction.attributes.get("slice", ()))


def padding(instruction: Instruction) -> tuple[PaddingDim, ...]:
    """The `padding` attribute of a pad."""
    return cast("tuple[PaddingDim, ...]", instruction.attributes.get("padding", ()))


def window(instruction: Instruction) -> Window:
    """The `window` attribute."""
    value = instruction.attributes.get("window")
    return value if isinstance(value, Window) else Window(())


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
