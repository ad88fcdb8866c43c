"""Constants that a compiler made of others, and rounded: products of a few, their reciprocals and roots."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from math import comb, log
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from hlotool.backends.field.snapping import Precision, Reading, Rule
from hlotool.backends.field.words import Words, add, inverse, multiply, rsqrt, sqrt, subtract
from hlotool.facts import thresholds

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


#: Of more constants no sums are made.
_MOST_IN_SUMS: Final = 300
#: Factors of products.
_COUNTS: Final = (2, 3, 4)


class _Results:
    """What one operation makes of known constants.

    Args:
        values: of all results, in one dimension; those that are not positive and finite do not count.
        reading: of the result at an index.
    """

    def __init__(self, values: Floats, reading: Callable[[int], Reading]) -> None:
        usable = np.flatnonzero((values > 0) & np.isfinite(values))
        self._places = usable[np.argsort(values[usable], kind="stable")]
        self._values = values[self._places]
        self._reading = reading

    def near(self, value: float, width: float) -> Reading | None:
        """The reading of the result nearest to `value`, if it is no further away, and by no accident."""
        first, last = np.searchsorted(self._values, [value / AROUND, value * AROUND])
        if accidents(float(last - first), width / value) > thresholds.ACCIDENTS.value:
            return None
        after = int(np.searchsorted(self._values, value))
        near = [n for n in (after - 1, after) if 0 <= n < self._values.size]
        nearest = min(near, key=lambda n: abs(float(self._values[n]) - value), default=None)
        if nearest is None or abs(float(self._values[nearest]) - value) > width:
            return None
        return self._reading(int(self._places[nearest]))


class Relations:
    """What a few operations make of the reference's constants.

    Args:
        written: positive constants of the program text.
        folded: positive values that follow from constants alone, each with the distance by which roundings
            may have moved it.
        read: how a constant is read.
    """

    def __init__(
        self, written: Collection[float], folded: Mapping[float, float], read: Callable[[float], Reading]
    ) -> None:
        self._read = read
        self._all = np.array(sorted({*written, *folded, 1.0}))
        self._folded = np.array(sorted(folded))
        self._off = np.array([folded[value] for value in sorted(folded)])
        self._written = np.array(sorted({*written, 1.0}))

    def explain(self, value: float, precision: Precision) -> Reading | None:
        """The relation of the fewest operations that gives a positive `value` up to roundings."""
        return next(filter(None, self._found(value, value * 2.0**-precision.bits)), None)

    def _found(self, value: float, unit: float) -> Iterator[Reading | None]:
        width = rounded_so_often(1) * unit
        yield from (results.near(value, width) for results in self._of_one)
        yield self._near_folded(value, thresholds.FOLDED_UNITS.value * unit)
        yield from (results.near(value, width) for results in self._sums)
        for count in _COUNTS:
            yield from (products.near(value, unit, count) for products in self._products)

    @cached_property
    def _of_one(self) -> list[_Results]:
        def results(power: Power) -> _Results:
            values = power.of_floats(self._all)
            return _Results(values, lambda n: power.of(self._read(float(self._all[n]))))

        return [results(power) for power in POWERS]

    def _near_folded(self, value: float, width: float) -> Reading | None:
        """Functions of constants: libraries fold them to neighbours; what cancels is further off."""
        around = np.flatnonzero((self._folded > value / AROUND) & (self._folded < value * AROUND))
        widths = np.maximum(width, self._off[around])
        # Values that may be anything explain nothing: the surest ones count, as far as none fits by accident.
        surest = np.argsort(widths, kind="stable")
        likely = np.cumsum(widths[surest]) * accidents(1.0, 1 / value)
        usable = surest[likely <= thresholds.ACCIDENTS.value]
        distance = np.abs(self._folded[around[usable]] - value)
        fitting = np.flatnonzero(distance <= widths[usable])
        if not fitting.size:
            return None
        nearest = around[usable[fitting[np.argmin(distance[fitting])]]]
        return self._read(float(self._folded[nearest]))

    @cached_property
    def _sums(self) -> list[_Results]:
        w = self._written[:_MOST_IN_SUMS]

        def results(sign: str, of_words: _Binary, of_floats: Any) -> _Results:
            def reading(n: int) -> Reading:
                a, b = (self._read(float(w[i])) for i in divmod(n, len(w)))
                return Reading(of_words(a.word, b.word), f"({a.text}) {sign} ({b.text})", Rule.RELATION)

            return _Results(of_floats(w[:, None], w).reshape(-1), reading)

        return [results("+", add, np.add), results("-", subtract, np.subtract)]

    @cached_property
    def _products(self) -> list[Products]:
        """Of many factors and of fewer: where so many would be accidents, fewer may tell."""
        own, all_ = self._written[self._written != 1], self._all[self._all != 1]
        return [
            Products(all_, POWERS, self._read),
            Products(all_, RATIONAL, self._read),
            Products(own, RATIONAL, self._read),
        ]


_Binary: TypeAlias = Callable[[Words, Words], Words]
