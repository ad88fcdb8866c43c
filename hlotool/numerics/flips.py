"""Integers and preds that depend on floats: could a result be one more legal execution?

A float that moves by an ulp can flip a comparison, a floor or an argmax, and the integer moves by any amount.
An element is beyond when no member of the ensemble reaches it: it lies outside of what they span. How many
such elements are legal, the members say themselves, each against all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from hlotool.ir.dtypes import Array
from hlotool.numerics import thresholds

_Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Flips:
    """How an array of integers stands to the ensemble.

    Attributes:
        beyond: elements that no member reaches, flat, in row-major order.
        legal: the most such elements of a member.
        varied: elements on which the members differ.
        members: size of the ensemble.
    """

    beyond: _Flags = field(repr=False)
    legal: int
    varied: int
    members: int

    @property
    def count(self) -> int:
        """Number of elements that no member reaches."""
        return int(self.beyond.sum())

    @property
    def statistic(self) -> str:
        """What is counted, as reports print it."""
        return "flips"

    @property
    def misplaced(self) -> int:
        """No integer is NaN or infinite."""
        return 0

    @property
    def ratio(self) -> float:
        """Elements beyond over the legal number of them; part of one is legal where no member has any."""
        if not self.count:
            return 0.0
        one = thresholds.TIES if self.varied else thresholds.NO_TIES
        return self.count / self.legal if self.legal else one.value * self.count


def flips(actual: Array, members: Sequence[Array]) -> Flips:
    """Compare an array of integers or preds with at least three legal ones of the same dimensions."""
    stacked = np.stack([_wide(member) for member in members])
    ordered = np.sort(stacked, axis=0)
    low, high = ordered[0], ordered[-1]
    legal = 0
    for member in stacked:
        # Alone at an end: the others span less.
        below = (member == low) & (ordered[1] > low)
        above = (member == high) & (ordered[-2] < high)
        legal = max(legal, int((below | above).sum()))
    value = _wide(actual)
    return Flips((value < low) | (value > high), legal, int((low != high).sum()), len(members))


def _wide(array: Array) -> Array:
    dtype = np.uint64 if array.dtype == np.uint64 else np.int64
    return np.ascontiguousarray(array).reshape(-1).astype(dtype)
