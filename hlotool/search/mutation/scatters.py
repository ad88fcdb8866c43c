"""Scatters at places that are known, whatever else is not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

import numpy as np

from hlotool.ir.module import Instruction
from hlotool.search.mutation.hashing import Symbols, numbers
from hlotool.search.mutation.terms import Term

#: Numbers in index vectors that are looked at one by one.
_MOST_NUMBERS: Final = 256

#: Along each dimension of the array: where an update goes, None where that is not known, all of a window.
_Place: TypeAlias = "tuple[int | slice | None, ...]"


def scattered_to_places(instruction: Instruction, operands: Sequence[Term]) -> Symbols | None:
    """The symbols of a scatter into one array whose updates are put at known places, or dropped.

    An update that does not fit into the array is dropped; of two at one place the order is nobody's promise.
    XLA: operation_semantics.md#scatter.

    Args:
        instruction: the operation.
        operands: array, indices, updates.

    Returns:
        None where a place is not known, where two updates have the same one, and where updates are combined
        with what is there.
    """
    array, index, updates = operands
    if not _is_by_rows(instruction) or index.symbols.size > _MOST_NUMBERS:
        return None
    dims = array.symbols.shape
    places = [place for place in _places(instruction, index.symbols) if not _is_outside(place, dims)]
    if not places:
        return array.symbols
    reducer = instruction.computation("to_apply")
    if reducer.root is not reducer.parameters[-1] or any(None in place for place in places):
        return None
    if len({str(place) for place in places}) < len(places):
        return None
    found = np.array(array.symbols)
    windows = _windows(instruction, updates.symbols)
    for place, window in zip(_places(instruction, index.symbols), windows):
        if not _is_outside(place, dims):
            found[place] = window
    return found


def _is_by_rows(instruction: Instruction) -> bool:
    """Whether windows are 1 along the dimensions that are indexed, and all of the array along the others."""
    mapped = instruction.integers("scatter_dims_to_operand_dims")
    inserted = instruction.integers("inserted_window_dims")
    if not mapped or sorted(mapped) != sorted(inserted) or instruction.integers("input_batching_dims", ()):
        return False
    updates = instruction.operands[2].dims
    window = [updates[d] for d in instruction.integers("update_window_dims")]
    return window == [size for d, size in enumerate(instruction.dims) if d not in inserted]


def _places(instruction: Instruction, index: Symbols) -> Iterator[_Place]:
    """Where the updates go, in row-major order of the index vectors."""
    dimension = instruction.integer("index_vector_dim")
    mapped = instruction.integers("scatter_dims_to_operand_dims")
    vectors = index[..., None] if dimension == index.ndim else np.moveaxis(index, dimension, -1)
    known = numbers(np.ascontiguousarray(vectors))
    for start in range(0, len(known), len(mapped)):
        place: list[int | slice | None] = [slice(None)] * len(instruction.dims)
        for dimension, number in zip(mapped, known[start : start + len(mapped)]):
            place[dimension] = number
        yield tuple(place)


def _is_outside(place: _Place, dims: Sequence[int]) -> bool:
    """Whether one number that is known is enough to drop an update."""
    return any(isinstance(at, int) and not 0 <= at < size for at, size in zip(place, dims))


def _windows(instruction: Instruction, updates: Symbols) -> Iterator[Symbols]:
    """The updates in the same order."""
    inside = instruction.integers("update_window_dims")
    outside = [d for d in range(updates.ndim) if d not in inside]
    ordered = updates.transpose(*outside, *inside)
    return iter(ordered.reshape(-1, *(updates.shape[d] for d in inside)))
