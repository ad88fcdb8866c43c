"""Distances between results, on numbers small enough to check by hand."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from benchmarks.gpu.accuracy import Distance, distance, same_bits


def test_relative_error_is_of_the_norms() -> None:
    expected = np.array([3.0, 4.0], np.float32)
    found = distance([expected], [np.array([3.0, 4.5], np.float32)])
    assert found.relative == pytest.approx(0.5 / 5)
    assert found.ulps == (0.5 / 2**-21)  # floats from 4 to 8 are 2**-21 apart
    assert distance([expected], [expected]) == Distance(0.0, 0, 0)


def test_ulps_of_narrow_floats() -> None:
    expected = np.array([1.0, 2.0], ml_dtypes.bfloat16)
    actual = np.array([1.0, 2.0 + 2**-5], ml_dtypes.bfloat16)
    assert distance([expected], [actual]).ulps == 2  # from 2 to 4 they are 2**-6 apart


def test_what_is_not_finite_on_one_side_only_is_counted() -> None:
    nan, inf = np.nan, np.inf
    expected = np.array([nan, nan, inf, inf, 1], np.float32)
    actual = np.array([nan, 1, inf, -inf, 1], np.float32)
    assert distance([expected], [actual]) == Distance(0.0, 0, 2)


def test_integers_have_no_ulps() -> None:
    found = distance([np.array([0, 2], np.int32)], [np.array([0, 3], np.int32)])
    assert found == Distance(0.5, None, 0)


def test_all_pieces_of_all_leaves_count() -> None:
    large = np.ones((1 << 20) + 5, np.float32)
    other = large.copy()
    other[-1] = np.nan
    assert distance([large, large], [large, other]).misfits == 1
    assert not same_bits([large, large], [large, other])
    assert same_bits([large, other], [large.copy(), other.copy()])


def test_the_sign_of_a_zero_is_a_bit() -> None:
    assert not same_bits([np.array([0.0])], [np.array([-0.0])])


def test_results_of_other_types_are_refused() -> None:
    with pytest.raises(ValueError, match="differ in type"):
        distance([np.zeros(2, np.float32)], [np.zeros(2, np.float64)])
    with pytest.raises(ValueError, match="differ in type"):
        same_bits([np.zeros(2)], [np.zeros(3)])
