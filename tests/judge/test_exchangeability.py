"""Legal results score low, others high, whatever the statistic."""

from __future__ import annotations

import numpy as np
import pytest

from hlotool.facts.exchangeability import Score, score
from hlotool.ir.arrays import Array
from hlotool.ir.types import ElementType
from hlotool.judge.tolerance import flips

ULP = 2.0**-23


def _truth() -> Array:
    return np.random.default_rng(3).standard_normal((64, 48))


def _execution(seed: int, error: float = 8 * ULP) -> Array:
    noise = np.random.default_rng(seed).uniform(-error, error, _truth().shape)
    return (_truth() * (1 + noise)).astype(np.float32)


def _score(actual: Array, members: int = 5, **options: Array) -> Score:
    others = [_execution(seed) for seed in range(members)]
    return score(actual, others, ElementType.F32, **options)


@pytest.mark.parametrize("seed", range(100, 110))
def test_another_execution_is_exchangeable(seed: int) -> None:
    found = _score(_execution(seed))
    assert 0.1 < found.ratio < 1.7
    assert found.misplaced == 0
    assert found.width == pytest.approx(8 * ULP / 3**0.5, rel=0.1)


def test_the_exact_result_is_closer_than_any_execution() -> None:
    assert _score(_truth().astype(np.float32)).ratio < 1


def test_one_wrong_element() -> None:
    actual = _execution(100)
    actual[5, 7] *= np.float32(1.001)
    found = _score(actual)
    assert found.ratio > 50
    assert found.statistic == "worst element"
    assert found.worst == (5, 7)
    assert found.beyond.sum() == 1


def test_a_bias_that_no_element_shows() -> None:
    found = _score(_execution(100) * np.float32(1 + 4 * ULP))
    assert found.ratios["worst element"] < 2 < found.ratios["whole output"] * 2
    rows = _execution(100)
    rows[9] += np.float32(40 * ULP) * np.abs(rows[9])
    assert _score(rows).statistic == "row"


def test_a_result_between_the_ensemble_and_the_truth_is_legal() -> None:
    """The ensemble rounds to bf16, the result only half of the time."""
    truth = _truth()
    coarse = [np.round(truth * 128) / 128 + np.zeros_like(truth) for _ in range(4)]
    half = (coarse[0] + truth) / 2
    assert score(half, coarse, ElementType.F64).ratio > 100
    assert score(half, coarse, ElementType.F64, shadow=truth).ratio < 0.1


def test_nan_on_one_side_only() -> None:
    actual = _execution(100)
    actual[0, 0] = np.nan
    found = _score(actual)
    assert found.misplaced == 1
    assert found.ratio == np.inf
    assert found.worst == (0, 0)


def test_nan_where_members_disagree_is_legal() -> None:
    members = [_execution(seed) for seed in range(5)]
    members[2][0, 0] = np.inf
    actual = _execution(100)
    actual[0, 0] = np.inf
    assert score(actual, members, ElementType.F32).misplaced == 0


def test_complex_numbers_are_indexed_as_such() -> None:
    members = [_execution(2 * s) + 1j * _execution(2 * s + 1) for s in range(5)]
    actual = (_execution(100) + 1j * _execution(101)).astype(np.complex64)
    legal = score(actual, members, ElementType.C64)
    assert legal.ratio < 1.7
    actual[3, 4] += 1e-2j
    found = score(actual, members, ElementType.C64)
    assert found.worst == (3, 4)
    assert found.beyond.shape == (64 * 48,)


@pytest.mark.parametrize("dims", [(), (1,), (0, 3), (7,), (2, 1, 5), (3, 70_000)])
def test_any_shape(dims: tuple[int, ...]) -> None:
    members = [np.full(dims, 1 + s * ULP, np.float32) for s in range(5)]
    assert score(members[1], members, ElementType.F32).ratio <= 1
    if members[0].size:
        assert score(members[1] * np.float32(1.1), members, ElementType.F32).ratio > 100


def test_integers_without_spread_must_be_equal() -> None:
    x = np.int32([1, 2, 3])
    assert flips(x, [x] * 5).ratio == 0
    found = flips(np.int32([1, 2, 4]), [x] * 5)
    assert (found.count, found.varied) == (1, 0)
    assert found.ratio > 3


def test_flips_are_legal_as_often_as_the_members_show_them() -> None:
    rng = np.random.default_rng(5)

    def execution() -> Array:
        values = np.arange(1000)
        values[rng.integers(0, 1000, 10)] += 1
        return values

    members = [execution() for _ in range(5)]
    assert flips(execution(), members).ratio < 2
    wrong = execution()
    wrong[:200] += 5
    assert flips(wrong, members).ratio > 10


def test_members_that_are_not_finite_excuse_no_finite_fault() -> None:
    members = [_execution(seed) for seed in range(5)]
    members[3][:] = np.nan
    assert score(_execution(100), members, ElementType.F32).ratio < 2
    assert score(_execution(100) * np.float32(1.01), members, ElementType.F32).ratio > 100
    assert score(members[3], members, ElementType.F32).ratio == 0


def test_what_is_left_of_cancellations_says_nothing_of_the_other_elements() -> None:
    """A transform of equal numbers: one element is their sum, the others are rounding."""
    rng = np.random.default_rng(5)
    centre = np.array([21.0, *rng.normal(size=6) * 1e-16])
    members = [centre, *(centre + rng.normal(size=7) * 1e-7 for _ in range(5))]
    assert score(-centre, members, ElementType.F64).ratio > 1e3
    assert score(centre + rng.normal(size=7) * 1e-7, members, ElementType.F64).ratio < 1.5


def _tails(number: int) -> Array:
    """Numbers from 1 down to 1e-300, whose squares are no f64 for most of them."""
    noise = np.random.default_rng(number).standard_normal(64)
    tails: Array = np.logspace(0, -300, 64) * (1 + 1e-16 * noise)
    return tails


@pytest.mark.parametrize("factor", [1.0, 1e-6, 1e250])
@pytest.mark.parametrize("place", [0, 20, 40, 55])
def test_numbers_whose_squares_vanish_or_overflow(place: int, factor: float) -> None:
    """Tails of exp(-x²) hide no fault of f64 in any place, themselves included, and accuse nobody."""
    members = [_tails(number) * factor for number in range(5)]
    legal = _tails(9) * factor
    assert score(legal, members, ElementType.F64).ratio < 3
    faulty = legal.copy()
    faulty[place] *= 1 + 1e-9
    found = score(faulty, members, ElementType.F64)
    assert found.ratio > 100
    assert found.worst == (place,)
    in_f64 = np.logspace(0, -300, 64) * factor
    assert score(faulty, members, ElementType.F64, in_f64).ratio > 100


def test_the_unit_of_a_leaf_changes_nothing() -> None:
    """A power of two is exact: scores of f32 are those of the same numbers in f64, far from 1."""
    rng = np.random.default_rng(3)
    values = [rng.standard_normal((5, 7, 9)) for _ in range(2)]
    members = [values[0] + 1e-7 * rng.standard_normal((5, 7, 9)) for _ in range(5)]
    actual = values[0] + 3e-7 * values[1]
    plain = score(actual, members, ElementType.F64)
    far = [
        score(actual * unit, [m * unit for m in members], ElementType.F64) for unit in (2.0**-900, 2.0**900)
    ]
    assert [one.ratios for one in far] == [pytest.approx(plain.ratios)] * 2
    assert [one.width for one in far] == [pytest.approx(plain.width)] * 2
