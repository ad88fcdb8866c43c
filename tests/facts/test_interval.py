"""Interval arithmetic."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlotool.facts.ranges import (
    ANY,
    NONNEGATIVE,
    NONZERO,
    POSITIVE,
    Interval,
    add,
    multiply,
    negate,
    reciprocal,
)

#: Without -0, which sorts as 0 and is no upper end of what begins at 0; without numbers whose reciprocal
#: overflows.
NUMBERS = st.floats(-100, 100, allow_subnormal=False).map(lambda number: number + 0.0)


@st.composite
def intervals_and_members(draw: st.DrawFn) -> tuple[Interval, float]:
    low, high = sorted((draw(NUMBERS), draw(NUMBERS)))
    member = draw(st.floats(low, high, allow_subnormal=False))
    if draw(st.booleans()):
        low = -math.inf
    if draw(st.booleans()):
        high = math.inf
    return Interval(low, high), member


PAIR = intervals_and_members()


def _holds(interval: Interval, number: float) -> bool:
    slack = 1e-9 * max(1.0, abs(number))
    return interval.low - slack <= number <= interval.high + slack


@given(PAIR, PAIR)
def test_results_of_members_are_members(a: tuple[Interval, float], b: tuple[Interval, float]) -> None:
    (x, p), (y, q) = a, b
    assert _holds(add(x, y), p + q)
    assert _holds(multiply(x, y), p * q)
    assert _holds(negate(x), -p)
    assert _holds(x.union(y), p)
    assert p == 0 or _holds(reciprocal(x), 1 / p)
    assert _holds(x.shifted(3), p + 3)
    assert _holds(x.scaled(-2), -2 * p)


@given(PAIR, PAIR)
def test_intersection_holds_what_both_hold(a: tuple[Interval, float], b: tuple[Interval, float]) -> None:
    both = a[0].intersect(b[0])
    assert a[0].contains(both) or both.is_empty
    assert not (b[0].low <= a[1] <= b[0].high) or both.low <= a[1] <= both.high


def test_forbidden_points() -> None:
    assert NONZERO.contains(Interval(1, 2))
    assert not NONZERO.contains(Interval(-1, 2))
    assert not POSITIVE.contains(NONNEGATIVE)
    assert NONNEGATIVE.contains(POSITIVE)
    assert POSITIVE.contains(POSITIVE)
    assert Interval(3, 3, 3).is_empty
    assert NONZERO.shifted(2).avoid == 2
    assert Interval(avoid=3).scaled(2).avoid == 6
    assert negate(Interval(1, 2, 1)) == Interval(-2, -1, -1)


@pytest.mark.parametrize(
    ("interval", "text"),
    [
        (ANY, "any"),
        (NONZERO, "any but 0"),
        (POSITIVE, "above 0"),
        (NONNEGATIVE, "at least 0"),
        (Interval(high=-0.0, avoid=-0.0), "below 0"),
        (Interval(high=5), "at most 5"),
        (Interval(0, 9), "in [0, 9]"),
        (Interval(0, 9, 0), "in (0, 9]"),
        (Interval(0, 9, 9), "in [0, 9)"),
        (Interval(-1, 1, 0), "in [-1, 1] but 0"),
    ],
)
def test_text(interval: Interval, text: str) -> None:
    assert str(interval) == text
