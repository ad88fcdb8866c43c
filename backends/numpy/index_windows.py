"""Windows of an array at positions that an index array names: what gather reads and scatter writes.

XLA: operation_semantics.md#gather and #scatter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from hlotool.ir.dtypes import Array


@dataclass(frozen=True, slots=True)
class IndexWindows:
    """Where the windows start.

    Attributes:
        index_vector_dim: dimension of the index array that holds the components of one start; its rank for
            index arrays of single components.
        start_map: operand dimension of each component.
        batching: pairs of operand dimension and index array dimension: the start is the position along the
            latter.
    """

    index_vector_dim: int
    start_map: tuple[int, ...]
    batching: tuple[tuple[int, int], ...] = ()

    def starts(self, indices: Array) -> dict[int, Array]:
        """Start along each operand dimension that has one (all others start at 0).

        The arrays are int64 and broadcast to the batch dimensions: those of `indices` without the vector's.
        """
        rank = indices.ndim - (self.index_vector_dim < indices.ndim)
        components = [indices] if self.index_vector_dim == indices.ndim else self._components(indices)
        starts = {d: as_int64(c) for d, c in zip(self.start_map, components)}
        for operand_dim, index_dim in self.batching:
            axis = index_dim - (index_dim > self.index_vector_dim)
            along = [-1 if a == axis else 1 for a in range(rank)]
            starts[operand_dim] = np.arange(indices.shape[index_dim]).reshape(along)
        return starts

    def batch_shape(self, indices: Array) -> tuple[int, ...]:
        """Dimensions of `indices` without the vector's."""
        return tuple(n for d, n in enumerate(indices.shape) if d != self.index_vector_dim)

    def _components(self, indices: Array) -> list[Array]:
        return list(np.moveaxis(indices, self.index_vector_dim, 0))


def as_int64(indices: Array) -> Array:
    """Indices of any integer type; u64 beyond the range of s64 stays out of every bound."""
    if indices.dtype == np.uint64:
        indices = np.minimum(indices, np.uint64(np.iinfo(np.int64).max))
    return indices.astype(np.int64)


@dataclass(frozen=True, slots=True)
class Rows:
    """An array seen as a list of rows: the dimensions that every window takes whole, if they come last.

    Attributes:
        leading: sizes of the dimensions before them.
        row: number of elements of one row.
    """

    leading: tuple[int, ...]
    row: int

    def positions(
        self, starts: dict[int, Array], window: Sequence[int], batch_shape: tuple[int, ...]
    ) -> Array:
        """Row numbers that the windows cover, of shape [batch…, leading window sizes…]."""
        count = len(self.leading)
        shape = (*batch_shape, *window[:count])
        result = np.zeros((1,) * len(shape), np.int64)
        for dim in range(count):
            stride = prod(self.leading[dim + 1 :])
            along = [-1 if axis == len(batch_shape) + dim else 1 for axis in range(len(shape))]
            result = result + (np.arange(window[dim]) * stride).reshape(along)
            if dim in starts:
                start = starts[dim]
                result = result + (start * stride).reshape((*start.shape, *(1,) * count))
        return np.broadcast_to(result, shape)


def rows(sizes: Sequence[int], window: Sequence[int], started: Sequence[int]) -> Rows:
    """Split `sizes` where the windows take the rest whole.

    Args:
        sizes: of the array.
        window: sizes of the windows.
        started: dimensions along which windows start elsewhere than at 0.
    """
    split = len(sizes)
    while split and window[split - 1] == sizes[split - 1] and split - 1 not in started:
        split -= 1
    return Rows(tuple(sizes[:split]), prod(sizes[split:]))
