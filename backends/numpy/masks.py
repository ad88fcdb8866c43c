"""Whether some or all elements of a mask hold; quick for scalars, which loops are made of."""

from __future__ import annotations

from hlotool.ir.dtypes import Array


def some(mask: Array) -> bool:
    """Whether one element is true."""
    return bool(mask.any()) if mask.ndim else bool(mask)


def every(mask: Array) -> bool:
    """Whether no element is false."""
    return bool(mask.all()) if mask.ndim else bool(mask)
