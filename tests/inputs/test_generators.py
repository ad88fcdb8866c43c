"""Whatever the constraint, the values meet it."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hlotool.facts.demands import (
    AnyBits,
    Demand,
    Exactly,
    InRange,
    Matrix,
    MatrixKind,
    Ordered,
    Scaled,
)
from hlotool.facts.ranges import ANY, NONZERO, POSITIVE, Interval
from hlotool.inputs.constraints import Constraint, Finding, combine
from hlotool.inputs.generators import Draw, generate, generator_of, holds, integer_range
from hlotool.ir.arrays import dtype_of, integer_limits
from hlotool.ir.opcodes import Identity
from hlotool.ir.types import ElementType

INTEGERS = st.sampled_from([t for t in ElementType if t.is_integer])
SEEDS = st.integers(0, 1000)


def _draw(seed: int, wide: bool = False) -> Draw:
    return Draw(np.random.default_rng(seed), seed, wide=wide)


@st.composite
def small_intervals(draw: st.DrawFn) -> Interval:
    low = draw(st.integers(0, 20))
    return Interval(low, low + draw(st.integers(0, 40)))


@given(INTEGERS, small_intervals(), st.lists(st.integers(0, 5), max_size=3), SEEDS)
def test_integers_stay_in_their_interval(
    element_type: ElementType, interval: Interval, dims: list[int], seed: int
) -> None:
    _, high = integer_limits(element_type)
    constraint = Constraint((interval,))
    array = generate(element_type, dims, constraint, _draw(seed))
    assert array.dtype == dtype_of(element_type)
    assert array.shape == tuple(dims)
    if interval.low <= high:
        numbers = array.astype(np.int64)
        assert ((numbers >= interval.low) & (numbers <= min(interval.high, high))).all()


@given(
    st.lists(small_intervals(), min_size=1, max_size=3),
    st.lists(st.integers(1, 4), min_size=1, max_size=2),
    st.data(),
    st.booleans(),
    st.booleans(),
    SEEDS,
)
@settings(max_examples=200)
def test_ordered_vectors(
    intervals: list[Interval],
    others: list[int],
    data: st.DataObject,
    distinct: bool,
    ascending: bool,
    seed: int,
) -> None:
    axis = data.draw(st.integers(0, len(others)))
    dims = [*others[:axis], len(intervals), *others[axis:]]
    constraint = Constraint(tuple(intervals), axis, Ordered(distinct, ascending, axis))
    array = generate(ElementType.S32, dims, constraint, _draw(seed))
    assert array.shape == tuple(dims)
    vectors = np.moveaxis(array, axis, -1).reshape(-1, len(intervals))
    for component, interval in zip(vectors.T, intervals):
        assert ((component >= interval.low) & (component <= interval.high)).all()
    possible = prod(int(i.high - i.low) + 1 for i in intervals)
    if distinct and possible >= len(vectors):
        assert len(np.unique(vectors, axis=0)) == len(vectors)
    if ascending:
        assert [tuple(v) for v in vectors] == sorted(tuple(v) for v in vectors)


def test_distinct_among_many_possibilities_is_cheap() -> None:
    constraint = Constraint((Interval(0, 10**12),), None, Ordered(True, False))
    assert len(np.unique(generate(ElementType.S64, [1000], constraint, _draw(0)))) == 1000


@pytest.mark.parametrize(
    ("element_type", "interval", "expected"),
    [
        (ElementType.S16, ANY, range(-10, 11)),
        (ElementType.S16, Interval(0), range(21)),
        (ElementType.S16, Interval(30), range(30, 51)),
        (ElementType.S16, Interval(high=5), range(-15, 6)),
        (ElementType.S16, Interval(0, 1000), range(1001)),
        (ElementType.S16, Interval(0.5, 2.9), range(1, 3)),
        (ElementType.S16, Interval(-1, avoid=-1), range(21)),
        (ElementType.S8, Interval(0, 1000), range(128)),
        (ElementType.S8, Interval(300, 400), range(127, 128)),
        (ElementType.S8, ANY, range(-128, 128)),
        (ElementType.U8, Interval(30), range(30, 256)),
        (ElementType.S4, ANY, range(-8, 8)),
        (ElementType.U2, ANY, range(4)),
    ],
)
def test_integer_ranges(element_type: ElementType, interval: Interval, expected: range) -> None:
    """Narrow types take all their values, wider ones small values, unless the interval says otherwise."""
    assert integer_range(element_type, interval) == expected


FLOATS = st.sampled_from([ElementType.F32, ElementType.F64])
ENDS = st.one_of(st.none(), st.floats(-50, 50))


@given(FLOATS, ENDS, ENDS, st.floats(0.01, 1), SEEDS)
@settings(max_examples=200)
def test_floats_stay_in_their_interval(
    element_type: ElementType, a: float | None, b: float | None, scale: float, seed: int
) -> None:
    low, high = (-np.inf if a is None else a), (np.inf if b is None else b)
    if low > high:
        low, high = high, low
    constraint = Constraint((Interval(low, high),), scale=scale)
    values = generate(element_type, [50], constraint, _draw(seed, wide=element_type is ElementType.F64))
    slack = 1e-5 * max(1, abs(low) if a is not None else 1, abs(high) if b is not None else 1)
    assert ((values >= low - slack) & (values <= high + slack)).all()


@given(
    st.sampled_from([NONZERO, POSITIVE, Interval(-5, avoid=1), Interval(-2, 2, 0)]), st.floats(0.01, 1), SEEDS
)
def test_floats_keep_a_distance_from_the_forbidden_point(interval: Interval, scale: float, seed: int) -> None:
    values = generate(ElementType.F32, [200], Constraint((interval,), scale=scale), _draw(seed))
    assert interval.avoid is not None
    assert np.abs(values - interval.avoid).min() > 0.2 * scale


def test_intervals_along_an_axis() -> None:
    constraint = Constraint((Interval(0, 1), ANY, Interval(10, 11)), 1)
    values = generate(ElementType.F32, [100, 3], constraint, _draw(0))
    assert values.shape == (100, 3)
    assert ((values[:, 0] >= 0) & (values[:, 0] <= 1)).all()
    assert (values[:, 1] < 0).any()
    assert (values[:, 2] >= 10).all()


def test_f64_uses_all_its_digits() -> None:
    values = generate(ElementType.F64, [100], Constraint(), _draw(0, wide=True))
    assert (values.astype(np.float32) != values).any()


def _combined(*demands: Demand) -> Constraint:
    return combine(Finding(0, (), demand, str(i)) for i, demand in enumerate(demands))[0, ()]


def test_requirements_go_before_wishes() -> None:
    wish, need = InRange((Interval(0, 9),), required=False), InRange((Interval(20, 30),))
    constraint = _combined(wish, need)
    assert constraint.intervals == (Interval(20, 30),)
    assert (constraint.purposes, constraint.unmet) == (["1"], ["0"])


def test_demands_combine() -> None:
    constraint = _combined(
        InRange((Interval(0, 9), Interval(0, 5)), 1),
        InRange((Interval(3, 7),)),
        Ordered(True, False, 1),
        Ordered(False, True, 1),
        Scaled(0.5),
        Scaled(0.25),
        AnyBits(),
    )
    assert constraint.intervals == (Interval(3, 7), Interval(3, 5))
    assert constraint.axis == 1
    assert constraint.order == Ordered(True, True, 1)
    assert constraint.scale == 0.25
    assert constraint.all_bits
    assert not constraint.unmet


def test_ranges_along_different_axes_collapse() -> None:
    constraint = _combined(
        InRange((Interval(0, 9), Interval(0, 5)), 1), InRange((Interval(0, 4), Interval(2, 7)), 0)
    )
    assert (constraint.axis, constraint.intervals) == (None, (Interval(2, 4),))


def test_positive_definite_goes_before_triangles() -> None:
    definite, lower, upper = (Matrix(kind) for kind in MatrixKind)
    assert _combined(lower, definite).matrix is MatrixKind.POSITIVE_DEFINITE
    assert _combined(definite, lower).matrix is MatrixKind.POSITIVE_DEFINITE
    assert _combined(lower, upper).unmet == ["1"]


def test_two_identities_contradict() -> None:
    constraint = _combined(Exactly(Identity.ZERO), Exactly(Identity.ZERO), Exactly(Identity.ONE))
    assert constraint.exactly is Identity.ZERO
    assert constraint.unmet == ["2"]


@pytest.mark.parametrize("low", [0, 2**63 - 1, 2**63 + 2**40])
def test_an_interval_of_u64_beyond_s64(low: int) -> None:
    """Its values lie in it, and on both sides of its middle."""
    constraint = Constraint((Interval(low, 2**64 - 1),))
    values = generate(ElementType.U64, (64,), constraint, _draw(3))
    assert values.dtype == np.uint64
    assert all(low <= int(v) < 2**64 for v in values)
    middle = (low + 2**64) // 2
    assert 8 < sum(int(v) > middle for v in values) < 56


def test_a_wide_interval_is_described_at_once() -> None:
    """Whether it holds the number to avoid is not found out by going through 2^64 numbers."""
    assert holds(range(2**64), 0.0)
    assert holds(range(-5, 2**63), 2.0**62)
    assert not holds(range(1, 2**64), 0.0)
    assert not holds(range(2**64), 0.5)
    assert not holds(range(2**64), None)


@pytest.mark.parametrize("words", [(0,), (5, 1, 0), (2**32 - 1, 3), (2**32, 1), (2**62, 0, 7)])
def test_a_generator_is_numpys_own_of_the_same_words(words: tuple[int, ...]) -> None:
    expected = np.random.default_rng(list(words)).integers(1 << 62, size=4)
    assert generator_of(*words).integers(1 << 62, size=4).tolist() == expected.tolist()
