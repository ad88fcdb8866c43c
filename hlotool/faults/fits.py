"""Conditions on a place, to be put together for each kind of fault."""

from __future__ import annotations

from hlotool.faults.kind import Fits, Place
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, ElementType

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
