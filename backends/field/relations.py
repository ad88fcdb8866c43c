"""Constants that a compiler made of others, and rounded: products, quotients, reciprocals, roots and sums."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from hlotool.backends.field.snapping import Precision, Reading, Rule, slack
from hlotool.backends.field.words import Words, add, divide, inverse, multiply, rsqrt, sqrt, subtract

Floats = npt.NDArray[np.float64]

#: Of more written constants no pairs are tried.
_MOST_IN_PAIRS: Final = 300
#: Narrower types have so few numbers that nearly each of them is made of others by chance.
_LEAST_BITS: Final = 11


@dataclass(frozen=True, slots=True)
class _Results:
    """What one operation makes of known constants, in ascending order.

    Attributes:
        values: positive finite results.
        operands: the constants of each; operations on one do not use the second.
        operation: the same on readings.
    """

    values: Floats
    operands: tuple[Floats, Floats]
    operation: Callable[[Reading, Reading], Reading]

    def nearest(self, value: float) -> int | None:
        """The number of the nearest result."""
        if not self.values.size:
            return None
        after = int(np.searchsorted(self.values, value))
        near = [n for n in (after - 1, after) if 0 <= n < self.values.size]
        return min(near, key=lambda n: abs(float(self.values[n]) - value))


class Relations:
    """What one operation makes of the reference's constants.

    Args:
        written: positive constants of the program text: r, 1/r, √r, 1/√r, and r*s, r/s, r+s, r-s of any two.
        folded: positive values that follow from constants alone: r, 1/r, √r, 1/√r.
        read: how a constant is read.
    """

    def __init__(
        self, written: Collection[float], folded: Collection[float], read: Callable[[float], Reading]
    ) -> None:
        self._read = read
        self._all = np.array(sorted({*written, *folded, 1.0}))
        self._written = np.array(sorted({*written, 1.0}))[:_MOST_IN_PAIRS]
        self._tables = self._made()

    def explain(self, value: float, precision: Precision) -> Reading | None:
        """The simplest relation that gives a positive `value` of this type, up to its rounding."""
        if precision.bits < _LEAST_BITS:
            return None
        for table in self._tables:
            nearest = table.nearest(value)
            if nearest is None or abs(table.values[nearest] - value) * 2.0**precision.bits > slack() * value:
                continue
            first, second = (float(operand[nearest]) for operand in table.operands)
            return table.operation(self._read(first), self._read(second))
        return None

    def _made(self) -> list[_Results]:
        r, one = self._all, np.ones(1)
        w = self._written
        with np.errstate(all="ignore"):
            return [
                _results(r, one, r[:, None], lambda a, _: a),
                _results(r, one, 1 / r[:, None], lambda a, _: _relation(inverse(a.word), f"1/({a.text})")),
                _results(r, one, np.sqrt(r)[:, None], lambda a, _: _relation(sqrt(a.word), f"√({a.text})")),
                _results(
                    r, one, 1 / np.sqrt(r)[:, None], lambda a, _: _relation(rsqrt(a.word), f"1/√({a.text})")
                ),
                _results(w, w, w[:, None] * w, _binary("*", multiply)),
                _results(w, w, w[:, None] / w, _binary("/", divide)),
                _results(w, w, w[:, None] + w, _binary("+", add)),
                _results(w, w, w[:, None] - w, _binary("-", subtract)),
            ]


def _results(
    first: Floats, second: Floats, values: Floats, operation: Callable[[Reading, Reading], Reading]
) -> _Results:
    """Those of a table with a row for each of `first` and a column for each of `second`."""
    usable = np.flatnonzero((values > 0) & np.isfinite(values))
    order = usable[np.argsort(values.reshape(-1)[usable], kind="stable")]
    rows, columns = np.divmod(order, len(second))
    return _Results(values.reshape(-1)[order], (first[rows], second[columns]), operation)


def _binary(sign: str, function: Callable[[Words, Words], Words]) -> Callable[[Reading, Reading], Reading]:
    return lambda a, b: _relation(function(a.word, b.word), f"({a.text}) {sign} ({b.text})")


def _relation(word: Words, text: str) -> Reading:
    return Reading(word, text, Rule.RELATION)
