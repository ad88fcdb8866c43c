"""Element types as NumPy dtypes, and back.

NumPy has no bf16, f8, f4 or sub-byte integers; ml_dtypes brings them. One byte holds one sub-byte element.
s1 and u1 have no ml_dtypes type: they live in int8 and uint8, values -1..0 and 0..1.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from hlotool.ir.types import ElementType

Array = npt.NDArray[Any]

_SCALAR_TYPES: dict[ElementType, Any] = {
    ElementType.PRED: np.bool_,
    ElementType.S1: np.int8,
    ElementType.S2: ml_dtypes.int2,
    ElementType.S4: ml_dtypes.int4,
    ElementType.S8: np.int8,
    ElementType.S16: np.int16,
    ElementType.S32: np.int32,
    ElementType.S64: np.int64,
    ElementType.U1: np.uint8,
    ElementType.U2: ml_dtypes.uint2,
    ElementType.U4: ml_dtypes.uint4,
    ElementType.U8: np.uint8,
    ElementType.U16: np.uint16,
    ElementType.U32: np.uint32,
    ElementType.U64: np.uint64,
    ElementType.F4E2M1FN: ml_dtypes.float4_e2m1fn,
    ElementType.F8E3M4: ml_dtypes.float8_e3m4,
    ElementType.F8E4M3: ml_dtypes.float8_e4m3,
    ElementType.F8E4M3FN: ml_dtypes.float8_e4m3fn,
    ElementType.F8E4M3FNUZ: ml_dtypes.float8_e4m3fnuz,
    ElementType.F8E4M3B11FNUZ: ml_dtypes.float8_e4m3b11fnuz,
    ElementType.F8E5M2: ml_dtypes.float8_e5m2,
    ElementType.F8E5M2FNUZ: ml_dtypes.float8_e5m2fnuz,
    ElementType.F8E8M0FNU: ml_dtypes.float8_e8m0fnu,
    ElementType.F16: np.float16,
    ElementType.BF16: ml_dtypes.bfloat16,
    ElementType.F32: np.float32,
    ElementType.F64: np.float64,
    ElementType.C64: np.complex64,
    ElementType.C128: np.complex128,
}

DTYPES: dict[ElementType, np.dtype[Any]] = {t: np.dtype(s) for t, s in _SCALAR_TYPES.items()}

_ELEMENT_TYPES: dict[np.dtype[Any], ElementType] = {
    dtype: t for t, dtype in DTYPES.items() if t not in (ElementType.S1, ElementType.U1)
}

#: Width of the significand field of the types whose NaNs carry a payload.
NAN_PAYLOAD_BITS = {
    ElementType.F8E5M2: 2,
    ElementType.F8E4M3: 3,
    ElementType.F8E3M4: 4,
    ElementType.BF16: 7,
    ElementType.F16: 10,
    ElementType.F32: 23,
    ElementType.F64: 52,
}


def dtype_of(element_type: ElementType) -> np.dtype[Any]:
    """The NumPy dtype that holds `element_type`."""
    return DTYPES[element_type]


def element_type_of(dtype: npt.DTypeLike) -> ElementType | None:
    """The element type of a dtype, or None when HLO has none (object, str, longdouble, …)."""
    return _ELEMENT_TYPES.get(np.dtype(dtype).newbyteorder("="))


def integer_limits(element_type: ElementType) -> tuple[int, int]:
    """Smallest and largest value of an integer type (pred: 0 and 1)."""
    if element_type is ElementType.PRED:
        return 0, 1
    bits = element_type.bits
    if element_type.is_signed:
        return -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    return 0, (1 << bits) - 1
