"""Constants that a compiler made of others, and rounded.

One operation first: reciprocals, roots, products, quotients, sums, differences. Then products of three
constants, reciprocals and roots: a compiler moves factors together one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hlotool.backends.field.snapping import Precision, Reading, Rule, slack
from hlotool.backends.field.words import Words, add, divide, inverse, multiply, rsqrt, sqrt, subtract
from hlotool.numerics import thresholds

Floats = npt.NDArray[np.float64]

#: Of more written constants no pairs are tried.
_MOST_IN_PAIRS: Final = 300
#: Of more written constants no products of three are tried: among so many results one fits by chance.
_MOST_IN_THREES: Final = 25
#: Narrower types have so few numbers that nearly each of them is made of others by chance.
_LEAST_BITS: Final = 11


@dataclass(frozen=True, slots=True)
class _Results:
    """What one operation makes of known constants.

    Attributes:
        values: positive finite results, in ascending order.
        places: the index of each in the table that they were computed in.
        reading: of the result at an index.
    """

    values: Floats
    places: npt.NDArray[np.intp]
    reading: Callable[[int], Reading]

    @staticmethod
    def of(values: Floats, reading: Callable[[int], Reading]) -> _Results:
        """From a table with one dimension."""
        usable = np.flatnonzero((values > 0) & np.isfinite(values))
        order = usable[np.argsort(values[usable], kind="stable")]
        return _Results(values[order], order, reading)

    def near(self, value: float, width: float) -> Reading | None:
        """The reading of the result nearest to `value`, if that is no further away than `width`."""
        after = int(np.searchsorted(self.values, value))
        near = [n for n in (after - 1, after) if 0 <= n < self.values.size]
        nearest = min(near, key=lambda n: abs(float(self.values[n]) - value), default=None)
        if nearest is None or abs(float(self.values[nearest]) - value) > width:
            return None
        return self.reading(int(self.places[nearest]))


class Relations:
    """What a few operations make of the reference's constants.

    Args:
        written: positive constants of the program text: r, 1/r, √r, 1/√r; r*s, r/s, r+s, r-s of any two; and
            products of any three of r, 1/r, √r, 1/√r.
        folded: positive values that follow from constants alone: r, 1/r, √r, 1/√r, and nearly r.
        read: how a constant is read.
    """

    def __init__(
        self, written: Collection[float], folded: Collection[float], read: Callable[[float], Reading]
    ) -> None:
        self._read = read
        self._all = np.array(sorted({*written, *folded, 1.0}))
        self._folded = np.array(sorted(folded))
        self._written = np.array(sorted({*written, 1.0}))

    def explain(self, value: float, precision: Precision) -> Reading | None:
        """The simplest relation that gives a positive `value` of this type, up to its rounding."""
        if precision.bits < _LEAST_BITS:
            return None
        unit = value * 2.0**-precision.bits
        width = float(slack()) * unit
        tables = (results for name in ("_of_one", "_of_two", "_of_three") for results in getattr(self, name))
        found = next(filter(None, (results.near(value, width) for results in tables)), None)
        return found or self._of_functions.near(value, thresholds.FOLDED_UNITS.value * unit)

    @cached_property
    def _of_one(self) -> list[_Results]:
        def reading(n: int, power: _Unary) -> Reading:
            return power(self._read(float(self._all[n])))

        return [_Results.of(values, partial(reading, power=power)) for power, values in _powers(self._all)]

    @cached_property
    def _of_functions(self) -> _Results:
        """Functions of constants, which libraries fold to one value or its neighbour."""
        return _Results.of(self._folded, lambda n: self._read(float(self._folded[n])))

    @cached_property
    def _of_two(self) -> list[_Results]:
        w = self._written[:_MOST_IN_PAIRS]
        found = []
        for sign, function, ufunc in _BINARY:
            with np.errstate(all="ignore"):
                values = ufunc(w[:, None], w)

            def reading(n: int, sign: str = sign, function: _Binary = function) -> Reading:
                a, b = (self._read(float(w[i])) for i in divmod(n, len(w)))
                return _relation(function(a.word, b.word), f"({a.text}) {sign} ({b.text})")

            found.append(_Results.of(values.reshape(-1), reading))
        return found

    @cached_property
    def _of_three(self) -> list[_Results]:
        w = self._written
        if len(w) > _MOST_IN_THREES:
            return []
        powers = _powers(w)
        factors = np.concatenate([values for _, values in powers])
        first, second, third = _different_threes(len(w), len(powers))

        def factor(n: int) -> Reading:
            power, at = divmod(n, len(w))
            return powers[power][0](self._read(float(w[at])))

        def reading(n: int) -> Reading:
            a, b, c = (factor(int(indices[n])) for indices in (first, second, third))
            word = multiply(multiply(a.word, b.word), c.word)
            return _relation(word, f"({a.text}) * ({b.text}) * ({c.text})")

        return [_Results.of(factors[first] * factors[second] * factors[third], reading)]


_Unary = Callable[[Reading], Reading]
_Binary = Callable[[Words, Words], Words]
_BINARY: Final[tuple[tuple[str, _Binary, Any], ...]] = (
    ("*", multiply, np.multiply),
    ("/", divide, np.divide),
    ("+", add, np.add),
    ("-", subtract, np.subtract),
)


#: Of `_powers`: from here on they are roots.
_FIRST_ROOT: Final = 2


def _powers(values: Floats) -> list[tuple[_Unary, Floats]]:
    """r, 1/r, √r, 1/√r: of a reading, and of all values."""
    with np.errstate(all="ignore"):
        return [
            (lambda r: r, values),
            (lambda r: _relation(inverse(r.word), f"1/({r.text})"), 1 / values),
            (lambda r: _relation(sqrt(r.word), f"√({r.text})"), np.sqrt(values)),
            (lambda r: _relation(rsqrt(r.word), f"1/√({r.text})"), 1 / np.sqrt(values)),
        ]


def _different_threes(constants: int, powers: int) -> Sequence[npt.NDArray[np.intp]]:
    """All i ≤ j ≤ k of factors that are not two roots of one constant.

    √r √r is r, which is a factor of its own; in the field it is -r where r is no square.
    """
    i, j, k = np.indices((constants * powers,) * 3, np.intp).reshape(3, -1)

    def are_roots_of_one(a: npt.NDArray[np.intp], b: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
        roots = _FIRST_ROOT * constants
        return np.asarray((a >= roots) & (b >= roots) & (a % constants == b % constants))

    chosen = (i <= j) & (j <= k)
    chosen &= ~(are_roots_of_one(i, j) | are_roots_of_one(j, k) | are_roots_of_one(i, k))
    return i[chosen], j[chosen], k[chosen]


def _relation(word: Words, text: str) -> Reading:
    return Reading(word, text, Rule.RELATION)
