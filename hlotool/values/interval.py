"""Intervals of numbers with at most one forbidden point, and their arithmetic."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

_INF: Final = math.inf


@dataclass(frozen=True, slots=True)
class Interval:
    """Numbers from `low` to `high`, both included when finite, without `avoid`."""

    low: float = -_INF
    high: float = _INF
    avoid: float | None = None

    @property
    def is_empty(self) -> bool:
        """No number lies in it."""
        return self.low > self.high or self.low == self.high == self.avoid

    @property
    def is_point(self) -> bool:
        """Exactly one number lies in it."""
        return self.low == self.high

    @property
    def is_bounded(self) -> bool:
        """Both ends are finite."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    def contains(self, other: Interval) -> bool:
        """Whether every number of `other` lies in this interval."""
        if not self.low <= other.low <= other.high <= self.high:
            return False
        return self.avoid is None or not other.low <= self.avoid <= other.high or other.avoid == self.avoid

    def intersect(self, other: Interval) -> Interval:
        """Numbers of both; of two forbidden points only the first one stays."""
        avoid = self.avoid if self.avoid is not None else other.avoid
        return Interval(max(self.low, other.low), min(self.high, other.high), avoid)

    def union(self, other: Interval) -> Interval:
        """The smallest interval around both."""
        return Interval(min(self.low, other.low), max(self.high, other.high))

    def shifted(self, by: float) -> Interval:
        """Every number plus `by`."""
        return Interval(self.low + by, self.high + by, None if self.avoid is None else self.avoid + by)

    def scaled(self, factor: float) -> Interval:
        """Every number times `factor`, which is finite and not 0."""
        low, high = sorted((self.low * factor, self.high * factor))
        return Interval(low, high, None if self.avoid is None else self.avoid * factor)

    def __str__(self) -> str:
        text = _describe_ends(self.low, self.high)
        return text if self.avoid is None else f"{text} without {self.avoid:g}"


def _describe_ends(low: float, high: float) -> str:
    if low == -_INF and high == _INF:
        return "any number"
    if high == _INF:
        return f"at least {low:g}"
    return f"at most {high:g}" if low == -_INF else f"in [{low:g}, {high:g}]"


ANY: Final = Interval()
NONNEGATIVE: Final = Interval(0)
POSITIVE: Final = Interval(0, avoid=0)
NONZERO: Final = Interval(avoid=0)


def add(a: Interval, b: Interval) -> Interval:
    """All sums."""
    return Interval(_number(a.low + b.low, -_INF), _number(a.high + b.high, _INF))


def negate(a: Interval) -> Interval:
    """All negatives."""
    return Interval(-a.high, -a.low, None if a.avoid is None else -a.avoid)


def multiply(a: Interval, b: Interval) -> Interval:
    """All products; 0 times infinity is the limit 0."""
    products = [_number(x * y, 0.0) for x in (a.low, a.high) for y in (b.low, b.high)]
    return Interval(min(products), max(products))


def reciprocal(a: Interval) -> Interval:
    """All 1/x; anything when the interval touches 0."""
    if a.low <= 0 <= a.high:
        return Interval(0) if a.low == 0 else ANY
    return Interval(1 / a.high, 1 / a.low)


def _number(value: float, otherwise: float) -> float:
    return otherwise if math.isnan(value) else value
