"""Reading and writing where data says: gather, slices at data's positions, scatter, the gradient of
pooling.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from types import EllipsisType
from typing import Any, TypeAlias

import numpy as np

from hlotool.backends.numpy.lanes import Combine, Lanes, combiner, lanes
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.plan import owned
from hlotool.backends.numpy.registry import Kernel, lowers
from hlotool.backends.numpy.windows import IndexWindows, clamped, rows, window_slices
from hlotool.ir.arrays import Array
from hlotool.ir.attributes import WindowDim
from hlotool.ir.module import Instruction
from hlotool.ir.types import TupleShape

_Index: TypeAlias = tuple[slice, ...]

#: Elements of the updates that are worked on together.
_PART_ELEMENTS = 1 << 17


@lowers("scatter")
def scatter(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Combine updates into windows of the operands: `to_apply(current…, updates…)`.

    A window that is not completely inside the operand is skipped. Updates of one element are applied in
    row-major order of the indices, so the last one wins where updates overwrite; XLA promises no order, its
    CPU code follows this one (but applies only the last update when the index vectors are empty).
    `unique_indices` is not relied on.

    XLA: operation_semantics.md#scatter.
    """
    layout = _layout(instruction, lowering)
    combine = combiner(lanes(instruction.computation("to_apply"), lowering))
    count = len(instruction.operands) // 2

    def single(operand: Array, indices: Array, updates: Array) -> Array:
        references = sys.getrefcount(operand)
        reusable = owned(operand, references) and operand.flags.c_contiguous
        target = operand if reusable else np.array(operand, order="C")
        _apply([target], indices, [updates], layout, combine)
        return target

    def variadic(*values: Array) -> tuple[Array, ...]:
        targets = [np.array(v, order="C") for v in values[:count]]
        _apply(targets, values[count], values[count + 1 :], layout, combine)
        return tuple(targets)

    return variadic if isinstance(instruction.shape, TupleShape) else single


@dataclass(frozen=True, slots=True)
class _Layout:
    """How indices and updates are laid out.

    Attributes:
        windows: where windows start in the operand.
        update_window_dims: dimensions of the updates that run inside a window.
        unit_dims: operand dimensions of size 1 in every window, absent from the updates.
    """

    windows: IndexWindows
    update_window_dims: tuple[int, ...]
    unit_dims: frozenset[int]

    def window_sizes(self, operand_rank: int, update_sizes: Sequence[int]) -> tuple[int, ...]:
        """Size of the windows along every operand dimension."""
        sizes = iter([update_sizes[d] for d in self.update_window_dims])
        return tuple(1 if d in self.unit_dims else next(sizes) for d in range(operand_rank))

    def scatter_dims(self, update_rank: int) -> list[int]:
        """Dimensions of the updates that run over the windows."""
        return [d for d in range(update_rank) if d not in self.update_window_dims]


def _layout(instruction: Instruction, lowering: Lowering) -> _Layout:
    def ints(name: str) -> tuple[int, ...]:
        return instruction.integers(name, ())

    batching = ints("input_batching_dims")
    windows = IndexWindows(
        instruction.integer("index_vector_dim"),
        ints("scatter_dims_to_operand_dims"),
        tuple(zip(batching, ints("scatter_indices_batching_dims"))),
    )
    return _Layout(windows, ints("update_window_dims"), frozenset({*batching, *ints("inserted_window_dims")}))


def _apply(
    targets: Sequence[Array], indices: Array, updates: Sequence[Array], layout: _Layout, combine: Combine
) -> None:
    """Change `targets` in place, by one part of the updates after the other."""
    for at, of in _parts(indices, updates[0], layout):
        _apply_part(targets, indices[at], [u[of] for u in updates], layout, combine)


