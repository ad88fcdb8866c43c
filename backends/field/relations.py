"""Constants that a compiler made of others, and rounded.

A compiler moves factors together one after the other, and rounds every time. What is tried goes from few
operations to many: reciprocals and roots, sums and differences of two constants, products of two, three and
four. All of it ends where a number would be explained by accident: among ten constants products of four are
telling, among a hundred those of two.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cached_property
from typing import Any, Final, TypeAlias

import numpy as np

from hlotool.backends.field.factors import (
    AROUND,
    POWERS,
    RATIONAL,
    Floats,
    Power,
    Products,
    accidents,
    rounded_so_often,
)
from hlotool.backends.field.snapping import Precision, Reading, Rule
from hlotool.backends.field.words import Words, add, subtract
from hlotool.numerics import thresholds

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
