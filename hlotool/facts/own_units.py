"""Elements of an ensemble in units of their own, powers of two: squares of others overflow, or vanish."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

_Floats = npt.NDArray[np.float64]

#: Numbers in units of their own end here: their squares are finite, and so are sums of these.
_LARGEST = 1e145


class Members:
    """Some elements of all members, each in a unit of its own.

    Args:
        values: by member, the reference first.

    Attributes:
        values: as they are.
        is_finite: of each; None where all are.
        magnitudes: of each element the largest one.
        exponents: the units.
        own: in these, what is not finite as in the reference.
        mean: of the members, in the same units.
        variance: likewise.
    """

    def __init__(self, values: _Floats) -> None:
        finite = np.isfinite(values)
        self.values = values
        self.is_finite = None if finite.all() else finite
        self._known = values if self.is_finite is None else finite_as_first(values)
        self.magnitudes = np.abs(self._known).max(axis=0)
        self.exponents = exponents_of(self.magnitudes)
        self.own = self.in_units(self.exponents)
        self.mean = self.own.sum(axis=0) / len(values)
        self.variance = squared_distances(self.own, self.mean) / (len(values) - 1)

    def in_units(self, exponents: npt.NDArray[np.int32]) -> _Floats:
        """The members in other units, none of which is smaller than its own one."""
        scaled: _Floats = np.ldexp(self._known, -exponents)
        return scaled


def squared_distances(members: _Floats, centre: _Floats) -> _Floats:
    """The sum of squared distances from a centre, member by member: that much fits into a cache."""
    found = np.zeros_like(centre)
    for member in members:
        off = member - centre
        off *= off
        found += off
    return found


def finite_as_first(members: _Floats) -> _Floats:
    """What is not finite as in the reference, which is the first member; where it is not finite, 0."""
    reference = np.where(np.isfinite(members[0]), members[0], 0)
    return np.where(np.isfinite(members) & np.isfinite(members[0]), members, reference)


def exponents_of(magnitudes: _Floats) -> npt.NDArray[np.int32]:
    """Exponents of two: of the first power beyond each magnitude, and 0 for zeros."""
    exponents: npt.NDArray[np.int32] = np.frexp(magnitudes)[1]
    return exponents


def in_units(values: Any, exponents: Any) -> _Floats:
    """Numbers in units of powers of two; those that are much larger than their unit end somewhere."""
    with np.errstate(all="ignore"):
        scaled = np.ldexp(np.asarray(values, np.float64), -exponents)
        ended: _Floats = np.clip(scaled, -_LARGEST, _LARGEST)
    return ended


def kinds_of(values: _Floats) -> npt.NDArray[np.int8]:
    """0 finite, 1 NaN, 2 and 3 infinite."""
    kind = np.isnan(values).astype(np.int8)
    kind[np.isposinf(values)] = 2
    kind[np.isneginf(values)] = 3
    return kind
