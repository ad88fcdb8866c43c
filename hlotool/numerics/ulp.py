"""Distances between floating-point numbers, counted in representable values (units in the last place).

Every float type of XLA but f8e8m0fnu is sign and magnitude: its bits, sign cleared, order the non-negative
values. So the distance is a difference of integers: exact, monotone, and 0 between -0 and +0. f8e8m0fnu has
no sign, all its bits are magnitude.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import numpy.typing as npt

from hlotool.ir.dtypes import Array, dtype_of
from hlotool.ir.types import ElementType

#: Types narrower than the byte that holds them.
_STORAGE_BITS = {ElementType.F4E2M1FN: 4}


def ulp_distance(a: Array, b: Array, element_type: ElementType) -> npt.NDArray[np.uint64]:
    """Representable values between `a` and `b`, elementwise.

    Infinity counts as the value after the largest finite one. The distance to a NaN means nothing: mask those
    elements. Complex numbers take the larger distance of their two parts.

    Args:
        a: values of dtype `dtype_of(element_type)`.
        b: as `a`, of the same dimensions.
        element_type: a float or complex type.
    """
    if element_type.is_complex:
        part = element_type.real_part
        return np.maximum(ulp_distance(a.real, b.real, part), ulp_distance(a.imag, b.imag, part))
    magnitude_a, negative_a = _ordered(a, element_type)
    magnitude_b, negative_b = _ordered(b, element_type)
    same_side = np.maximum(magnitude_a, magnitude_b) - np.minimum(magnitude_a, magnitude_b)
    return np.where(negative_a == negative_b, same_side, magnitude_a + magnitude_b)


def _ordered(
    values: Array, element_type: ElementType
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_]]:
    """Magnitude bits and signs."""
    unsigned = np.dtype(f"u{dtype_of(element_type).itemsize}")
    bits = values.view(unsigned).astype(np.uint64)
    if element_type is ElementType.F8E8M0FNU:
        return bits, np.zeros(bits.shape, np.bool_)
    sign = np.uint64(1 << (_STORAGE_BITS.get(element_type, element_type.bits) - 1))
    return bits & (sign - np.uint64(1)), (bits & sign) != 0


@cache
def epsilon(element_type: ElementType) -> float:
    """Distance from 1 to the next larger value: one ulp at 1; of a complex type that of its parts."""
    dtype = dtype_of(element_type.real_part)
    bits = np.ones(1, dtype).view(np.dtype(f"u{dtype.itemsize}"))
    return float((bits + bits.dtype.type(1)).view(dtype)[0]) - 1.0


def digits_of(element_type: ElementType) -> int:
    """Binary digits of its numbers: 24 of f32; of a complex type those of its parts."""
    return 1 - round(math.log2(epsilon(element_type)))


@cache
def flush_threshold(element_type: ElementType) -> float:
    """Magnitude below which XLA's CPU and GPU code may flush values to zero; 0 when it never does.

    f32 and f64 code runs with denormals disabled. bf16 computes in f32 and shares its exponent range. The
    denormals of the other narrow types are normal numbers in f32.
    """
    part = element_type.real_part
    if part in (ElementType.F32, ElementType.BF16):
        return 2.0**-126
    return 2.0**-1022 if part is ElementType.F64 else 0.0
