"""The types in which operations compute and sums accumulate, and the one rounding back to the declared
type.

Narrow floats are converted to the bit as ml_dtypes and NumPy convert them, but faster.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

from hlotool.backends.numpy.integers import carrier, is_sub_byte, wrap
from hlotool.ir.arrays import Array, dtype_of
from hlotool.ir.types import ElementType


def compute_dtype(element_type: ElementType) -> np.dtype[Any]:
    """The dtype in which arithmetic on `element_type` is done."""
    return F32 if element_type.is_narrow_float else dtype_of(element_type)


def widen(value: Array, element_type: ElementType) -> Array:
    """`value` in the compute type of `element_type`."""
    return to_f32(value) if element_type.is_narrow_float else value


def narrow(value: Array, element_type: ElementType) -> Array:
    """`value`, computed in the compute type, rounded to `element_type`.

    f4e2m1fn has no NaN: -0 takes its place, as on XLA's CPU.
    """
    if not element_type.is_narrow_float:
        return value
    if element_type is ElementType.F4E2M1FN:
        value = np.where(np.isnan(value), F32.type(-0.0), value)
    return from_f32(value, dtype_of(element_type))


def limited(value: Array, element_type: ElementType) -> Array:
    """`value`, not rounded; where it is too large the largest finite number of `element_type`.

    Libraries saturate so before they write f8.
    """
    limit = largest_finite(element_type)
    return np.clip(value, -limit, limit)


def largest_finite(element_type: ElementType) -> float:
    """The largest finite number of a float type."""
    return float(ml_dtypes.finfo(dtype_of(element_type)).max)  # type: ignore[no-untyped-call]


# Conversion between f32 and the narrower float types, to the bit as ml_dtypes and NumPy convert, but faster.
#
# bf16 and f16 results are left to them. The 8-bit types are looked up in tables: their values as f32, and
# for the way back the result for every f32 whose lower 16 bits are zero. Between two neighbours of those
# lies no value, and no tie, of a type with so few digits; so any f32 may stand for all that share its upper
# 16 bits, as long as it is told from the one whose lower bits are zero.

F32 = np.dtype(np.float32)

#: Smaller arrays are converted faster without tables.
_SMALL = 1024

_PATTERNS: dict[int, np.dtype[Any]] = {1: np.dtype(np.uint8), 2: np.dtype(np.uint16)}

_BF16 = np.dtype(ml_dtypes.bfloat16)


def to_f32(values: Array) -> Array:
    """Floats of any type as f32; elements repeated without taking memory are so in the result, too."""
    if not values.ndim or 0 not in values.strides:
        return _dense_to_f32(values)
    once = values[tuple(slice(1) if stride == 0 else slice(None) for stride in values.strides)]
    return np.broadcast_to(_dense_to_f32(once), values.shape)


def _dense_to_f32(values: Array) -> Array:
    dtype = values.dtype
    if values.size < _SMALL or dtype.itemsize > 2 or dtype == _BF16:
        return values.astype(F32)
    wide: Array = np.take(_values(dtype), values.view(_PATTERNS[dtype.itemsize]), mode="wrap")
    return wide


def from_f32(values: Array, dtype: np.dtype[Any]) -> Array:
    """f32 (or f64) rounded to nearest even in a narrower type."""
    if values.size < _SMALL or dtype.itemsize > 1 or values.dtype != F32:
        return values.astype(dtype)
    bits = values.view(np.uint32)
    inexact = np.minimum(np.bitwise_and(bits, 0xFFFF), 1)
    upper = np.right_shift(bits, 16)
    upper |= inexact
    return np.take(_roundings(dtype), upper, mode="wrap").view(dtype)


@cache
def _values(dtype: np.dtype[Any]) -> Array:
    """Every value of a type, by its bits, as f32."""
    patterns: Array = np.arange(1 << (8 * dtype.itemsize)).astype(_PATTERNS[dtype.itemsize])
    return patterns.view(dtype).astype(F32)


@cache
def _roundings(dtype: np.dtype[Any]) -> Array:
    """Bits of the rounded value of every f32 with zeros below, by its upper 16 bits."""
    exact = np.left_shift(np.arange(1 << 16, dtype=np.uint32), 16).view(F32)
    with np.errstate(all="ignore"):
        return exact.astype(dtype).view(np.uint8)


_WIDER = {np.dtype(np.float32): np.dtype(np.float64), np.dtype(np.complex64): np.dtype(np.complex128)}


def native(value: Array, element_type: ElementType) -> Array:
    """`value` in a dtype that NumPy's ufuncs know: narrow floats in f32, sub-byte integers in 8 bits."""
    if is_sub_byte(element_type):
        return value.astype(carrier(element_type), copy=False)
    return widen(value, element_type)


def native_dtype(element_type: ElementType) -> np.dtype[Any]:
    """The dtype of `native` values."""
    return carrier(element_type) if is_sub_byte(element_type) else compute_dtype(element_type)


def sum_dtype(element_type: ElementType) -> np.dtype[Any]:
    """The dtype in which `element_type` is summed."""
    dtype = native_dtype(element_type)
    return _WIDER.get(dtype, dtype)


def finish(value: Array, element_type: ElementType) -> Array:
    """An accumulated value in its declared type: floats round once, integers wrap."""
    if is_sub_byte(element_type):
        return wrap(value, element_type)
    return narrow(value.astype(compute_dtype(element_type), copy=False), element_type)
