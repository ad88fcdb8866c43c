"""The order of ties that a result shows: what an unstable sort returned is looked up where it is returned.

Results are followed back to the sorts that they come from, through what moves elements, and through what
computes each element of its result from one of its operand's. In each group of equal elements the sorted rows
are then put as the result has them: by what they hold, or by what the program makes of them. That proposes an
order, and no more: what the program returns under it is compared like any other result. One that no order of
ties explains (an element lost, or one that stands twice) is returned under none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from hlotool.backends.base import Value
from hlotool.backends.numpy.layouts import bitcaster
from hlotool.backends.numpy.ordering import take_along_last, total_order_keys
from hlotool.backends.numpy.tie_orders import library_order, unstable_sorts
from hlotool.ir.attributes import SliceDim
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Instruction, Module
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import ArrayShape, ShapeIndex
from hlotool.ir.walk import through_tuple
from hlotool.values.flatten import flatten


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
