"""Distances in representable values, for every float type."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hlotool.facts.float_order import epsilon, flush_threshold, ulp_distance
from hlotool.ir.arrays import Array, dtype_of
from hlotool.ir.types import ElementType

FLOATS = [t for t in ElementType if t.is_floating]
NARROW = [t for t in FLOATS if t.bits <= 16]


def _finite(element_type: ElementType) -> Array:
    """All finite values of a narrow type, ascending."""
    dtype = dtype_of(element_type)
    bits = np.arange(1 << element_type.value_bits, dtype=f"u{dtype.itemsize}")
    values = bits.view(dtype)
    with np.errstate(invalid="ignore"):
        values = values[np.isfinite(values)]
    order = np.argsort(values.astype(np.float64), kind="stable")
    return np.asarray(values[order])


@pytest.mark.parametrize("element_type", NARROW, ids=str)
def test_neighbours_are_one_apart(element_type: ElementType) -> None:
    values = _finite(element_type)
    numbers = values.astype(np.float64)
    distance = ulp_distance(values[:-1], values[1:], element_type)
    np.testing.assert_array_equal(distance, (numbers[:-1] != numbers[1:]).astype(np.uint64))


@pytest.mark.parametrize("element_type", NARROW, ids=str)
def test_distance_to_the_lowest_counts_all_values_between(element_type: ElementType) -> None:
    values = _finite(element_type)
    numbers = values.astype(np.float64)
    rank = np.concatenate([[0], np.cumsum(numbers[1:] != numbers[:-1])])
    np.testing.assert_array_equal(ulp_distance(values, np.full_like(values, values[0]), element_type), rank)


@pytest.mark.parametrize("element_type", [t for t in FLOATS if t is not ElementType.F8E8M0FNU], ids=str)
def test_signs_of_zero_do_not_count(element_type: ElementType) -> None:
    zeros = np.array([0.0, -0.0]).astype(dtype_of(element_type))
    assert ulp_distance(zeros[:1], zeros[1:], element_type)[0] == 0


def test_infinity_follows_the_largest_value() -> None:
    largest = np.array([np.finfo(np.float32).max])
    assert ulp_distance(largest, np.array([np.inf], np.float32), ElementType.F32)[0] == 1


def test_the_largest_distance_does_not_overflow() -> None:
    a, b = np.array([np.finfo(np.float64).max]), np.array([-np.finfo(np.float64).max])
    assert int(ulp_distance(a, b, ElementType.F64)[0]) == 2 * int(a.view(np.uint64)[0])


def test_complex_takes_the_worse_part() -> None:
    a = np.array([1 + 1j], np.complex64)
    b = np.array([np.nextafter(np.float32(1), np.float32(2)) + 1j * (1 + 3 * 2.0**-23)], np.complex64)
    assert ulp_distance(a, b, ElementType.C64)[0] == 3


@pytest.mark.parametrize("element_type", FLOATS, ids=str)
def test_epsilon(element_type: ElementType) -> None:
    info: Any = ml_dtypes.finfo(dtype_of(element_type))  # type: ignore[no-untyped-call]
    assert epsilon(element_type) == float(info.eps)


def test_flushed_types() -> None:
    assert flush_threshold(ElementType.F32) == flush_threshold(ElementType.BF16) == np.finfo(np.float32).tiny
    assert flush_threshold(ElementType.C128) == np.finfo(np.float64).tiny
    assert flush_threshold(ElementType.F16) == 0


FINITE32 = st.floats(width=32, allow_nan=False, allow_infinity=False)


@given(FINITE32, FINITE32, FINITE32)
@settings(max_examples=200)
def test_distance_is_a_metric(a: float, b: float, c: float) -> None:
    x, y, z = (np.array([v], np.float32) for v in (a, b, c))

    def distance(p: Array, q: Array) -> int:
        return int(ulp_distance(p, q, ElementType.F32)[0])

    assert distance(x, y) == distance(y, x)
    assert (distance(x, y) == 0) == (a == b)
    assert distance(x, z) <= distance(x, y) + distance(y, z)
    low, middle, high = (np.array([v], np.float32) for v in sorted((a, b, c)))
    assert distance(low, middle) + distance(middle, high) == distance(low, high)
