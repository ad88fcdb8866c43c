"""Sorting and selecting the largest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import cycle

import numpy as np

from hlotool.backends.numpy.comparators import SortKey, ranks, sort_order
from hlotool.backends.numpy.executions.ties import TieOrder, order_of_ties
from hlotool.backends.numpy.lanes import Lanes, lanes, vectorised
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.ordering import first_in_order, stable_order, take_along_last
from hlotool.backends.numpy.registry import Kernel, lowers
from hlotool.backends.numpy.threads import by_rows
from hlotool.facts.scalar_form import ScalarForm, select_outputs
from hlotool.ir.arrays import Array
from hlotool.ir.module import Instruction
from hlotool.ir.types import ElementType, TupleShape

#: From operands with the sorted dimension last to the order along it.
Order = Callable[[Sequence[Array]], Array]


@lowers("sort")
def sort(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Sort all operands along one dimension by `to_apply(a0, b0, a1, b1, …)`, true when a comes before b.

    Stable, whatever `is_stable` says, but within `tie_orders.ties_in`. Without `is_stable` equal elements may
    come in any order: XLA's CPU backend calls `std::sort` of libstdc++ for each row, whose order is the same
    in every run, stable up to 16 elements and not beyond. A comparator that is no strict weak order, such as
    LT on floats with NaN, leaves the order to the implementation: here NaN counts as the largest when keys
    are recognised.

    XLA: operation_semantics.md#sort.
    """
    (axis,) = instruction.integers("dimensions")
    less = lanes(instruction.computation("to_apply"), lowering)
    order = order_by(less, lowering)

    def sort_rows(rows: Sequence[Array]) -> list[Array]:
        chosen = order(rows)
        return [take_along_last(r, chosen) for r in rows]

    ties = order_of_ties(instruction)

    def sort_with_ties(whole: Sequence[Array], ties: TieOrder) -> list[Array]:
        length = whole[0].shape[-1]
        rows = [np.ascontiguousarray(o).reshape(-1, length) if o.size else o for o in whole]
        if length < 2 or not rows[0].size:
            return list(whole)
        stable = order(rows)
        chosen = ties(instruction, rows, stable, _groups(less, rows, stable))
        return [take_along_last(r, chosen).reshape(o.shape) for r, o in zip(rows, whole)]

    def kernel(*operands: Array) -> tuple[Array, ...]:
        moved = [np.moveaxis(o, axis, -1) for o in operands]
        results = by_rows(sort_rows, moved) if ties is None else sort_with_ties(moved, ties)
        return tuple(np.moveaxis(result, -1, axis) for result in results)

    if isinstance(instruction.shape, TupleShape):
        return kernel
    return lambda operand: kernel(operand)[0]


def order_by(less: Lanes, lowering: Lowering) -> Order:
    """The stable order that a comparator asks for."""
    return order_by_keys(less, partial(_by_keys, lowering=lowering))


def order_by_keys(less: Lanes, by_keys: Callable[[ScalarForm, Sequence[SortKey]], Order]) -> Order:
    """The stable order that a comparator asks for, where `by_keys` can tell that of keys alone.

    Args:
        less: the comparator.
        by_keys: from its form and keys of that, most significant first, to their order.
    """
    found = sort_order(less.form) if less.form is not None else None
    if less.form is None or found is None:
        return lambda operands: _by_comparisons(less, operands)
    probable = by_keys(less.form, found.keys)
    if found.certain:
        return probable

    def order(operands: Sequence[Array]) -> Array:
        chosen = probable(operands)
        return chosen if _is_stable_order(less, operands, chosen) else _by_comparisons(less, operands)

    return order


def _by_keys(form: ScalarForm, keys: Sequence[SortKey], lowering: Lowering) -> Order:
    evaluate = vectorised(select_outputs(form, [k.value for k in keys]), lowering)

    def order(operands: Sequence[Array]) -> Array:
        values = evaluate(*(o for operand in operands for o in (operand, operand)))
        return stable_order([k.ranks(v) for k, v in zip(keys, values)])

    return order


def _is_stable_order(less: Lanes, operands: Sequence[Array], order: Array) -> bool:
    """Whether that is how a comparator orders the operands: then it is so of all neighbours."""
    rows = [take_along_last(o, order) for o in operands]
    earlier, later = ([r[..., part] for r in rows] for part in (slice(-1), slice(1, None)))
    wrong = less(*(side for pair in zip(later, earlier) for side in pair))[0]
    right = less(*(side for pair in zip(earlier, later) for side in pair))[0]
    return bool((~wrong & (right | (order[..., :-1] < order[..., 1:]))).all())


def _groups(less: Lanes, operands: Sequence[Array], order: Array) -> Array:
    """For each place of sorted rows [rows, length] how many different elements are smaller."""
    rows = [take_along_last(o, order) for o in operands]
    steps = less(*(side for r in rows for side in (r[:, :-1], r[:, 1:])))[0]
    groups = np.zeros(order.shape, np.int64)
    np.cumsum(steps, axis=1, out=groups[:, 1:])
    return groups


def _by_comparisons(less: Lanes, operands: Sequence[Array]) -> Array:
    """By a comparator of any kind."""
    shape = operands[0].shape
    length = shape[-1]
    flat = [np.ascontiguousarray(o).reshape(-1) for o in operands]
    numbers = range(2 * len(flat))

    def compare(first: Array, second: Array) -> Array:
        whole = zip(numbers, cycle((first, second)))
        return less(*(flat[n // 2][which if less.reads(n) else which[:1]] for n, which in whole))[0]

    rows = operands[0].size // length if length else 0
    order = partition_sort(rows, length, compare).reshape(shape)
    return order % length if rows > 1 else order


@lowers("topk")
def topk(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The `k` largest (or smallest) elements of the last dimension, in order, and their s32 indices.

    Floats compare in total order, so NaN is the largest; of equal elements the one with the lowest index
    comes first. XLA: operation_semantics.md#topk.
    """
    kind = instruction.operands[0].element_type
    if kind.is_complex:
        raise lowering.unsupported(instruction, f"topk is not defined on {kind}: it has no order")
    descending = instruction.flag("largest", True)
    return top(kind=kind, k=instruction.integer("k"), descending=descending)


def top(kind: ElementType, k: int, descending: bool) -> Callable[[Array], tuple[Array, Array]]:
    """Kernel of `topk` for one element type."""

    def top_of_rows(rows: Sequence[Array]) -> tuple[Array, Array]:
        order = first_in_order(ranks(rows[0], kind, descending), k)
        return take_along_last(rows[0], order), order.astype(np.int32)

    def kernel(operand: Array) -> tuple[Array, Array]:
        values, indices = by_rows(top_of_rows, [operand])
        return values, indices

    return kernel


# Stable sort by an arbitrary comparator, vectorised over all elements and rows: quicksort by levels.

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
    # The element that stood before the other comes first unless the order says otherwise.
    is_left = less(later, earlier) ^ stood_before
    is_left[firsts] = False
    left = np.add.reduceat(is_left, firsts, dtype=np.int64)
    to_left = within < np.repeat(left, sizes)
    order[places[to_left]] = elements[is_left]
    order[places[~to_left]] = elements[~is_left]
    return left
