"""Reading and writing where data says: gather, slices whose position is data."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from hlotool.backends.numpy.index_windows import IndexWindows, Rows, rows
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.ownership import owned
from hlotool.backends.numpy.registry import Kernel, lowers
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Instruction

#: Row numbers computed at once, which bounds the memory for them.
_CHUNK = 1 << 23


@lowers("gather")
def gather(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Stack windows of the operand whose starts stand in the second operand.

    A start that lets the window leave the operand is clamped, dimension by dimension. A collapsed dimension
    of which windows take nothing leaves zeros. The hints `indices_are_sorted` and the like change nothing.

    XLA: operation_semantics.md#gather.
    """

    def ints(name: str) -> tuple[int, ...]:
        return instruction.integers(name, ())

    windows = IndexWindows(
        instruction.integer("index_vector_dim"),
        ints("start_index_map"),
        tuple(zip(ints("operand_batching_dims"), ints("start_indices_batching_dims"))),
    )
    slice_sizes, offset_dims = ints("slice_sizes"), ints("offset_dims")
    dropped = {*ints("collapsed_slice_dims"), *ints("operand_batching_dims")}

    def kernel(operand: Array, indices: Array) -> Array:
        # A window that takes a dynamic dimension whole takes what there is of it.
        sizes = [min(size, actual) for size, actual in zip(slice_sizes, operand.shape)]
        kept = [size for dim, size in enumerate(sizes) if dim not in dropped]
        batch_shape = windows.batch_shape(indices)
        if not prod(sizes):
            zeros = np.zeros((*batch_shape, *kept), operand.dtype)
            return _arrange(zeros, len(batch_shape), offset_dims)
        starts = windows.starts(indices)
        for dim, start in starts.items():
            starts[dim] = np.clip(start, 0, operand.shape[dim] - sizes[dim])
        taken = _take(operand, starts, sizes, batch_shape)
        return _arrange(taken.reshape((*batch_shape, *kept)), len(batch_shape), offset_dims)

    return kernel


def _take(
    operand: Array, starts: dict[int, Array], sizes: Sequence[int], batch_shape: tuple[int, ...]
) -> Array:
    """The windows, one row of the result per batch position."""
    result = np.empty((*batch_shape, prod(sizes)), operand.dtype)
    if not result.size:
        return result
    whole = operand[tuple(slice(None) if d in starts else slice(0, n) for d, n in enumerate(sizes))]
    split = rows(whole.shape, sizes, list(starts))
    source = whole.reshape((-1, split.row))
    if not batch_shape or result.size // split.row <= _CHUNK:
        return _take_rows(source, split, starts, sizes, batch_shape).reshape(result.shape)
    step = max(1, _CHUNK // max(1, result[0].size // split.row))
    for first in range(0, batch_shape[0], step):
        part = {d: s if len(s) == 1 else s[first : first + step] for d, s in starts.items()}
        shape = (min(step, batch_shape[0] - first), *batch_shape[1:])
        chunk = result[first : first + step]
        chunk[...] = _take_rows(source, split, part, sizes, shape).reshape(chunk.shape)
    return result


def _take_rows(
    source: Array,
    split: Rows,
    starts: dict[int, Array],
    sizes: Sequence[int],
    batch_shape: tuple[int, ...],
) -> Array:
    return np.take(source, split.positions(starts, sizes, batch_shape), axis=0)


def _arrange(taken: Array, batch_rank: int, offset_dims: Sequence[int]) -> Array:
    """Move the window dimensions, which come last, to their places in the result."""
    batch = iter(range(batch_rank))
    window = iter(range(batch_rank, taken.ndim))
    return taken.transpose([next(window if d in offset_dims else batch) for d in range(taken.ndim)])


@lowers("dynamic-slice")
def dynamic_slice(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The part of `dynamic_slice_sizes` that starts at the indices, moved so that it lies inside.

    The result is a copy: a view would keep the operand from being updated in place. Indices are scalars or,
    in the older form, one vector; each is clamped to [0, dimension - size].
    XLA: operation_semantics.md#dynamicslice.
    """
    sizes = instruction.integers("dynamic_slice_sizes")
    vector = _has_vector_index(instruction.operands[1:], lowering)

    def kernel(x: Array, *indices: Array) -> Any:
        return x[_window(x.shape, sizes, indices[0] if vector else indices)].copy()

    return kernel


@lowers("dynamic-update-slice")
def dynamic_update_slice(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The first operand with a part replaced by the second, at clamped indices as in dynamic-slice.

    In place when nobody else holds the operand. XLA: operation_semantics.md#dynamicupdateslice.
    """
    vector = _has_vector_index(instruction.operands[2:], lowering)
    if instruction.array_shape.rank == 0:
        return lambda x, update: update

    def kernel(x: Array, update: Array, *indices: Array) -> Array:
        references = sys.getrefcount(x)
        window = _window(x.shape, update.shape, indices[0] if vector else indices)
        result = x if owned(x, references) else x.copy()
        result[window] = update
        return result

    return kernel


def _has_vector_index(indices: Sequence[Instruction], lowering: Lowering) -> bool:
    return len(indices) == 1 and indices[0].array_shape.rank == 1


def _window(dims: Sequence[int], sizes: Sequence[int], starts: Any) -> tuple[Any, ...]:
    """Index of the window of `sizes` at `starts`, moved inside an array of `dims`."""
    window = []
    for dim, size, start in zip(dims, sizes, starts):
        first = min(max(int(start), 0), dim - size)
        window.append(slice(first, first + size))
    return (*window, ...)
