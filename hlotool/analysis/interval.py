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
        if self.avoid is None or self.avoid in (self.low, self.high):
            return self._ends()
        return f"{self._ends()} but {self.avoid + 0.0:g}"

    def _ends(self) -> str:
        low, high = self.low + 0.0, self.high + 0.0
        if low == -_INF and high == _INF:
            return "any"
        if high == _INF:
            return f"above {low:g}" if self.avoid == low else f"at least {low:g}"
        if low == -_INF:
            return f"below {high:g}" if self.avoid == high else f"at most {high:g}"
        left, right = "(" if self.avoid == low else "[", ")" if self.avoid == high else "]"
        return f"in {left}{low:g}, {high:g}{right}"


ANY: Final = Interval()
NONNEGATIVE: Final = Interval(0)
POSITIVE: Final = Interval(0, avoid=0)
NONZERO: Final = Interval(avoid=0)


def add(a: Interval, b: Interval) -> Interval:
    """The interval of x + y for all x in `a` and y in `b`."""
    return Interval(_number(a.low + b.low, -_INF), _number(a.high + b.high, _INF))


def negate(a: Interval) -> Interval:
    """The interval of -x for all x in `a`."""
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
