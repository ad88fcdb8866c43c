"""Stable sort by an arbitrary comparator, vectorised over all elements and rows: quicksort by levels."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hlotool.ir.dtypes import Array

#: Whether the elements with the first indices come before those with the second; both [count].
Less = Callable[[Array, Array], Array]


def partition_sort(rows: int, length: int, less: Less) -> Array:
    """The stable order of each row, as indices into all rows one after the other [rows · length].

    At every level each segment is parted by an element drawn from it, all segments at once. Equal elements
    are told apart by where they stood, so that a segment of equal ones is parted like any other. For a
    comparator that is no strict weak order the result is some permutation, as in XLA.
    """
    order = np.arange(rows * length)
    starts, sizes = np.arange(rows) * length, np.full(rows, length)
    draw = np.random.default_rng(0)
    while (several := sizes > 1).any():
        starts, sizes = starts[several], sizes[several]
        pivots = starts + draw.integers(0, sizes)
        order[starts], order[pivots] = order[pivots], order[starts]
        left = _part(order, starts, sizes, less)
        starts = np.stack([starts, starts + left + 1], axis=1).reshape(-1)
        sizes = np.stack([left, sizes - left - 1], axis=1).reshape(-1)
    return order


def _part(order: Array, starts: Array, sizes: Array, less: Less) -> Array:
    """Move to the left of each segment what comes before its first element, the pivot, which follows then.

    Args:
        order: what is changed.
        starts: where the segments begin, ascending.
        sizes: how long they are, 2 at least.

    Returns:
        How many elements each has to the left of its pivot.
    """
    firsts = np.cumsum(sizes) - sizes  # of each segment, among the elements looked at
    within = np.arange(firsts[-1] + sizes[-1]) - np.repeat(firsts, sizes)
    places = within + np.repeat(starts, sizes)
    elements, pivot = order[places], np.repeat(order[starts], sizes)
    stood_before = elements < pivot
    earlier, later = np.where(stood_before, elements, pivot), np.where(stood_before, pivot, elements)
    # Whoever stood before the other comes first unless the other has to.
    is_left = less(later, earlier) ^ stood_before
    is_left[firsts] = False
    left = np.add.reduceat(is_left, firsts, dtype=np.int64)
    to_left = within < np.repeat(left, sizes)
    order[places[to_left]] = elements[is_left]
    order[places[~to_left]] = elements[~is_left]
    return left
