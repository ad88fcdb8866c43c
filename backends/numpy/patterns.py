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
    if source.bits < 8 and source.bits == target.bits:
        return _from_low_bits(_low_bits(array, source).ravel(), target)
    raw = _to_bytes(array, source)
    return _from_bytes(raw, target)


def _to_bytes(array: Array, source: ElementType) -> Array:
    if source.bits >= 8:
        return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    groups = _low_bits(array, source).reshape(-1, 8 // source.bits)
    joined: Array = np.bitwise_or.reduce(np.left_shift(groups, _shifts(source)), axis=1)
    return joined


def _from_bytes(raw: Array, target: ElementType) -> Array:
    if target is ElementType.PRED:
        return np.not_equal(raw, 0)
    if target.bits >= 8:
        return raw.view(dtype_of(target))
    low = np.bitwise_and(np.right_shift(raw[:, None], _shifts(target)), (1 << target.bits) - 1)
    return _from_low_bits(low.reshape(-1), target)


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


def _shifts(element_type: ElementType) -> Array:
    """Where the elements of a byte lie in it."""
    return np.arange(0, 8, element_type.bits, dtype=np.uint8)
