"""Value conversion between element types, by the rules of XLA's CPU code generator.

- float → integer truncates towards zero, saturates at the limits of the type, and makes NaN 0;
- integer → integer keeps the low bits; anything → pred asks whether it is not zero (NaN is not);
- to a narrower float rounds to nearest even, once, except that f64 becomes f16 and bf16 through f32, and an
  integer any narrow type, rounding twice (f64 1 + 2^-11 + 2^-40 is 1.0 in f16; XLA's evaluator rounds once);
- f4e2m1fn has neither NaN nor infinity: NaN becomes -0, anything larger ±6;
- complex → real drops the imaginary part; real → complex adds a zero one.

XLA: operation_semantics.md#convertelementtype; measured with jaxlib 0.10.2 on CPU, which departs from these
rules in two places: it flushes denormal f32 and f64 operands and results to zero, and takes ±6 of type
f4e2m1fn for infinity on the way to an integer type.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeAlias

import numpy as np

from hlotool.backends.numpy.integers import carrier, every, is_sub_byte, wrap
from hlotool.backends.numpy.precision import compute_dtype, narrow, widen
from hlotool.ir.arrays import Array, dtype_of, integer_limits
from hlotool.ir.types import ElementType

Conversion: TypeAlias = Callable[[Array], Array]

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
