"""Products of arrays in which one dimension is cut into groups of varying sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from hlotool.backends.numpy.contraction import operand_dtype, rounded, widened
from hlotool.backends.numpy.index_windows import as_int64
from hlotool.backends.numpy.kernels.dot import DotDimensions, dot_dimensions
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.registry import Kernel, lowers
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Instruction


@lowers("ragged-dot")
def ragged_dot(instruction: Instruction, lowering: Lowering) -> Kernel:
    """A dot whose ragged dimension of the left operand is cut into consecutive groups.

    Ragged free dimension: each group of rows multiplies its own slab of the right operand; rows beyond the
    last group are 0. Ragged contracting dimension: one result per group, stacked in a new leading dimension.
    Ragged batch dimension: a batched dot, 0 beyond the last group. Group sizes of rank 1 hold everywhere;
    otherwise their leading dimensions are those of the left operand that lie outside of the ragged one.

    XLA: operation_semantics.md#raggeddot; shape_inference.cc (InferRaggedDotOpShape).
    """
    dimensions = dot_dimensions(instruction)
    (ragged,) = instruction.integers("lhs_ragged_dims")
    shape = instruction.array_shape
    lhs_type, rhs_type, _ = instruction.operand_types
    dtype = operand_dtype(shape.element_type, lhs_type, rhs_type)
    multiply = RaggedProduct(dimensions, ragged, instruction.integers("rhs_group_dims", ()), shape.dims)

    def kernel(lhs: Array, rhs: Array, group_sizes: Array) -> Array:
        left, right = widened(lhs, lhs_type, dtype), widened(rhs, rhs_type, dtype)
        return rounded(multiply(left, right, as_int64(group_sizes)), shape.element_type)

    return kernel


@dataclass(frozen=True, slots=True)
class RaggedProduct:
    """Assembles the result from dots of parts of the operands.

    Attributes:
        dimensions: roles of the dimensions, as for dot.
        ragged: dimension of the left operand that is cut into groups.
        group_dims: dimension of the right operand that holds one slab per group, if the ragged one is free.
        result_sizes: dimensions of the result.
    """

    dimensions: DotDimensions
    ragged: int
    group_dims: tuple[int, ...]
    result_sizes: tuple[int, ...]

    def __call__(self, lhs: Array, rhs: Array, sizes: Array) -> Array:
        result = np.zeros(self.result_sizes, lhs.dtype)
        roles = self._slab_roles()
        leading = self._leading(lhs.ndim)
        kept = self.dimensions.lhs_batch + self.dimensions.lhs_free(lhs.ndim)
        for lead, group, rows in self._cuts(sizes, lhs.shape[self.ragged]):
            cut = {d: slice(i, i + 1) for d, i in zip(leading, lead)} | {self.ragged: rows}
            product = roles.contract(lhs[_index(cut, lhs.ndim)], self._slab(rhs, cut, group))
            target = tuple(cut.get(d, slice(None)) for d in kept)
            if self._is_contracting:
                result[(group, *target)] += product
            else:
                result[target] = product
        return result

    @property
    def _is_contracting(self) -> bool:
        return self.ragged in self.dimensions.lhs_contracting

    def _leading(self, rank: int) -> tuple[int, ...]:
        """Dimensions of the left operand that index the group sizes, if those vary."""
        batch, contracting = self.dimensions.lhs_batch, self.dimensions.lhs_contracting
        if self.ragged in batch:
            return batch[: batch.index(self.ragged)]
        others = contracting if self._is_contracting else self.dimensions.lhs_free(rank)
        return batch + others[: others.index(self.ragged)]

    def _cuts(self, sizes: Array, length: int) -> Iterator[tuple[tuple[int, ...], int, slice]]:
        """(position in the leading dimensions, group, its rows)."""
        if self.ragged in self.dimensions.lhs_batch:
            sizes = sizes.sum(axis=-1, keepdims=True)
        ends = np.clip(np.cumsum(sizes, axis=-1), 0, length)
        for index in np.ndindex(ends.shape):
            *lead, group = index
            start = int(ends[(*lead, group - 1)]) if group else 0
            yield tuple(lead), group, slice(start, max(start, int(ends[index])))

    def _slab(self, rhs: Array, cut: Mapping[int, slice], group: int) -> Array:
        """The part of the right operand that meets a part of the left one."""
        roles = self.dimensions
        pairs = zip(roles.lhs_batch + roles.lhs_contracting, roles.rhs_batch + roles.rhs_contracting)
        part = rhs[_index({right: cut[left] for left, right in pairs if left in cut}, rhs.ndim)]
        return part.take(group, axis=self.group_dims[0]) if self.group_dims else part

    def _slab_roles(self) -> DotDimensions:
        """The roles of the dimensions when the group dimension is gone from the right operand."""

        def lower(dims: tuple[int, ...]) -> tuple[int, ...]:
            return tuple(d - sum(d > g for g in self.group_dims) for d in dims)

        roles = self.dimensions
        return DotDimensions(
            roles.lhs_batch, lower(roles.rhs_batch), roles.lhs_contracting, lower(roles.rhs_contracting)
        )


def _index(cut: Mapping[int, slice], rank: int) -> tuple[slice, ...]:
    return tuple(cut.get(d, slice(None)) for d in range(rank))
