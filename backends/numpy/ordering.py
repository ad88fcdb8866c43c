"""How numbers compare: the directions of a comparison, and floats as integers of the same order.

XLA: operation_semantics.md#compare (TOTALORDER): -NaN < -inf < … < -0 < +0 < … < inf < NaN.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from hlotool.backends.numpy.integers import signed_dtype
from hlotool.ir.dtypes import Array
from hlotool.ir.types import ElementType

#: By the attribute of a `compare`.
DIRECTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "EQ": operator.eq,
    "NE": operator.ne,
    "LT": operator.lt,
    "LE": operator.le,
    "GT": operator.gt,
    "GE": operator.ge,
}

#: Narrow floats whose bit patterns are a sign and a magnitude, NaN the largest; the others compare in f32.
SIGN_MAGNITUDE = (
    ElementType.F8E3M4,
    ElementType.F8E4M3,
    ElementType.F8E4M3FN,
    ElementType.F8E5M2,
    ElementType.F16,
    ElementType.BF16,
)


def total_order_keys(values: Array) -> Array:
    """Signed integers that compare as floats of sign-magnitude layout do in total order."""
    return _flip_negative(values.view(signed_dtype(values)))


def values_of_keys(keys: Array) -> Array:
    """The floats whose total order keys these are."""
    return _flip_negative(keys).view(np.dtype(f"f{keys.dtype.itemsize}"))


def extremum_keys(values: Array, opcode: str) -> Array:
    """Keys whose `maximum` or `minimum` is XLA's: NaN wins, +0 is larger than -0."""
    keys = total_order_keys(values)
    limits = np.iinfo(keys.dtype)
    winner = keys.dtype.type(limits.max if opcode == "maximum" else limits.min)
    return np.where(np.isnan(values), winner, keys)


def has_negative_zero(values: Array) -> bool:
    """Whether a -0 is among the floats."""
    return bool((np.signbit(values) & (values == 0)).any())


def _flip_negative(bits: Array) -> Array:
    """Exchange sign-magnitude and two's complement: negative numbers reverse their order."""
    width = 8 * bits.dtype.itemsize
    flipped: Array = bits ^ ((bits >> (width - 1)) & np.iinfo(bits.dtype).max)
    return flipped
