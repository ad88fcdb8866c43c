"""What a comparator makes of every combination of answers that comparing keys can give.

A comparator that only asks how some keys of two elements compare is a function of a few answers: less, equal,
or greater for each key. It sorts by those keys one after the other exactly if its truth table says so.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hlotool.ir.dtypes import Array

#: Signs of the comparison of two keys, the answers that there are.
_SIGNS = np.array([-1, 0, 1], np.int8)

#: The same of two truth values, and the values themselves.
_PRED_SIGNS = np.array([-1, 0, 0, 1], np.int8)
_PRED_VALUES = np.array([[False, False, True, True], [True, False, True, False]])

#: A key, by number, and whether larger ones come first.
Place = tuple[int, bool]


class AnswerTable:
    """All combinations of answers, one in each row.

    Args:
        predicates: for each key, whether it is a truth value: then it counts which,
            even where both are equal.
        refinements: pairs of keys of which the second tells apart what the first takes for equal, and else
            says the same (the two orders of floats).

    Attributes:
        signs: for each key, the sign of comparing that of the first element with that of the second [rows].
        size: number of rows.
    """

    def __init__(self, predicates: Sequence[bool], refinements: Sequence[Place | tuple[int, int]]) -> None:
        sizes = [len(_PRED_SIGNS if p else _SIGNS) for p in predicates]
        self._answers = np.indices(sizes).reshape((len(sizes), -1))
        self._predicates = predicates
        self._refinements = refinements
        self.signs = [(_PRED_SIGNS if p else _SIGNS)[a] for p, a in zip(predicates, self._answers)]
        self.size = self._answers.shape[1]

    def values(self, number: int, of_first: bool) -> Array:
        """The truth values that are compared as key `number`: of the first elements or the second."""
        values: Array = _PRED_VALUES[0 if of_first else 1][self._answers[number]]
        return values

    def lexicographic(self, before: Array) -> tuple[list[Place], bool] | None:
        """The order that a comparator asks for.

        Args:
            before: in every row, whether the first element comes before the second.

        Returns:
            The keys, most significant first, and whether this is certain. It is not where keys are not
            independent of each other and the order follows only then. None when it is no such order.
        """
        possible, same = (np.ones(self.size, np.bool_) for _ in range(2))
        for coarse, fine in self._refinements:
            same &= self.signs[coarse] == self.signs[fine]
            possible &= (self.signs[coarse] == 0) | (self.signs[coarse] == self.signs[fine])
        found = self._order(before, possible)
        if found is not None or not self._refinements:
            return found
        # Perhaps among numbers of which no two differ in the one order only.
        found = self._order(before, same)
        return None if found is None else (found[0], False)

    def _order(self, before: Array, rows: Array) -> tuple[list[Place], bool] | None:
        order: list[Place] = []
        certain = True
        while before[rows].any():
            place = self._most_significant(before, rows)
            if place is None:
                return None
            order.append(place)
            number = place[0]
            rows = rows & (self.signs[number] == 0)
            if self._predicates[number]:
                false, true = (rows & (self.values(number, True) == value) for value in (False, True))
                certain = certain and bool((before[false] == before[true]).all())
                # What follows is asked of those elements only that differ in it.
                rows = false if before[false].any() else true
        return order, certain

    def _most_significant(self, before: Array, rows: Array) -> Place | None:
        """The key that decides alone where it differs."""
        for number, signs in enumerate(self.signs):
            less, greater = before[rows & (signs < 0)], before[rows & (signs > 0)]
            if less.size and less.all() and not greater.any():
                return number, False
            if greater.size and greater.all() and not less.any():
                return number, True
        return None
