"""Index arithmetic in generated code: arrays in row-major order, expressions of type i64."""

from __future__ import annotations

from collections.abc import Sequence

#: One expression for each dimension.
Index = tuple[str, ...]


def strides(dims: Sequence[int]) -> list[int]:
    """Elements between neighbours along each dimension, row-major."""
    steps, step = [], 1
    for size in reversed(dims):
        steps.append(step)
        step *= size
    return steps[::-1]


def linear(index: Sequence[str], dims: Sequence[int]) -> str:
    """The position of an element in memory."""
    terms = [
        part if step == 1 else f"{part} * {step}ll"
        for part, size, step in zip(index, dims, strides(dims))
        if size != 1 and part != "0"
    ]
    return " + ".join(terms) or "0"


def split(position: str, dims: Sequence[int]) -> Index:
    """The index of the element at a position; `position` is a name."""
    parts = []
    for number, (size, step) in enumerate(zip(dims, strides(dims))):
        part = position if step == 1 else f"{position} / {step}ll"
        is_first = all(d == 1 for d in dims[:number])
        parts.append("0" if size == 1 else part if is_first else f"({part}) % {size}ll")
    return tuple(parts)


def shifted(part: str, offset: int) -> str:
    """`part + offset`."""
    if offset == 0:
        return part
    return f"{part} + {offset}ll" if offset > 0 else f"{part} - {-offset}ll"


def scaled(part: str, factor: int) -> str:
    """`part * factor`."""
    return part if factor == 1 else f"({part}) * {factor}ll"
