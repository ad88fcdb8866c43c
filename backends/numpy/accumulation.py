"""The types in which long sums and products are accumulated, and the one rounding at their end.

XLA leaves the order of a reduction open, so no two backends agree to the last bit. The reference is at least
as accurate as any of them: sums of f16, bf16, f8 and f32 accumulate in f64 and those of c64 in c128, then
round once; f64 sums use NumPy's pairwise order. XLA's evaluator also sums f32 in double precision
(hlo_evaluator.cc, fast path of reduce); its CPU code sums in f32, narrow types with a rounding at every step.
Integers wrap in their own type, which is exact in any order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hlotool.backends.numpy.integers import carrier, is_sub_byte, wrap
from hlotool.backends.numpy.precision import compute_dtype, narrow, widen
from hlotool.ir.dtypes import Array
from hlotool.ir.types import ElementType

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
