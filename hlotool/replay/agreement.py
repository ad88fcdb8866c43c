"""Whether two values of the insides of two programs can be the same quantity, computed in two ways."""

from __future__ import annotations

import enum

import numpy as np

from hlotool.ir.dtypes import Array
from hlotool.ir.types import ArrayShape, ElementType
from hlotool.numerics.facts import NOTHING, Facts
from hlotool.numerics.tolerance import Tolerance, derive, leaf_scale
from hlotool.numerics.ulp import epsilon

#: Ulps between two roundings of one operation on equal operands.
_ONE_OPERATION = 8
#: Relative difference of programs in f64 whose constants a compiler has folded in f32.
_ROUNDED_CONSTANTS = 1e-5


class Relation(enum.Enum):
    """What can be said of two values."""

    #: The same, or within what rounding may do.
    AGREE = "agree"
    #: Different.
    DIFFER = "differ"
    #: They cannot be the same quantity, or are not known.
    UNKNOWN = "unknown"


def related(
    one: Array,
    shape: ArrayShape,
    other: Array,
    other_shape: ArrayShape,
    facts: Facts | None,
    tight: bool = False,
) -> Relation:
    """Compare two values; where their dimensions differ, apart from the places of the elements.

    Args:
        one: the expected value.
        shape: of `one`.
        other: the value in question.
        other_shape: of `other`.
        facts: that decide how far rounding can have carried the two apart; None when both were computed in
            f64, where only constants are rounded.
        tight: allow no more than one operation's rounding.
    """
    types = shape.element_type, other_shape.element_type
    if one.size != other.size or _family(types[0]) != _family(types[1]):
        return Relation.UNKNOWN
    coarser = max(types, key=_unit)
    tolerance = _tight(coarser, one, other) if tight else _loose(coarser, facts, leaf_scale(one, other))
    if _close(one.reshape(-1), other.reshape(-1), tolerance):
        return Relation.AGREE
    if one.shape == other.shape or types[0].is_complex:
        return Relation.DIFFER
    rearranged = _close(np.sort(_wide(one), axis=None), np.sort(_wide(other), axis=None), tolerance)
    return Relation.AGREE if rearranged else Relation.DIFFER


def _loose(element_type: ElementType, facts: Facts | None, scale: float) -> Tolerance:
    if facts is not None or not element_type.is_inexact:
        return derive(element_type, facts or NOTHING, scale)
    return Tolerance(_ROUNDED_CONSTANTS * scale, _ROUNDED_CONSTANTS, reason="rounded constants")


def one_operation(element_type: ElementType, one: Array, other: Array) -> Tolerance:
    """What the rounding of a single operation may do."""
    return _tight(element_type, one, other)


def _tight(element_type: ElementType, one: Array, other: Array) -> Tolerance:
    if not element_type.is_inexact:
        return derive(element_type, NOTHING)
    unit = _ONE_OPERATION * epsilon(element_type)
    return Tolerance(unit * leaf_scale(one, other), unit, reason="one operation")


def _unit(element_type: ElementType) -> float:
    return epsilon(element_type) if element_type.is_inexact else 0.0


def _family(element_type: ElementType) -> str:
    if element_type.is_complex:
        return "complex"
    return "float" if element_type.is_floating else "exact"


def _wide(array: Array) -> Array:
    if array.dtype.kind in "iub" and array.dtype.itemsize == 8:
        return array
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _close(one: Array, other: Array, tolerance: Tolerance) -> bool:
    if one.dtype == other.dtype and one.dtype.kind in "iub":
        return np.array_equal(one, other)
    a, b = _wide(one), _wide(other)
    with np.errstate(all="ignore"):
        distance, larger = np.abs(a - b), np.maximum(np.abs(a), np.abs(b))
        near = np.isfinite(larger) & (
            (distance <= tolerance.atol + tolerance.rtol * larger) | (distance <= tolerance.denormal)
        )
    return bool((near | (a == b) | (np.isnan(a) & np.isnan(b))).all())
