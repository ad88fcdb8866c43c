"""What functions without an inverse in the field returned so far: by value, what it came from."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hlotool.backends.field.hashing import Words
from hlotool.backends.field.words import split


class Memo:
    """Numbers, equal modulo P, and what was noted with the first of each.

    Args:
        columns: words noted with every number.
    """

    def __init__(self, columns: int = 1) -> None:
        empty: Words = np.zeros(0, np.uint64)
        self._keys, self._columns = empty, [empty] * columns
        self._new: list[tuple[Words, ...]] = []

    def note(self, numbers: Words, *columns: Words) -> None:
        """Keep words that belong to numbers; they broadcast to the dimensions of `numbers`."""
        held = (np.broadcast_to(column, numbers.shape).ravel() for column in columns)
        self._new.append((split(numbers)[0].ravel(), *held))

    def find(self, numbers: Words) -> tuple[npt.NDArray[np.bool_], list[Words]]:
        """Which of the numbers are known, and for those, in one dimension, what was noted."""
        self._sort()
        p, _ = split(numbers)
        if not self._keys.size:
            return np.zeros(p.shape, np.bool_), []
        at = np.minimum(np.searchsorted(self._keys, p), self._keys.size - 1)
        is_known = np.asarray(self._keys[at] == p)
        return is_known, [column[at[is_known]] for column in self._columns]

    def _sort(self) -> None:
        if not self._new:
            return
        keys, *columns = (np.concatenate(parts) for parts in zip((self._keys, *self._columns), *self._new))
        self._keys, first = np.unique(keys, return_index=True)
        self._columns = [column[first] for column in columns]
        self._new = []
