"""Slices whose position is data."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.ownership import owned
from hlotool.backends.numpy.registry import Kernel, lowers
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Instruction


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
