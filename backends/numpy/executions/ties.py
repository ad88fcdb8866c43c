"""Orders of equal elements, which an unstable sort leaves open: legal ones, and the one that a result
shows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from math import log2
from typing import TypeAlias

import numpy as np

from hlotool.backends.base import Value
from hlotool.backends.numpy.bit_patterns import bitcaster
from hlotool.backends.numpy.ordering import take_along_last, total_order_keys
from hlotool.ir.arrays import Array, flatten
from hlotool.ir.attributes import SliceDim
from hlotool.ir.module import Instruction, Module
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import ArrayShape, ShapeIndex
from hlotool.ir.walk import through_tuple
from hlotool.system.resources import spend

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


class ObservedTies:
    """A `TieOrder`: that of a result where it shows one, else that of the C++ library.

    Args:
        module: the program.
        expected: what it returns on the same arguments with ties in the order in which they stood.
        actual: what another execution of it returned.
    """

    def __init__(self, module: Module, expected: Value, actual: Value) -> None:
        self._seen: dict[str, dict[int, _Seen]] = {}
        root = module.entry.root
        names = Counter(sort.name for sort in unstable_sorts(module))
        walk = _Walk()
        for (index, shape, want), (_, _, have) in zip(
            flatten(root.shape, actual), flatten(root.shape, expected)
        ):
            if isinstance(shape, ArrayShape) and np.shape(want) == np.shape(have):
                shown = _Seen(np.asarray(want), np.asarray(have), np.ones(np.shape(want), np.bool_))
                walk.back(root, index, shown, ())
        for sort, found in walk.found:
            # Programs in other types have other instructions, of the same names.
            if names[sort.name] == 1:
                seen = self._seen.setdefault(sort.name, {})
                seen.setdefault(len(seen), found)

    def __call__(self, sort: Instruction, rows: Sequence[Array], order: Array, groups: Array) -> Array:
        """See `TieOrder`."""
        seen = [one for one in self._seen.get(sort.name, {}).values() if one.want.size == order.size]
        if not seen:
            return library_order(sort, rows, order, groups)
        (axis,) = sort.integers("dimensions")
        shown = [
            one.of_rows(axis, order, rows)
            for one in sorted(seen, key=lambda one: (one.operand is None, -one.known.sum()))
        ]
        group = (groups + order.shape[1] * np.arange(len(order))[:, None]).reshape(-1)
        known = np.logical_and.reduce([known for _, _, known in shown])
        have = np.stack([group, *(c for own, _, _ in shown for c in _columns(own))], axis=1)
        want = np.stack([group, *(c for _, wanted, _ in shown for c in _columns(wanted))], axis=1)
        moved: Array = order.reshape(-1)[_assigned(have, want, known)]
        return moved.reshape(order.shape)


@dataclass(frozen=True, slots=True)
class _Seen:
    """What a result shows of an array, in arrays of its shape.

    Attributes:
        want: its elements, or what the program made of them.
        have: the same with ties in the order in which they stood.
        known: which elements of the two are known.
        operand: of the sort, whose elements these are; None where they are made of them.
    """

    want: Array
    have: Array
    known: Array
    operand: int | None = 0

    def mapped(self, function: Callable[[Array], Array]) -> _Seen:
        """With all arrays moved in one way."""
        return replace(self, want=function(self.want), have=function(self.have), known=function(self.known))

    def of_rows(self, axis: int, order: Array, rows: Sequence[Array]) -> tuple[Array, Array, Array]:
        """What sorted rows hold, what they should hold, and of which that is known; flat."""
        moved = self.mapped(lambda array: np.moveaxis(array, axis, -1).reshape(-1))
        if self.operand is None:
            return moved.have, moved.want, moved.known
        have = take_along_last(rows[self.operand], order).reshape(-1)
        return have, moved.want.astype(have.dtype), moved.known


class _Walk:
    """Follows leaves of a result back.

    Attributes:
        found: the sorts that were reached, with what is known of one of their results.
    """

    def __init__(self) -> None:
        self.found: list[tuple[Instruction, _Seen]] = []
        self._been: set[tuple[Instruction, ShapeIndex, tuple[Instruction, ...]]] = set()

    def back(
        self, instruction: Instruction, index: ShapeIndex, seen: _Seen, callers: tuple[Instruction, ...]
    ) -> None:
        """Follow one leaf of the value of `instruction`, in a computation that `callers` call."""
        place = (instruction, index, callers)
        if place in self._been:
            return
        self._been.add(place)
        match instruction.opcode:
            case "sort":
                number = index[0] if index else 0
                held = None if seen.operand is None else number
                self.found.append((instruction, replace(seen, operand=held)))
            case "tuple" | "get-tuple-element" if source := through_tuple(instruction, index):
                self.back(*source, seen, callers)
            case "call" | "fusion":
                self.back(next(instruction.called).root, index, seen, (*callers, instruction))
            case "parameter" if callers:
                number = instruction.parameter_number or 0
                self.back(callers[-1].operands[number], index, seen, callers[:-1])
            case _ if isinstance(instruction.shape, ArrayShape) and not index:
                for operand, before in _before(instruction, seen):
                    self.back(operand, (), before, callers)


def _before(instruction: Instruction, seen: _Seen) -> Iterator[tuple[Instruction, _Seen]]:
    """What is known of operands: of that of something that moves elements, or of all that have as many."""
    operands = instruction.operands
    if seen.want.shape != instruction.dims:
        # Of dynamic size: its elements are where they are in the sort, or nothing is known.
        if instruction.opcode in _AS_THEY_ARE:
            yield operands[0], seen
        return
    moved = _moved_back(instruction)
    if moved is not None:
        yield operands[0], seen.mapped(moved)
        return
    for operand in operands:
        if isinstance(operand.shape, ArrayShape) and operand.shape.size == seen.want.size:
            made_of_it = seen.mapped(_reshaping(operand.dims))
            yield operand, replace(made_of_it, operand=None)


#: Their elements are where they were in the operand.
_AS_THEY_ARE = opcodes_with(Trait.FORWARDS) | {"convert", "copy"}


def _moved_back(instruction: Instruction) -> Callable[[Array], Array] | None:
    """Elements of the result where they were in the operand, zeros for others; None for what does more."""
    match instruction.opcode:
        case opcode if opcode in _AS_THEY_ARE:
            return lambda array: array
        case "reshape":
            return _reshaping(instruction.operands[0].dims)
        case "bitcast" if instruction.element_type is instruction.operands[0].element_type:
            return _bitcast_back(instruction)
        case "transpose":
            return partial(np.transpose, axes=np.argsort(instruction.integers("dimensions")))
        case "reverse":
            return partial(np.flip, axis=instruction.integers("dimensions"))
        case "slice":
            return _sliced_from(instruction)
    return None


def _bitcast_back(instruction: Instruction) -> Callable[[Array], Array] | None:
    try:
        return bitcaster(instruction.array_shape, instruction.operands[0].array_shape)
    except ValueError:
        return None


def _reshaping(dims: tuple[int, ...]) -> Callable[[Array], Array]:
    return lambda array: array.reshape(dims)


def _sliced_from(instruction: Instruction) -> Callable[[Array], Array]:
    dims = instruction.operands[0].dims
    part = tuple(slice(d.start, d.limit, d.stride) for d in instruction.listed("slice", SliceDim))

    def whole(array: Array) -> Array:
        filled = np.zeros(dims, array.dtype)
        filled[part] = array
        return filled

    return whole


def _columns(values: Array) -> list[Array]:
    """Integers that are different for different bits, in the order of the values; flat."""
    flat = np.ascontiguousarray(values).reshape(-1)
    if flat.dtype.kind == "c":
        return [total_order_keys(part.copy()).astype(np.int64) for part in (flat.real, flat.imag)]
    if flat.dtype.kind == "f":
        return [total_order_keys(flat).astype(np.int64)]
    if flat.dtype.kind in "biu":
        return [flat.astype(np.int64)]
    return [total_order_keys(flat.astype(np.float32)).astype(np.int64)]


def _assigned(have: Array, want: Array, known: Array) -> Array:
    """For each place the number of the element that goes there.

    Args:
        have: what each element is: its group and columns [elements, 1 + columns].
        want: what each place should hold, of the group that goes there; likewise.
        known: the places of which that is known [elements].

    Returns:
        a permutation that stays within groups: equal columns go where they are wanted, and the others in
        their own order where what remains belongs in that order.
    """
    count = len(have)
    wanting = np.flatnonzero(known)
    numbers = np.unique(np.concatenate([have, want[wanting]]), axis=0, return_inverse=True)[1].reshape(-1)
    _, elements, found = np.intersect1d(
        _counted(numbers[:count]), _counted(numbers[count:]), assume_unique=True, return_indices=True
    )
    assigned = np.full(count, -1)
    assigned[wanting[found]] = elements
    left = np.setdiff1d(np.arange(count), elements, assume_unique=True)
    open_places = np.flatnonzero(assigned < 0)
    in_order = left[np.lexsort(have[left].T[::-1])]
    assigned[open_places[np.lexsort(want[open_places].T[::-1])]] = in_order
    return assigned


def _counted(numbers: Array) -> Array:
    """Different integers for the first, second, … of equal numbers: the same in any two arrays."""
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    is_first = np.concatenate([[True], ordered[1:] != ordered[:-1]])[: len(ordered)]
    starts = np.flatnonzero(is_first)
    within = np.arange(len(ordered)) - np.repeat(starts, np.diff(np.append(starts, len(ordered))))
    counted = np.empty_like(within)
    counted[order] = ordered * (1 << 31) + within
    return counted
