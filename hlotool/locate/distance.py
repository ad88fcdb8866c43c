"""How far apart two arrays are, for the question which of several pairs went wrong first."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np

from hlotool.backends.field.marked import compared, is_marked
from hlotool.ir.dtypes import Array
from hlotool.ir.types import ArrayShape, Shape
from hlotool.numerics import thresholds
from hlotool.numerics.ulp import epsilon


def distance(one: Any, other: Any) -> float:
    """The largest difference over the largest magnitude; infinite for other shapes, types or non-numbers.

    Integers and truth values are apart by 1 or not at all, exact words infinitely or not at all.
    """
    a, b = np.asarray(one), np.asarray(other)
    if a.shape != b.shape or (a.dtype != b.dtype and not (_is_float(a) and _is_float(b))):
        return math.inf
    if a.size == 0 or a.tobytes() == b.tobytes():
        return 0.0
    if is_marked(a):
        return 0.0 if np.array_equal(compared(a), compared(b)) else math.inf
    if not _is_float(a):
        return float(bool((a != b).any()))
    wide = np.complex128 if np.iscomplexobj(a) else np.float64
    return _float_distance(a.astype(wide), b.astype(wide))


def _is_float(array: Array) -> bool:
    try:
        ml_dtypes.finfo(array.dtype)  # type: ignore[no-untyped-call]
    except ValueError:
        return False
    return True


def _float_distance(a: Array, b: Array) -> float:
    with np.errstate(all="ignore"):
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        if same.all():
            return 0.0
        finite = np.isfinite(a) & np.isfinite(b)
        if not (finite | same).all():
            return math.inf
        magnitude = float(np.abs(a[finite]).max(initial=0.0))
        apart = float(np.abs(a[finite] - b[finite]).max(initial=0.0))
    return apart / magnitude if magnitude else math.inf


def rounding(shape: Shape, units: float) -> float:
    """The distance that rounding may make, in units of the epsilon of an array's type; 0 for integers."""
    if not isinstance(shape, ArrayShape) or not shape.element_type.is_inexact:
        return 0.0
    return units * epsilon(shape.element_type)


def rounding_of_one(shape: Shape) -> float:
    """The distance that two roundings of one operation may make."""
    return rounding(shape, thresholds.ONE_OPERATION.value)
