"""Stable merge sort by an arbitrary comparator, vectorised over all elements and rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hlotool.ir.dtypes import Array

#: Whether the elements with the first indices come before those with the second; both [rows, count].
Less = Callable[[Array, Array], Array]


def merge_sort(rows: int, length: int, less: Less) -> Array:
    """The stable order of each row, as indices [rows, length].

    Every level merges all pairs of neighbouring runs at once: an element of the left run moves right by the
    number of elements of the right run that come before it, found by binary search. For a comparator that is
    no strict weak order the result is some permutation, as in XLA.
    """
    order = np.broadcast_to(np.arange(length), (rows, length)).copy()
    width = 1
    while width < length:
        order = _merge_level(order, width, less)
        width *= 2
    return order


def _merge_level(order: Array, width: int, less: Less) -> Array:
    length = order.shape[1]
    slots = np.arange(length)
    is_left = slots // width % 2 == 0
    left = slots[is_left]
    right_start = np.minimum(left // (2 * width) * (2 * width) + width, length)
    right_stop = np.minimum(right_start + width, length)
    before = _count_before(order, left, right_start, right_stop, less)
    target = left + _monotone(before, left // (2 * width))
    merged = np.empty_like(order)
    taken = np.zeros(order.shape, np.bool_)
    np.put_along_axis(taken, target, True, axis=1)
    merged[taken] = order[:, left].reshape(-1)
    merged[~taken] = order[:, slots[~is_left]].reshape(-1)
    return merged


def _count_before(order: Array, left: Array, start: Array, stop: Array, less: Less) -> Array:
    """For each left element the number of elements of its right run that come strictly before it."""
    rows = len(order)
    low = np.broadcast_to(start, (rows, len(left))).copy()
    high = np.broadcast_to(stop, low.shape).copy()
    elements = order[:, left]
    while (low < high).any():
        middle = (low + high) // 2
        probe = np.take_along_axis(order, np.minimum(middle, order.shape[1] - 1), axis=1)
        first = less(probe, elements) & (low < high)
        low, high = np.where(first, middle + 1, low), np.where(first | (low >= high), high, middle)
    return low - start


def _monotone(before: Array, run: Array) -> Array:
    """Never decreasing inside a run, which it is already for a strict weak order."""
    offset = run * (before.max(initial=0) + 1)
    running: Array = np.maximum.accumulate(before + offset, axis=1) - offset
    return running
