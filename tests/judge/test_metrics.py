"""Numbers of a comparison."""

from __future__ import annotations

import math
import pickle

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from hlotool.facts.float_order import flush_threshold
from hlotool.ir.arrays import Array, dtype_of, element_type_of
from hlotool.ir.types import ElementType
from hlotool.judge import metrics
from hlotool.judge.metrics import Metrics, bitwise_equal, measure
from hlotool.judge.tolerance import EXACT, Tolerance


def _measure(expected: Array, actual: Array, atol: float = 0.0, rtol: float = 0.0) -> Metrics:
    element_type = element_type_of(expected.dtype)
    assert element_type is not None
    return measure(expected, actual, element_type, Tolerance(atol, rtol))


def test_equal_arrays() -> None:
    x = np.array([1.0, np.nan, np.inf, -0.0], np.float32)
    found = _measure(x, x.copy())
    assert (found.total, found.mismatched, found.unequal, found.max_ulp) == (4, 0, 0, 0)
    assert found.worst_absolute is None
    assert not found.histogram
    assert not found.top
    assert found.minimum == metrics.MinimumToleranceRecord(absolute=0.0, relative=0.0, joint=0.0)


def test_worst_elements() -> None:
    expected = np.array([[1.0, 100.0], [0.001, 5.0]], np.float32)
    actual = np.array([[1.0, 101.0], [0.0011, 5.0]], np.float32)
    found = _measure(expected, actual)
    assert found.worst_absolute is not None
    assert found.worst_relative is not None
    assert found.worst_absolute.index == (0, 1)
    assert found.worst_absolute.absolute == 1.0
    assert (found.worst_absolute.expected, found.worst_absolute.actual) == (100.0, 101.0)
    assert found.worst_relative.index == (1, 0)
    assert found.worst_relative.relative == pytest.approx(1 / 11, rel=1e-5)
    assert found.mismatched == found.unequal == 2


def test_nan_and_infinity_are_counted_apart() -> None:
    expected = np.array([np.nan, 1.0, np.inf, np.inf, np.nan, 2.0], np.float32)
    actual = np.array([1.0, np.nan, -np.inf, 3.0, np.nan, 2.5], np.float32)
    found = _measure(expected, actual, atol=10)
    assert (found.nan_mismatches, found.inf_mismatches, found.mismatched) == (2, 2, 4)
    assert found.worst_absolute is not None
    assert found.worst_absolute.absolute == 0.5
    assert [e.index for e in found.top] == [(0,), (1,), (2,), (3,)]
    assert math.isnan(found.top[0].absolute)
    assert found.top[2].absolute == math.inf
    assert found.top[0].ulps is None
    assert found.minimum == metrics.MinimumToleranceRecord(absolute=None, relative=None, joint=None)


def test_signed_zeros_and_nan_payloads_agree_but_are_not_the_same_bits() -> None:
    zeros = np.array([0.0, -0.0], np.float32)
    assert not bitwise_equal(zeros, zeros[::-1])
    assert _measure(zeros, zeros[::-1]).unequal == 0
    nans = np.array([0x7FC00000, 0x7FC00001], np.uint32).view(np.float32)
    assert not bitwise_equal(nans[:1], nans[1:])
    assert _measure(nans[:1], nans[1:]).unequal == 0


def test_denormals_equal_zero() -> None:
    expected = np.array([1e-40, 1e-39, 1.0], np.float32)
    actual = np.array([0.0, -1e-39, 1.0], np.float32)
    tolerance = Tolerance(0.0, 0.0, flush_threshold(ElementType.F32))
    found = measure(expected, actual, ElementType.F32, tolerance)
    assert (found.mismatched, found.unequal, found.max_ulp) == (0, 0, 0)
    assert _measure(expected, actual).mismatched == 2


def test_top_five_go_by_excess_over_the_tolerance() -> None:
    expected = np.array([1e6, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], np.float64)
    actual = expected + np.array([2000.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.0])
    found = _measure(expected, actual, rtol=1e-3)
    assert [e.index[0] for e in found.top] == [5, 4, 3, 2, 1]
    assert found.mismatched == 6


def test_of_elements_as_far_off_the_first_are_the_top() -> None:
    expected = np.zeros(40)
    actual = np.where(np.arange(40) % 3 == 1, 2.0, 1.0)
    assert [e.index[0] for e in _measure(expected, actual).top] == [1, 4, 7, 10, 13]


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.int64, ml_dtypes.int4, ml_dtypes.uint2, np.bool_])
def test_integers_are_exact(dtype: type) -> None:
    expected: Array = np.array([0, 1, 1, 0]).astype(dtype)
    actual: Array = np.array([0, 1, 0, 0]).astype(dtype)
    found = _measure(expected, actual, atol=100, rtol=1)
    assert (found.mismatched, found.max_ulp, found.minimum) == (1, None, None)
    assert found.worst_absolute is not None
    assert found.worst_absolute.absolute == 1
    assert type(found.worst_absolute.expected) is (bool if dtype is np.bool_ else int)


