"""Legal orders of equal elements: where a sort is not stable, HLO leaves it open how they come out.

The kernel of `sort` is stable. Within `ties_in`, programs are compiled to put equal elements of the unstable
sorts in another order: one that is known (that of the C++ library), or the one that a result at hand shows
(`observed_ties`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from math import log2
from typing import TypeAlias

import numpy as np

from hlotool.ir.dtypes import Array
from hlotool.ir.module import Instruction, Module
from hlotool.workers.work_limit import spend

#: Rearranges equal elements of one sort. Takes the sort, its operands with the sorted dimension last and the
#: rows flat [rows, length], the stable order [rows, length], and for each place the number of its group of
#: equal elements, ascending from 0 in each row [rows, length]; returns another order, or the same.
TieOrder: TypeAlias = Callable[[Instruction, Sequence[Array], Array, Array], Array]

_chosen: ContextVar[TieOrder | None] = ContextVar("tie_order", default=None)


@contextmanager
def ties_in(order: TieOrder) -> Iterator[None]:
    """Programs that are compiled in this block put ties of unstable sorts in `order`."""
    token = _chosen.set(order)
    try:
        yield
    finally:
        _chosen.reset(token)


def order_of_ties(sort: Instruction) -> TieOrder | None:
    """How a sort that is compiled now orders equal elements; None for the order in which they stood."""
    return None if sort.flag("is_stable") else _chosen.get()


def unstable_sorts(module: Module) -> list[Instruction]:
    """The sorts that may put equal elements in any order, and have equal elements that can be told apart."""
    return [i for i in module.instructions() if i.opcode == "sort" and not i.flag("is_stable")]


def reversed_ties(_: Instruction, __: Sequence[Array], order: Array, groups: Array) -> Array:
    """The last of equal elements first."""
    rows, length = order.shape
    turned = np.argsort(np.flip(groups, 1), axis=1, kind="stable")
    return np.take_along_axis(order, length - 1 - turned, axis=1) if rows else order


#: Elements that are sorted one by one, in Python: in a few seconds.
_MOST = 1 << 20
#: Units of work of one of n·log2(n) steps there.
_STEP = 250


def library_order(_: Instruction, __: Sequence[Array], order: Array, groups: Array) -> Array:
    """The order of `std::sort` in libstdc++, which XLA's CPU backend calls.

    Up to 16 elements that is an insertion sort, which is stable. Of rows that are too large to be sorted one
    by one the stable order is returned.
    """
    rows, length = order.shape
    if length <= _FEW or order.size > _MOST:
        return order
    spend(int(order.size * log2(length) * _STEP))
    ranks = np.empty_like(groups)
    np.put_along_axis(ranks, order, groups, axis=1)
    return np.array([introsort(row) for row in ranks.tolist()], order.dtype).reshape(rows, length)


#: What `std::sort` leaves to an insertion sort.
_FEW = 16


def introsort(ranks: Sequence[int]) -> list[int]:
    """The order in which `std::sort` of libstdc++ leaves elements of these ranks.

    Median of three, Hoare's partition, and a final insertion sort; heap sort below 2·log2(n) levels
    (bits/stl_algo.h and bits/stl_heap.h, which have not changed the order in twenty years).
    """
    return _Introsort(ranks).order


class _Introsort:
    def __init__(self, ranks: Sequence[int]) -> None:
        self._ranks = ranks
        self.order = list(range(len(ranks)))
        if ranks:
            self._loop(0, len(ranks), 2 * (len(ranks).bit_length() - 1))
            self._insertion(0, min(_FEW, len(ranks)))
            for at in range(_FEW, len(ranks)):
                self._insert(at, 0)

    def _is_less(self, first: int, second: int) -> bool:
        """Whether what stands at one place comes before what stands at another."""
        return self._ranks[self.order[first]] < self._ranks[self.order[second]]

    def _swap(self, first: int, second: int) -> None:
        order = self.order
        order[first], order[second] = order[second], order[first]

    def _loop(self, first: int, last: int, depth: int) -> None:
        while last - first > _FEW:
            if not depth:
                self._heap_sort(first, last)
                return
            depth -= 1
            self._median_to(first, first + 1, first + (last - first) // 2, last - 1)
            cut = self._partition(first + 1, last, first)
            self._loop(cut, last, depth)
            last = cut

    def _median_to(self, place: int, a: int, b: int, c: int) -> None:
        less = self._is_less
        if less(a, b):
            chosen = b if less(b, c) else c if less(a, c) else a
        else:
            chosen = a if less(a, c) else c if less(b, c) else b
        self._swap(place, chosen)

    def _partition(self, first: int, last: int, pivot: int) -> int:
        while True:
            while self._is_less(first, pivot):
                first += 1
            last -= 1
            while self._is_less(pivot, last):
                last -= 1
            if first >= last:
                return first
            self._swap(first, last)
            first += 1

    def _insertion(self, first: int, last: int) -> None:
        for at in range(first + 1, last):
            self._insert(at, first)

    def _insert(self, at: int, first: int) -> None:
        """Move an element down past all that it comes before."""
        order, ranks = self.order, self._ranks
        element = order[at]
        while at > first and ranks[element] < ranks[order[at - 1]]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = element

    def _heap_sort(self, first: int, last: int) -> None:
        size = last - first
        for hole in range((size - 2) // 2, -1, -1):
            self._sift(first, hole, size, self.order[first + hole])
        for end in range(size - 1, 0, -1):
            element = self.order[first + end]
            self.order[first + end] = self.order[first]
            self._sift(first, 0, end, element)

    def _sift(self, first: int, hole: int, size: int, element: int) -> None:
        """`std::__adjust_heap`: the hole moves down to a leaf, then the element up from there."""
        order, ranks, top, child = self.order, self._ranks, hole, hole
        while child < (size - 1) // 2:
            child = 2 * (child + 1)
            if ranks[order[first + child]] < ranks[order[first + child - 1]]:
                child -= 1
            order[first + hole] = order[first + child]
            hole = child
        if size % 2 == 0 and child == (size - 2) // 2:
            child = 2 * (child + 1)
            order[first + hole] = order[first + child - 1]
            hole = child - 1
        parent = (hole - 1) // 2
        while hole > top and ranks[order[first + parent]] < ranks[element]:
            order[first + hole] = order[first + parent]
            hole, parent = parent, (parent - 1) // 2
        order[first + hole] = element
