"""The order of ties that a result shows: what an unstable sort returned is looked up where it is returned.

Results are followed back to the sorts that they come from, through what only moves elements. In each group of
equal elements the sorted rows are then put as the result has them. A result that no order of ties explains
(an element lost, or one that stands twice) has no such place for some of them: then the program returns
something else under that order, and a comparison shows it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hlotool.backends.base import Value
from hlotool.backends.numpy.layouts import bitcaster
from hlotool.backends.numpy.ordering import total_order_keys
from hlotool.backends.numpy.stable_order import take_along_last
from hlotool.backends.numpy.tie_orders import library_order, unstable_sorts
from hlotool.ir.attributes import SliceDim
from hlotool.ir.dtypes import Array, dtype_of
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ArrayShape, ShapeIndex
from hlotool.values.flatten import flatten


class ObservedTies:
    """A `TieOrder`: that of a result where it shows one, else that of the C++ library.

    Args:
        module: the program.
        result: what an execution of it returned.
    """

    def __init__(self, module: Module, result: Value) -> None:
        self._seen: dict[str, dict[int, _Seen]] = {}
        sorts = unstable_sorts(module)
        names = [sort.name for sort in sorts]
        # Programs in other types have other instructions, of the same names.
        once = {sort for sort in sorts if names.count(sort.name) == 1}
        for index, shape, value in flatten(module.entry.root.shape, result):
            if isinstance(shape, ArrayShape) and np.shape(value) == shape.dims:
                shown = _Seen(np.asarray(value), np.ones(shape.dims, np.bool_))
                for sort, number, found in _origins(module.entry.root, index, shown, ()):
                    if sort in once:
                        self._seen.setdefault(sort.name, {}).setdefault(number, found)

    def __call__(self, sort: Instruction, rows: Sequence[Array], order: Array, groups: Array) -> Array:
        """See `TieOrder`."""
        seen = self._seen.get(sort.name)
        if seen is None:
            return library_order(sort, rows, order, groups)
        (axis,) = sort.integers("dimensions")
        shown = [
            (take_along_last(rows[number], order), one.with_last(axis, order.shape))
            for number, one in sorted(seen.items(), key=lambda item: -item[1].known.sum())
        ]
        group = (groups + order.shape[1] * np.arange(len(order))[:, None]).reshape(-1)
        known = np.logical_and.reduce([one.known.reshape(-1) for _, one in shown])
        have = np.stack([group, *(c for own, _ in shown for c in _columns(own))], axis=1)
        columns = (c for own, one in shown for c in _columns(one.values.astype(own.dtype)))
        want = np.stack([group, *columns], axis=1)
        moved: Array = order.reshape(-1)[_assigned(have, want, known)]
        return moved.reshape(order.shape)


@dataclass(frozen=True, slots=True)
class _Seen:
    """What is known of an array: its elements, and which of them are known; of the same shape."""

    values: Array
    known: Array

    def with_last(self, axis: int, shape: tuple[int, ...]) -> _Seen:
        """With one dimension last, as rows."""
        values, known = (np.moveaxis(a, axis, -1).reshape(shape) for a in (self.values, self.known))
        return _Seen(values, known)


def _origins(
    instruction: Instruction, index: ShapeIndex, seen: _Seen, callers: tuple[Instruction, ...]
) -> Iterator[tuple[Instruction, int, _Seen]]:
    """The sort from which a leaf comes, the number of its operand there, and what is known of it there."""
    while instruction.opcode != "sort":
        operands = instruction.operands
        match instruction.opcode:
            case "tuple":
                instruction, index = operands[index[0]], index[1:]
            case "get-tuple-element":
                instruction, index = operands[0], (instruction.integer("index"), *index)
            case "call" | "fusion":
                callers = (*callers, instruction)
                instruction = next(instruction.called).root
            case "parameter" if callers:
                instruction = callers[-1].operands[instruction.parameter_number or 0]
                callers = callers[:-1]
            case _:
                before = _before(instruction, seen)
                if before is None:
                    return
                instruction, seen = operands[0], before
    yield instruction, index[0] if index else 0, seen


def _before(instruction: Instruction, seen: _Seen) -> _Seen | None:
    """What is known of the first operand of something that moves elements; None where it does more."""
    values, known = seen.values, seen.known
    match instruction.opcode:
        case "add-dependency" | "copy" | "opt-barrier":
            return seen
        case "convert":
            return _Seen(values.astype(dtype_of(instruction.operands[0].element_type)), known)
        case "reshape":
            dims = instruction.operands[0].dims
            return _Seen(values.reshape(dims), known.reshape(dims))
        case "bitcast" if instruction.element_type is instruction.operands[0].element_type:
            back = bitcaster(instruction.array_shape, instruction.operands[0].array_shape)
            return _Seen(back(values), back(known))
        case "transpose":
            back_to = np.argsort(instruction.integers("dimensions"))
            return _Seen(values.transpose(back_to), known.transpose(back_to))
        case "reverse":
            axes = instruction.integers("dimensions")
            return _Seen(np.flip(values, axes), np.flip(known, axes))
        case "slice":
            whole = _Seen(
                np.zeros(instruction.operands[0].dims, values.dtype),
                np.zeros(instruction.operands[0].dims, np.bool_),
            )
            part = tuple(slice(d.start, d.limit, d.stride) for d in instruction.listed("slice", SliceDim))
            whole.values[part], whole.known[part] = values, known
            return whole
    return None


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
