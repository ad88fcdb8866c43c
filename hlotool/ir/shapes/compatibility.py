"""When two shapes count as the same. XLA: Shape::Equal, ShapeUtil::Compatible, primitive_util.h."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from hlotool.ir.dtypes import dtype_of
from hlotool.ir.types import (
    UNBOUNDED,
    ArrayShape,
    BufferShape,
    ElementType,
    Shape,
    TupleShape,
)


def same_type(a: ElementType, b: ElementType, mixed_precision: bool = False) -> bool:
    """Equal, or with `mixed_precision` both floating point of any width."""
    return a is b or (mixed_precision and a.is_floating and b.is_floating)


def same_sizes(a: int, b: int) -> bool:
    """Equal, or one is unbounded."""
    return a == b or UNBOUNDED in (a, b)


def same_dimensions(a: ArrayShape, b: ArrayShape) -> bool:
    """Equal rank and sizes; dynamic flags do not matter, and an unbounded size fits any."""
    return a.dims == b.dims or (a.rank == b.rank and all(map(same_sizes, a.dims, b.dims)))


def compatible(a: Shape, b: Shape, mixed_precision: bool = False, any_type: bool = False) -> bool:
    """Whether a value of shape `a` may stand where `b` is expected: layouts and dynamic flags do not matter.

    Args:
        a: one shape.
        b: the other one.
        mixed_precision: floating-point types of different widths count as equal.
        any_type: element types do not matter at all.
    """
    if a is b:
        return True
    match a, b:
        case ArrayShape(), ArrayShape():
            typed = any_type or same_type(a.element_type, b.element_type, mixed_precision)
            return typed and same_dimensions(a, b)
        case TupleShape(), TupleShape():
            return len(a.elements) == len(b.elements) and all(
                compatible(x, y, mixed_precision, any_type) for x, y in zip(a.elements, b.elements)
            )
        case BufferShape(), BufferShape():
            return compatible(a.array, b.array, mixed_precision, any_type)
        case _:
            return type(a) is type(b) and not isinstance(a, (ArrayShape, TupleShape, BufferShape))


def higher_precision(a: ElementType, b: ElementType) -> ElementType:
    """The type that holds more of the two, range before digits; `a` when they are the same."""
    return b if _precision(b) > _precision(a) else a


def _precision(element_type: ElementType) -> tuple[bool, int, int, int, bool]:
    part = element_type.real_part
    exponent, digits = -1, -1
    if part.is_floating:
        info = (np.finfo if part.bits >= 32 else ml_dtypes.finfo)(dtype_of(part))
        exponent, digits = int(info.maxexp), int(info.nmant)
    return element_type.is_complex, exponent, digits, part.bits, part.is_signed
