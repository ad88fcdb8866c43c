"""Updates written into windows of an array at indexed positions."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

import numpy as np

from hlotool.backends.numpy.combining import Combine, combiner
from hlotool.backends.numpy.index_windows import IndexWindows, rows
from hlotool.backends.numpy.lanes import lanes
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.ownership import owned
from hlotool.backends.numpy.registry import Kernel, lowers
from hlotool.ir.dtypes import Array
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
