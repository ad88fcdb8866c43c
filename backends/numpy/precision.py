"""The type in which an operation computes, and the rounding back to the declared type.

XLA computes f16, bf16, f8 and f4 in f32 and rounds once per operation. Every float result of the backend
passes `narrow`: one place for every rounding policy.

XLA: hlo_evaluator_typed_visitor.h (ElementwiseT).
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from hlotool.backends.numpy.narrow_floats import F32, from_f32, to_f32
from hlotool.ir.dtypes import Array, dtype_of
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
