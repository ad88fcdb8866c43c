"""The types in which operations compute and sums accumulate, and conversion between element types.

Narrow floats are converted to the bit as ml_dtypes and NumPy convert them, but faster.

- float → integer truncates towards zero, saturates at the limits of the type, and makes NaN 0;
- integer → integer keeps the low bits; anything → pred asks whether it is not zero (NaN is not);
- to a narrower float rounds to nearest even, once, except that f64 becomes f16 and bf16 through f32, and an
  integer any narrow type, rounding twice (f64 1 + 2^-11 + 2^-40 is 1.0 in f16; XLA's evaluator rounds once);
- f4 and f6 have neither NaN nor infinity: NaN becomes -0, anything too large the largest number;
- complex → real drops the imaginary part; real → complex adds a zero one.

XLA: operation_semantics.md#convertelementtype; measured with jaxlib 0.10.2 on CPU, which departs from these
rules in two places: it flushes denormal f32 and f64 operands and results to zero, and takes ±6 of type
f4e2m1fn for infinity on the way to an integer type. It compiles no program with f6, which is measured where
constants are folded: there it rounds as here, and NaN and infinity become 0.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from hlotool.backends.numpy.integers import carrier, every, is_sub_byte, once, wrap
from hlotool.ir.arrays import Array, dtype_of, integer_limits
from hlotool.ir.types import ElementType

Conversion: TypeAlias = Callable[[Array], Array]


def compute_dtype(element_type: ElementType) -> np.dtype[Any]:
    """The dtype in which arithmetic on `element_type` is done."""
    return F32 if element_type.is_narrow_float else dtype_of(element_type)


def widen(value: Array, element_type: ElementType) -> Array:
    """`value` in the compute type of `element_type`."""
    return to_f32(value) if element_type.is_narrow_float else value


def narrow(value: Array, element_type: ElementType) -> Array:
    """`value`, computed in the compute type, rounded to `element_type`.

    f4 and f6 have no NaN: -0 takes its place, as on XLA's CPU.
    """
    return narrower(element_type)(value)


@cache
def narrower(element_type: ElementType) -> Conversion:
    """`narrow` to that type."""
    if not element_type.is_narrow_float:
        return _identity
    dtype = dtype_of(element_type)
    if element_type.is_always_finite:
        return lambda value: from_f32(np.where(np.isnan(value), F32.type(-0.0), value), dtype)
    return lambda value: from_f32(value, dtype)


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
    return np.broadcast_to(_dense_to_f32(once(values)), values.shape)


def _dense_to_f32(values: Array) -> Array:
    dtype = values.dtype
    if values.size < _SMALL or dtype.itemsize > 2 or dtype == _BF16:
        return values.astype(F32)
    wide: Array = np.take(every_value(dtype), values.view(_PATTERNS[dtype.itemsize]), mode="wrap")
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
def every_value(dtype: np.dtype[Any]) -> Array:
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


_F32 = np.dtype(np.float32)


@cache
def converter(source: ElementType, target: ElementType) -> Conversion:
    """The function that converts arrays or scalars of `source` to `target`."""
    if source is target:
        return _identity
    if source.is_complex and not target.is_complex:
        from_part = converter(source.real_part, target)
        return lambda x: from_part(x.real)
    if target is ElementType.PRED:
        return _to_pred(source)
    if target.is_integer:
        return (
            _float_to_integer(source, target) if source.is_floating else _integer_to_integer(source, target)
        )
    if target.is_complex:
        return _to_complex(source, target)
    return _float_to_float(source, target) if source.is_floating else _integer_to_float(source, target)


def _identity(x: Array) -> Array:
    return x


def _to_pred(source: ElementType) -> Conversion:
    widened = _widener(source)
    return lambda x: np.not_equal(widened(x), 0)


def _widener(source: ElementType) -> Conversion:
    """The conversion to a dtype of NumPy's own with all values of a real type: narrow floats become f32."""
    if source.is_narrow_float:
        return lambda x: widen(x, source)
    if is_sub_byte(source):
        dtype = carrier(source)
        return lambda x: x.astype(dtype)
    return _identity


def _integer_to_integer(source: ElementType, target: ElementType) -> Conversion:
    widened, dtype = _widener(source), carrier(target)
    if is_sub_byte(target):
        return lambda x: wrap(widened(x).astype(dtype), target)
    return lambda x: widened(x).astype(dtype)


def _float_to_integer(source: ElementType, target: ElementType) -> Conversion:
    widened, dtype = _widener(source), carrier(target)
    low, high = integer_limits(target)
    below, above = float(low - 1), float(high + 1)
    final = dtype_of(target)

    def convert(x: Array) -> Array:
        wide = widened(x)
        inside = (wide > below) & (wide < above)
        if every(inside):
            return wide.astype(dtype).astype(final, copy=False)
        limit = np.where(wide < 0, dtype.type(low), dtype.type(high))
        outside = np.where(np.isnan(wide), dtype.type(0), limit)
        return np.where(inside, wide.astype(dtype), outside).astype(final, copy=False)

    return convert


def _integer_to_float(source: ElementType, target: ElementType) -> Conversion:
    widened, computed = _widener(source), compute_dtype(target)
    return lambda x: narrow(widened(x).astype(computed), target)


def _to_complex(source: ElementType, target: ElementType) -> Conversion:
    final = dtype_of(target)
    if source.is_complex:
        return lambda x: x.astype(final)
    to_part = converter(source, target.real_part)
    return lambda x: to_part(x).astype(final)


def _float_to_float(source: ElementType, target: ElementType) -> Conversion:
    if not target.is_narrow_float:
        final = dtype_of(target)
        return lambda x: widen(x, source).astype(final, copy=False)
    to_f32 = _to_f32(source, rounded_once=target not in _THROUGH_F32)
    return lambda x: narrow(to_f32(x), target)


#: Types that XLA's CPU code generator reaches through f32.
_THROUGH_F32 = (ElementType.F16, ElementType.BF16)


def _to_f32(source: ElementType, rounded_once: bool) -> Conversion:
    """The conversion to f32; if `rounded_once`, rounding its results again is as rounding `source` itself."""
    if source is ElementType.F64 and rounded_once:
        return _round_to_odd
    return lambda x: widen(x, source).astype(_F32, copy=False)


def _round_to_odd(x: Array) -> Array:
    """f64 as the f32 that rounds to any narrower type as `x` itself does.

    Inexact results get an odd last bit, so that no second rounding takes them for a tie.
    """
    rounded = x.astype(_F32)
    exact = rounded.astype(np.float64) == x
    bits = rounded.view(np.int32)
    away = np.abs(rounded.astype(np.float64)) > np.abs(x)
    odd = np.bitwise_or(bits - away.astype(np.int32), 1)
    keep = exact | ~np.isfinite(x)
    return np.where(keep, bits, odd).astype(np.int32).view(_F32)