def test_differences_of_64_bit_integers_do_not_wrap() -> None:
    info = np.iinfo(np.int64)
    found = _measure(np.array([info.min]), np.array([info.max]))
    assert found.worst_absolute is not None
    assert found.worst_absolute.absolute == 2**64 - 1
    found = _measure(np.array([0], np.uint64), np.array([2**64 - 1], np.uint64))
    assert found.worst_absolute is not None
    assert found.worst_absolute.absolute == 2**64 - 1


def test_complex_numbers_use_the_modulus() -> None:
    found = _measure(np.array([3 + 4j]), np.array([3 + 4.5j]), rtol=0.1)
    assert found.worst_absolute is not None
    assert found.worst_absolute.absolute == 0.5
    assert found.mismatched == 0
    parts = np.array([complex(math.nan, 1), complex(1, math.inf)])
    other = np.array([complex(math.nan, 2), complex(2, math.inf)])
    assert _measure(parts, other).nan_mismatches == 0
    assert _measure(parts, other).inf_mismatches == 1


@pytest.mark.parametrize("element_type", [t for t in ElementType if t.is_narrow_float], ids=str)
def test_narrow_floats(element_type: ElementType) -> None:
    expected = np.array([1, 2, 4], dtype_of(element_type))
    actual = np.array([1, 4, 4], dtype_of(element_type))
    found = measure(expected, actual, element_type, EXACT)
    assert found.mismatched == 1
    assert found.worst_absolute is not None
    assert found.worst_absolute.expected == 2.0
    assert found.max_ulp == found.worst_absolute.ulps == round(1 / float(_epsilon(element_type)))


def _epsilon(element_type: ElementType) -> float:
    return float(ml_dtypes.finfo(dtype_of(element_type)).eps)  # type: ignore[no-untyped-call]


def test_histogram_counts_by_magnitude() -> None:
    expected = np.array([0.0, 0.5, 50.0, 60.0, 1e12, 1.0], np.float64)
    actual = np.array([0.0, 0.6, 51.0, 60.0, 1e12, np.nan], np.float64)
    buckets = _measure(expected, actual).histogram
    assert sum(b.total for b in buckets) == 6
    assert sum(b.mismatched for b in buckets) == 3
    by_high = {b.high: b for b in buckets}
    assert by_high[0.0].total == 1
    assert (by_high[1.0].total, by_high[1.0].mismatched) == (1, 1)
    assert (by_high[100.0].total, by_high[100.0].mismatched, by_high[100.0].worst_absolute) == (2, 1, 1.0)
    assert (by_high[None].total, by_high[None].mismatched) == (2, 1)


@pytest.mark.parametrize("piece", [1, 3, 1000])
def test_pieces_do_not_change_the_result(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    expected = rng.standard_normal((4, 5)).astype(np.float32)
    actual = expected + rng.standard_normal((4, 5)).astype(np.float32) * np.float32(1e-3)
    whole = _measure(expected, actual, rtol=1e-3)
    monkeypatch.setattr(metrics, "PIECE", piece)
    assert _measure(expected, actual, rtol=1e-3) == whole
    strided = np.asfortranarray(actual)
    assert _measure(np.broadcast_to(expected, (4, 5)), strided, rtol=1e-3) == whole


def test_scalars_and_empty_arrays() -> None:
    found = _measure(np.array(1.0), np.array(2.0))
    assert found.worst_absolute is not None
    assert found.worst_absolute.index == ()
    assert _measure(np.zeros((0, 3)), np.zeros((0, 3))) == Metrics(
        0, max_ulp=0, minimum=metrics.MinimumToleranceRecord(absolute=0.0, relative=0.0, joint=0.0)
    )


def test_metrics_can_be_sent_to_another_process() -> None:
    found = _measure(np.array([1.0, 2.0]), np.array([1.0, 3.0]))
    assert pickle.loads(pickle.dumps(found)) == found


_ELEMENTS = st.floats(-1e30, 1e30, allow_subnormal=False)
_PAIRS = st.integers(1, 8).flatmap(
    lambda n: st.tuples(*[arrays.arrays(np.float64, n, elements=_ELEMENTS) for _ in range(2)])
)


@given(_PAIRS)
@settings(max_examples=150)
def test_the_minimum_tolerance_is_enough_and_minimal(pair: tuple[Array, Array]) -> None:
    expected, actual = pair
    minimum = _measure(expected, actual).minimum
    assert minimum is not None
    assert minimum.absolute is not None
    assert minimum.relative is not None
    assert minimum.joint is not None
    for atol, rtol in ((minimum.absolute, 0), (0, minimum.relative), (minimum.joint, minimum.joint)):
        assert _measure(expected, actual, atol, rtol).mismatched == 0
        if (expected != actual).any():
            less = 1 - 1e-9
            assert _measure(expected, actual, atol * less, rtol * less).mismatched > 0


@given(_PAIRS, st.floats(0, 1), st.floats(0, 1))
def test_comparison_is_symmetric(pair: tuple[Array, Array], atol: float, rtol: float) -> None:
    forward, backward = (_measure(*pair, atol, rtol), _measure(*pair[::-1], atol, rtol))
    assert forward.mismatched == backward.mismatched
    assert forward.max_ulp == backward.max_ulp
    assert forward.minimum == backward.minimum
