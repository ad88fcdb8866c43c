"""How far results are from what they should be, and whether a change brings them there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hlotool.backends.base import Value
from hlotool.ir.dtypes import Array
from hlotool.ir.types import Shape, ShapeIndex
from hlotool.values.flatten import flatten

#: A result counts as repaired when not more than this part of its error is left.
_LEFT = 0.05


class Errors:
    """The errors of some outputs of a tested program.

    Args:
        shape: of the results.
        expected: the right result.
        actual: the wrong one.
        outputs: indices of the arrays that count.
    """

    def __init__(self, shape: Shape, expected: Value, actual: Value, outputs: Sequence[ShapeIndex]) -> None:
        self._shape = shape
        self._expected = _arrays(shape, expected)
        self._outputs = [index for index in outputs if index in self._expected]
        self._before = self._errors(actual)

    def __len__(self) -> int:
        return len(self._outputs)

    def repaired(self, result: Value) -> int:
        """How many outputs are right, or nearly, in another result of the tested program."""
        after = self._errors(result)
        return sum(error <= _LEFT * before for before, error in zip(self._before, after))

    def _errors(self, result: Value) -> list[float]:
        found = _arrays(self._shape, result)
        return [_error(self._expected[index], found.get(index)) for index in self._outputs]


def _arrays(shape: Shape, value: Value) -> dict[ShapeIndex, Array]:
    return {
        index: np.asarray(part)
        for index, _, part in flatten(shape, value)
        if isinstance(part, np.ndarray | np.generic)
    }


def _error(expected: Array, actual: Array | None) -> float:
    """Root mean square of the differences; infinite where one side only is infinite or NaN."""
    if actual is None or actual.shape != expected.shape:
        return float("inf")
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        e, a = expected.astype(wide), actual.astype(wide)
        same = (e == a) | (np.isnan(e) & np.isnan(a))
        squares = np.abs(np.where(same, 0, e - a)) ** 2
    # A count of what is not finite, far above all finite errors, so that fewer of them are an improvement.
    special = ~np.isfinite(squares)
    finite = float(np.sqrt(np.mean(np.where(special, 0, squares)))) if squares.size else 0.0
    return finite + 1e200 * int(special.sum())
