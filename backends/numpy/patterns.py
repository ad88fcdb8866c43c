"""Arrays as bits: reinterpretation between element types, packed as XLA packs them.

Elements lie in row-major order, bytes little-endian, several sub-byte elements in a byte, the first in the
lowest bits.
"""

from __future__ import annotations

import numpy as np

from hlotool.backends.numpy.integers import carrier, is_sub_byte, wrap
from hlotool.ir.dtypes import Array, dtype_of
from hlotool.ir.types import ElementType


def reinterpret(array: Array, source: ElementType, target: ElementType) -> Array:
    """The bits of `array`, of type `source`, as a flat array of `target`.

    Raises:
        ValueError: the bits do not make a whole number of elements.
    """
    if source.bits < 8 and target.bits < 8:
        # Not by way of bytes: the elements need not fill the last one.
        return _from_low_bits(_regrouped(_low_bits(array, source).ravel(), source.bits, target.bits), target)
    raw = _to_bytes(array, source)
    return _from_bytes(raw, target)


def _to_bytes(array: Array, source: ElementType) -> Array:
    if source.bits >= 8:
        return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return _regrouped(_low_bits(array, source).ravel(), source.bits, 8)


def _from_bytes(raw: Array, target: ElementType) -> Array:
    if target is ElementType.PRED:
        return np.not_equal(raw, 0)
    if target.bits >= 8:
        return raw.view(dtype_of(target))
    return _from_low_bits(_regrouped(raw, 8, target.bits), target)


def _regrouped(low: Array, old: int, new: int) -> Array:
    """Bytes that hold `old` bits each as bytes that hold `new` bits each, lowest bits first."""
    shifts = np.arange(0, max(old, new), min(old, new), dtype=np.uint8)
    if old < new:
        joined: Array = np.bitwise_or.reduce(np.left_shift(low.reshape(-1, len(shifts)), shifts), axis=1)
        return joined
    return np.bitwise_and(np.right_shift(low[:, None], shifts), (1 << new) - 1).reshape(-1)


def _low_bits(array: Array, source: ElementType) -> Array:
    """One byte per sub-byte element, upper bits zero."""
    if is_sub_byte(source):
        byte = array.astype(carrier(source)).view(np.uint8)
        return np.bitwise_and(byte, (1 << source.bits) - 1)
    return array.view(np.uint8)


def _from_low_bits(low: Array, target: ElementType) -> Array:
    if is_sub_byte(target):
        return wrap(low.view(carrier(target)), target)
    return low.view(dtype_of(target))
