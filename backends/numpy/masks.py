"""Masks: whether some or all elements hold, and choosing by them; quick for scalars, as loops have them."""

from __future__ import annotations

import numpy as np

from hlotool.ir.dtypes import Array


def some(mask: Array) -> bool:
    """Whether one element is true."""
    return bool(mask.any()) if mask.ndim else bool(mask)


def every(mask: Array) -> bool:
    """Whether no element is false."""
    return bool(mask.all()) if mask.ndim else bool(mask)


def choose(mask: Array, a: Array, b: Array) -> Array:
    """`a` where `mask` holds, `b` elsewhere; a scalar mask chooses one of them whole.

    `np.where` branches per element: on irregular masks it is eight times slower than mixing the bits, which
    arrays of unequal types do not have in common.
    """
    if mask.ndim == 0:
        return a if mask else b
    has_bits = a.dtype == b.dtype and b.dtype.itemsize <= 8
    dtype = np.dtype(f"i{b.dtype.itemsize}") if has_bits else None
    if dtype is None or mask.size < _SMALL or np.broadcast_shapes(a.shape, b.shape, mask.shape) != mask.shape:
        return np.where(mask, a, b)
    bits = np.negative(mask.view(np.int8)).astype(dtype)
    other = b.view(dtype)
    bits &= np.bitwise_xor(a.view(dtype), other)
    bits ^= other
    return bits.view(b.dtype)


#: Below this many elements `np.where` is quicker.
_SMALL = 2048