def _parts(indices: Array, update: Array, layout: _Layout) -> Iterator[tuple[_Index, _Index]]:
    """Index of some windows' starts and of their updates, in order."""
    scatter_dims = layout.scatter_dims(update.ndim)
    if update.size <= _PART_ELEMENTS or not scatter_dims or layout.windows.batching:
        yield (), ()
        return
    along = scatter_dims[0]
    index_axis = 1 if layout.windows.index_vector_dim == 0 else 0
    step = max(1, _PART_ELEMENTS // (update.size // update.shape[along]))
    for start in range(0, update.shape[along], step):
        part, whole = slice(start, start + step), (slice(None),)
        yield (*whole * index_axis, part), (*whole * along, part)


def _apply_part(
    targets: Sequence[Array], indices: Array, updates: Sequence[Array], layout: _Layout, combine: Combine
) -> None:
    sizes = targets[0].shape
    window = layout.window_sizes(len(sizes), updates[0].shape)
    scatter_dims = layout.scatter_dims(updates[0].ndim)
    batch_shape = tuple(updates[0].shape[d] for d in scatter_dims)
    starts = layout.windows.starts(indices)
    inside = np.ones(batch_shape, np.bool_)
    for dim, start in starts.items():
        inside &= (start >= 0) & (start <= sizes[dim] - window[dim])
    if not inside.any():
        return
    split = rows(sizes, window, list(starts))
    chosen = {d: np.broadcast_to(s, batch_shape)[inside] for d, s in starts.items()}
    positions = split.positions(chosen, window, (int(np.count_nonzero(inside)),)).reshape(-1)
    order = [*scatter_dims, *layout.update_window_dims]
    parts = [u.transpose(order)[inside].reshape((-1, split.row)) for u in updates]
    combine([t.reshape((prod(split.leading), split.row)) for t in targets], positions, parts)


#: Elements of the operand that are worked on together.
_SELECT_AND_SCATTER_PART_ELEMENTS = 1 << 16


@lowers("select-and-scatter")
def select_and_scatter(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Scatter `source` to the selected element of each window of `operand`; `init` is everywhere else.

    `select(selected, candidate)` keeps the selected element where it is true, so GE keeps the first maximum
    and GT takes the last. `scatter(current, source)` then combines, in row-major order of the windows. A
    window that lies completely in the padding selects nothing.

    The order of scatter's arguments is that of XLA's CPU compiler; its evaluator passes (source, current).

    XLA's fusion emitters on CPU visit those elements of a window last that may lie in the padding of some
    window, so they may select another one of several equal elements (as in 3x3 pooling with padding on one
    side only); with --xla_cpu_use_fusion_emitters=false they keep to row-major order.

    XLA: operation_semantics.md#selectandscatter.
    """
    dims = instruction.window.dims
    select = lanes(instruction.computation("select"), lowering)
    scatter = lanes(instruction.computation("scatter"), lowering)
    combine = combiner(scatter)

    def kernel(operand: Array, source: Array, init: Array) -> Array:
        windows = dims or [WindowDim(1)] * operand.ndim
        result = np.full(operand.shape, init, operand.dtype)
        for part in _select_and_scatter_parts(operand, windows):
            sources = source[part]
            selected = _selected(select, operand[part], sources.shape, windows)
            hit = selected >= 0
            combine([result[part].reshape((-1, 1))], selected[hit], [sources[hit].reshape((-1, 1))])
        return result

    return kernel


def _select_and_scatter_parts(
    operand: Array, dims: Sequence[WindowDim]
) -> Iterator[tuple[slice | EllipsisType, ...]]:
    """Parts of the first dimension that no window spans, in order; of other arrays the whole.

    All of them are views: an array of rank 0, indexed by nothing, would be copied.
    """
    if not dims or dims[0] != WindowDim(1) or operand.size <= _SELECT_AND_SCATTER_PART_ELEMENTS:
        yield (...,)
        return
    step = max(1, _SELECT_AND_SCATTER_PART_ELEMENTS // (operand.size // len(operand)))
    for start in range(0, len(operand), step):
        yield (slice(start, start + step),)


def _selected(
    select: Lanes, operand: Array, source_sizes: tuple[int, ...], dims: Sequence[WindowDim]
) -> Array:
    """Row-major number of the operand element that each window selects, -1 for none."""
    numbers = np.arange(operand.size).reshape(operand.shape)
    selected = np.full(source_sizes, -1, np.int64)
    values = np.zeros(source_sizes, operand.dtype)
    for _, outputs, elements in window_slices(dims, operand.shape, source_sizes):
        candidates = operand[elements]
        (keep,) = select(values[outputs], candidates)
        switch = ~(keep & (selected[outputs] >= 0))
        values[outputs] = np.where(switch, candidates, values[outputs])
        selected[outputs] = np.where(switch, numbers[elements], selected[outputs])
    return selected


#: Row numbers computed at once: they stay in the second-level cache.
_CHUNK = 1 << 16


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
        taken = _take(operand, windows.given(indices), sizes, batch_shape)
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

    def take(part: Array, starts: dict[int, Array], batch_shape: tuple[int, ...]) -> None:
        inside = {d: clamped(s, whole.shape[d] - sizes[d]) for d, s in starts.items()}
        positions = split.positions(inside, sizes, batch_shape)
        # All positions are inside; NumPy is a third slower where it has to look.
        np.take(source, positions, axis=0, mode="wrap", out=part.reshape((*positions.shape, split.row)))

    if not batch_shape:
        take(result, starts, ())
        return result
    step = max(1, _CHUNK // max(1, result[0].size // split.row))
    for first in range(0, batch_shape[0], step):
        part = {d: s if len(s) == 1 else s[first : first + step] for d, s in starts.items()}
        chunk = result[first : first + step]
        take(chunk, part, (len(chunk), *batch_shape[1:]))
    return result


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

    In place when there is no other reference to the operand. XLA: operation_semantics.md#dynamicupdateslice.
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
