"""Products of a few known constants, their reciprocals and roots, that a number may be a rounding of.

Two tables of products meet in the middle, so that products of four take no more than all pairs. The more
products there are, the more often one is near by accident: where that is likely nothing is said.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from math import comb, log
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from hlotool.backends.field.snapping import Reading, Rule
from hlotool.backends.field.words import Words, inverse, multiply, rsqrt, sqrt
from hlotool.numerics import thresholds

Floats: TypeAlias = npt.NDArray[np.float64]
Indices: TypeAlias = npt.NDArray[np.intp]

#: Results are counted up to this factor around a number: how dense they are there says how often one is near
#: by accident.
AROUND: Final = 2.0
#: Of more factors no pairs are made, and of more pairs no products of four: accidents would abound.
_MOST_FACTORS: Final = 1200
_MOST_PAIRS: Final = 20_000


@dataclass(frozen=True, slots=True)
class Power:
    """What becomes of one constant before it is a factor: r, 1/r, √r or 1/√r.

    Attributes:
        text: with the constant for `{}`.
        of_word: what it is of a word.
        of_floats: of numbers.
        is_root: whether it is a root.
    """

    text: str
    of_word: Callable[[Words], Words]
    of_floats: Callable[[Floats], Floats]
    is_root: bool = False

    def of(self, read: Reading) -> Reading:
        """Of what a constant is read as."""
        if self is ITSELF:
            return read
        return Reading(self.of_word(read.word), self.text.format(read.text), Rule.RELATION)


ITSELF: Final = Power("{}", lambda word: word, lambda r: r)
POWERS: Final = (
    ITSELF,
    Power("1/({})", inverse, lambda r: 1 / r),
    Power("√({})", sqrt, np.sqrt, is_root=True),
    Power("1/√({})", rsqrt, lambda r: 1 / np.sqrt(r), is_root=True),
)
#: Without roots.
RATIONAL: Final = tuple(power for power in POWERS if not power.is_root)


class Products:
    """Products of powers of constants.

    Args:
        constants: positive numbers.
        powers: of each that are factors.
        read: how a constant is read.
    """

    def __init__(self, constants: Floats, powers: Sequence[Power], read: Callable[[float], Reading]) -> None:
        self._read = read
        self._constants = constants
        self._powers = powers
        with np.errstate(all="ignore"):
            self._factors = np.concatenate([power.of_floats(constants) for power in powers])

    def near(self, value: float, unit: float, count: int) -> Reading | None:
        """The product of two, three or four factors that is nearest to `value`.

        Args:
            value: a positive number.
            unit: of its rounding.
            count: of factors.

        Returns:
            None where none is within the roundings of so many operations, or where one may be by accident.
        """
        tables = self._tables(count)
        if tables is None:
            return None
        left, right = tables
        width = rounded_so_often(count) * unit
        # Each product is met once for every way to split its factors.
        around = left.ranges(right.values, value / AROUND, value * AROUND)[1].sum()
        crowd = float(around) / comb(count, left.factors.shape[1])
        if accidents(crowd, width / value) > thresholds.ACCIDENTS.value:
            return None
        return self._nearest(value, width, tables)

    def _nearest(self, value: float, width: float, tables: tuple[_Table, _Table]) -> Reading | None:
        left, right = tables
        first, counts = left.ranges(right.values, value - width, value + width)
        other = np.repeat(np.arange(right.values.size), counts)
        one = np.arange(int(counts.sum())) + np.repeat(first - np.cumsum(counts) + counts, counts)
        order = np.argsort(np.abs(left.values[one] * right.values[other] - value), kind="stable")
        for a, b in zip(one[order].tolist(), other[order].tolist()):
            chosen = [*left.factors[a].tolist(), *right.factors[b].tolist()]
            if self._may_meet(chosen):
                return self._product(chosen)
        return None

    def _tables(self, count: int) -> tuple[_Table, _Table] | None:
        if self._factors.size > _MOST_FACTORS:
            return None
        if count == _PAIR:
            return self._singles, self._singles
        if self._pairs.values.size > _MOST_PAIRS and count > _PAIR + 1:
            return None
        return self._pairs, self._singles if count == _PAIR + 1 else self._pairs

    @cached_property
    def _singles(self) -> _Table:
        return _Table.of(self._factors, np.arange(self._factors.size)[:, None])

    @cached_property
    def _pairs(self) -> _Table:
        chosen = np.stack(np.triu_indices(self._factors.size), axis=1)
        return _Table.of(self._factors[chosen].prod(axis=1), chosen)

    def _may_meet(self, chosen: Sequence[int]) -> bool:
        """Whether a product has neither r and 1/r nor two roots of r.

        √r √r is r, which is a factor of its own; in the field it is -r where r is no square.
        """
        found: dict[int, int] = {}
        for factor in set(chosen):
            power, base = divmod(factor, self._constants.size)
            is_root = self._powers[power].is_root
            if found.setdefault(2 * base + is_root, factor) != factor or (
                is_root and chosen.count(factor) > 1
            ):
                return False
        return True

    def _product(self, chosen: Sequence[int]) -> Reading:
        factors = []
        for factor in chosen:
            power, base = divmod(factor, self._constants.size)
            factors.append(self._powers[power].of(self._read(float(self._constants[base]))))
        word = reduce(multiply, (factor.word for factor in factors))
        return Reading(word, " * ".join(f"({factor.text})" for factor in factors), Rule.RELATION)


@dataclass(frozen=True, slots=True)
class _Table:
    """Products of one or two factors, in ascending order.

    Attributes:
        values: of the products.
        factors: the numbers of the factors of each, one row per product.
    """

    values: Floats
    factors: Indices

    @staticmethod
    def of(values: Floats, factors: Indices) -> _Table:
        """Of those that are positive and finite."""
        usable = np.flatnonzero((values > 0) & np.isfinite(values))
        order = usable[np.argsort(values[usable], kind="stable")]
        return _Table(values[order], factors[order])

    def ranges(self, others: Floats, low: float, high: float) -> tuple[Indices, Indices]:
        """For each of `others` which products with it are from `low` to `high`: the first, and how many."""
        with np.errstate(all="ignore"):
            first = np.searchsorted(self.values, low / others, "left")
            last = np.searchsorted(self.values, high / others, "right")
        return first, last - first


#: Factors of the smallest product.
_PAIR: Final = 2


def rounded_so_often(roundings: int) -> float:
    """By how many units a number may be off that so many roundings made: they hardly ever all go one way."""
    further = (roundings - 1) * thresholds.FURTHER_UNITS.value
    return float(thresholds.SNAP_UNITS.value + further)


def accidents(count: float, width: float) -> float:
    """How many of `count` numbers that are up to a factor of `AROUND` away are within `width`, relatively.

    They are taken to lie as densely everywhere.
    """
    return count * width / log(AROUND)
