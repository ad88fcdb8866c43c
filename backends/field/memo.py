"""What functions without an inverse in the field returned so far: by value, what it came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hlotool.backends.field.hashing import Words
from hlotool.backends.field.words import split


@dataclass(frozen=True, slots=True)
class _Run:
    """Numbers in ascending order, each once, and what was noted with them."""

    keys: Words
    columns: Sequence[Words]

    @staticmethod
    def of(keys: Words, columns: Sequence[Words]) -> _Run:
        """Of several equal numbers the first one counts."""
        different, first = np.unique(keys, return_index=True)
        return _Run(different, [column[first] for column in columns])

    def with_newer(self, newer: _Run) -> _Run:
        """Both in one."""
        columns = [np.concatenate(pair) for pair in zip(self.columns, newer.columns)]
        return _Run.of(np.concatenate([self.keys, newer.keys]), columns)


class Memo:
    """Numbers, equal modulo P, and what was noted with the first of each.

    Args:
        columns: words noted with every number.
    """

    def __init__(self, columns: int = 1) -> None:
        self._columns = columns
        # The oldest first, each more than twice as long as the next: there are few, and words move seldom.
        self._runs: list[_Run] = []
        self._new: list[tuple[Words, ...]] = []

    def note(self, numbers: Words, *columns: Words) -> None:
        """Keep words that belong to numbers; they broadcast to the dimensions of `numbers`."""
        if numbers.size:
            held = (np.broadcast_to(column, numbers.shape).reshape(-1) for column in columns)
            self._new.append((split(numbers)[0].reshape(-1), *held))

    def find(self, numbers: Words) -> tuple[npt.NDArray[np.bool_], list[Words]]:
        """Which of the numbers are known, and for those, in one dimension, what was noted.

        The list is empty where none is known.
        """
        self._sort()
        p, _ = split(numbers)
        is_known = np.zeros(p.shape, np.bool_)
        found: list[Words] = []
        for run in self._runs:
            at = np.minimum(run.keys.searchsorted(p), run.keys.size - 1)
            is_here = np.asarray((run.keys[at] == p) & ~is_known)
            if is_here.any():
                found = found or [np.empty(p.shape, np.uint64) for _ in range(self._columns)]
                for column, noted in zip(found, run.columns):
                    column[is_here] = noted[at[is_here]]
                is_known |= is_here
        return is_known, [column[is_known] for column in found]

    def _sort(self) -> None:
        """Put what is new in order."""
        if not self._new:
            return
        keys, *columns = map(np.concatenate, zip(*self._new))
        self._new = []
        self._runs.append(_Run.of(keys, columns))
        while len(self._runs) > 1 and self._runs[-2].keys.size <= 2 * self._runs[-1].keys.size:
            newer, older = self._runs.pop(), self._runs.pop()
            self._runs.append(older.with_newer(newer))
