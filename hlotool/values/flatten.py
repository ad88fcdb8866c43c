"""Runtime values as flat lists of leaves, and back.

A value is an array per array shape, a tuple per tuple shape, and anything (None when made here) per token.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from hlotool.ir.dtypes import Array
from hlotool.ir.literal import Literal
from hlotool.ir.types import Shape, ShapeIndex, TupleShape

#: An array, a tuple of values, or None for a token.
Value: TypeAlias = "Array | tuple[Value, ...] | None"


def flatten(shape: Shape, value: Any, prefix: ShapeIndex = ()) -> Iterator[tuple[ShapeIndex, Shape, Any]]:
    """All non-tuple parts of `value` with their shape indices and shapes, depth first.

    Raises:
        TypeError: the value's tuples are not those of the shape.
    """
    if not isinstance(shape, TupleShape):
        yield prefix, shape, value
        return
    if not isinstance(value, tuple | list) or len(value) != len(shape.elements):
        raise TypeError(f"expected a tuple of {len(shape.elements)} for {shape}, got {type(value).__name__}")
    for i, (part, element) in enumerate(zip(shape.elements, value)):
        yield from flatten(part, element, (*prefix, i))


def unflatten(shape: Shape, leaves: Sequence[Any]) -> Value:
    """The nested value whose leaves, depth first, are `leaves`.

    Raises:
        ValueError: too few or too many leaves.
    """
    remaining = iter(leaves)
    value: Value = _build(shape, remaining)
    if any(True for _ in remaining):
        raise ValueError(f"more than the leaves of {shape}")
    return value


def _build(shape: Shape, leaves: Iterator[Any]) -> Any:
    if isinstance(shape, TupleShape):
        return tuple(_build(element, leaves) for element in shape.elements)
    try:
        return next(leaves)
    except StopIteration:
        raise ValueError(f"a leaf for {shape} is missing") from None


def from_literal(literal: Literal) -> Value:
    """The runtime value of a literal: what a snapshot holds of an argument or a result.

    Raises:
        ValueError: part of the value is elided.
    """
    if literal.has_elided:
        raise ValueError(f"the value of {literal.shape} is elided")
    value = literal.value
    return tuple(from_literal(element) for element in value) if isinstance(value, tuple) else value
