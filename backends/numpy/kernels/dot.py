"""Products over contracted dimensions, ragged ones too; Cholesky decomposition and triangular systems."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hlotool.backends.numpy.contraction import (
    matrix,
    multiply_matrices,
    operand_dtype,
    rounded,
    widened,
)
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.precision import finish, native
from hlotool.backends.numpy.registry import Kernel, lowers
from hlotool.backends.numpy.windows import as_int64
from hlotool.ir.arrays import Array
from hlotool.ir.module import Instruction
from hlotool.ir.types import ElementType


@dataclass(frozen=True, slots=True)
class DotDimensions:
    """The roles of the dimensions of both operands.

    Attributes:
        lhs_batch: paired with rhs_batch; lead the result.
        rhs_batch: see lhs_batch.
        lhs_contracting: paired with rhs_contracting; summed over.
        rhs_contracting: see lhs_contracting.
    """

    lhs_batch: tuple[int, ...]
    rhs_batch: tuple[int, ...]
    lhs_contracting: tuple[int, ...]
    rhs_contracting: tuple[int, ...]

    def lhs_free(self, rank: int) -> tuple[int, ...]:
        """The remaining dimensions of the left operand."""
        return tuple(d for d in range(rank) if d not in self.lhs_batch + self.lhs_contracting)

    def rhs_free(self, rank: int) -> tuple[int, ...]:
        """The remaining dimensions of the right operand."""
        return tuple(d for d in range(rank) if d not in self.rhs_batch + self.rhs_contracting)

    def contract(self, lhs: Array, rhs: Array, dtype: np.dtype[Any] | None = None) -> Array:
        """The product of two arrays of one dtype, of dimensions [batch…, lhs free…, rhs free…].

        An operand without batch dimensions takes part in every batch position of the other.

        Args:
            dtype: of the product, where both are integers, perhaps of narrower types.
        """
        return self.contract_by(lambda left, right: multiply_matrices(left, right, dtype), lhs, rhs)

    def contract_by(self, multiply: Callable[[Array, Array], Array], lhs: Array, rhs: Array) -> Array:
        """As `contract`, where `multiply` makes [batch…, m, n] of [batch…, m, k] and [batch…, k, n]."""
        lhs_free, rhs_free = self.lhs_free(lhs.ndim), self.rhs_free(rhs.ndim)
        left = matrix(lhs, self.lhs_batch, lhs_free, self.lhs_contracting)
        right = matrix(rhs, self.rhs_batch, self.rhs_contracting, rhs_free)
        product = multiply(left, right)
        free = [lhs.shape[d] for d in lhs_free] + [rhs.shape[d] for d in rhs_free]
        return product.reshape((*product.shape[:-2], *free))


def dot_dimensions(instruction: Instruction) -> DotDimensions:
    """The dimension attributes of any kind of dot."""
    names = ("lhs_batch_dims", "rhs_batch_dims", "lhs_contracting_dims", "rhs_contracting_dims")
    return DotDimensions(*(instruction.integers(name, ()) for name in names))


def refuse_structure(instruction: Instruction, lowering: Lowering) -> None:
    """Raise Unsupported for a contraction whose operands are sparse or have scales by blocks."""
    if len(instruction.operands) > 2 or "sparsity_config" in instruction.attributes:
        raise lowering.unsupported(instruction, f"{instruction.opcode} with sparse operands")
    if "block_scaling_config" in instruction.attributes:
        raise lowering.unsupported(instruction, f"{instruction.opcode} with block-scaled operands")


@lowers("dot")
def dot(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Sum of products over the contracting dimensions, for each batch position.

    Operands convert to the type of the result where that is wider. `algorithm` and `operand_precision` choose
    how a backend may approximate; the reference always computes with the full precision of the declared types
    (see `contraction`), and so does XLA's CPU code.

    XLA: operation_semantics.md#dotgeneral.
    """
    refuse_structure(instruction, lowering)
    dimensions = dot_dimensions(instruction)
    result = instruction.element_type
    lhs_type, rhs_type = instruction.operand_types
    dtype = operand_dtype(result, lhs_type, rhs_type)

    def kernel(lhs: Array, rhs: Array) -> Array:
        if lhs_type.is_integer and rhs_type.is_integer and result.is_integer:
            return rounded(dimensions.contract(native(lhs, lhs_type), native(rhs, rhs_type), dtype), result)
        product = dimensions.contract(widened(lhs, lhs_type, dtype), widened(rhs, rhs_type, dtype))
        return rounded(product, result)

    return kernel


@lowers("scaled-dot")
def scaled_dot(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The product of two block-scaled arrays: operands lhs, rhs, lhs_scale, rhs_scale.

    Each scale factor covers a block of consecutive elements along every dimension. A scale of rank 0 counts
    as 1, whatever its value.

    XLA: operation_semantics.md#scaleddot; hlo_evaluator_typed_visitor.h (HandleScaledDot).
    """
    dimensions = dot_dimensions(instruction)
    result = instruction.element_type
    kinds = instruction.operand_types
    dtype = operand_dtype(result, *kinds)

    def kernel(*operands: Array) -> Array:
        lhs, rhs, lhs_scale, rhs_scale = (widened(o, k, dtype) for o, k in zip(operands, kinds))
        return rounded(dimensions.contract(scaled(lhs, lhs_scale), scaled(rhs, rhs_scale)), result)

    return kernel


def scaled(value: Array, scale: Array) -> Array:
    """`value` times its scale, each element of which covers a block of it (see `scaled_dot`)."""
    if not scale.ndim:
        return value
    for axis, (size, blocks) in enumerate(zip(value.shape, scale.shape)):
        if blocks and size != blocks:
            scale = scale.repeat(size // blocks, axis=axis)
    return value * scale


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


#: Rows that are solved one by one before the rest is updated by a matrix product.
_BLOCK = 32


def adjoint(a: Array) -> Array:
    """The conjugate transpose of each matrix in the last two dimensions."""
    return a.conj().swapaxes(-1, -2)


def solve_triangular(a: Array, b: Array, left: bool, lower: bool, transpose: str, unit: bool) -> Array:
    """x with op(a) · x = b (`left`) or x · op(a) = b.

    Args:
        a: [batch…, n, n]; only the triangle that `lower` names is read, and no diagonal if `unit`.
        b: [batch…, n, m], or [batch…, m, n] when not `left`.
        left: on which side a stands.
        lower: which triangle of a, as given, holds the matrix.
        transpose: op: `NO_TRANSPOSE`, `TRANSPOSE` or `ADJOINT`.
        unit: the diagonal counts as 1.
    """
    if transpose != "NO_TRANSPOSE":
        a, lower = (adjoint(a) if transpose == "ADJOINT" else a.swapaxes(-1, -2)), not lower
    if not left:
        transposed = solve_triangular(
            a.swapaxes(-1, -2), b.swapaxes(-1, -2), True, not lower, "NO_TRANSPOSE", unit
        )
        return transposed.swapaxes(-1, -2)
    if not lower:
        return _solve_lower(a[..., ::-1, ::-1], b[..., ::-1, :], unit)[..., ::-1, :]
    return _solve_lower(a, b, unit)


def _solve_lower(a: Array, b: Array, unit: bool) -> Array:
    """Forward substitution."""
    x = b.copy()
    size = a.shape[-1]
    for start in range(0, size, _BLOCK):
        stop = min(start + _BLOCK, size)
        _solve_rows(a[..., start:stop, start:stop], x[..., start:stop, :], unit)
        if stop < size:
            x[..., stop:, :] -= np.matmul(a[..., stop:, start:stop], x[..., start:stop, :])
    return x


def _solve_rows(a: Array, x: Array, unit: bool) -> None:
    """Solve for `x` in place, one row after the other."""
    for row in range(a.shape[-1]):
        if row:
            x[..., row, :] -= np.matmul(a[..., row : row + 1, :row], x[..., :row, :])[..., 0, :]
        if not unit:
            x[..., row, :] /= a[..., row, row, None]


@lowers("cholesky")
def cholesky(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The triangular factor of each Hermitian positive definite matrix in the last two dimensions.

    Reads only the triangle that `lower` names, of a complex diagonal only the real part; the other triangle
    of the result is 0. A matrix that is not positive definite gives NaN everywhere (XLA's CPU code leaves
    some elements of singular matrices finite, and lets imaginary parts of the diagonal through). Computed in
    f64 or c128.

    XLA: operation_semantics.md#cholesky.
    """
    return cholesky_kernel(instruction.element_type, instruction.flag("lower"))


def cholesky_kernel(kind: ElementType, lower: bool) -> Callable[[Array], Array]:
    """The factors of matrices of type `kind`; see `cholesky`."""

    def kernel(a: Array) -> Array:
        wide = native(a, kind)
        factor = _factor(wide if lower else adjoint(wide))
        return finish(factor if lower else adjoint(factor), kind)

    return kernel


def _factor(a: Array) -> Array:
    """Lower factors; NaN where a matrix has none."""
    if not a.size:
        return np.zeros_like(a)
    try:
        factor = np.linalg.cholesky(a)
    except np.linalg.LinAlgError:
        if a.ndim == 2:
            return np.full_like(a, np.nan)
        factor = np.stack([_factor(matrix) for matrix in a])
    failed = np.isnan(factor).any(axis=(-2, -1), keepdims=True)
    return np.where(failed, factor.dtype.type(np.nan), factor)


@lowers("triangular-solve")
def triangular_solve(instruction: Instruction, lowering: Lowering) -> Kernel:
    """x with op(a) · x = b, or x · op(a) = b when `left_side` is false, in the last two dimensions.

    Reads only the triangle that `lower` names, and not the diagonal when `unit_diagonal` calls it 1. `lower`
    speaks of a as stored, before `transpose_a`. A zero on the diagonal gives infinities and NaN.

    XLA: operation_semantics.md#triangularsolve.
    """
    transpose = instruction.text("transpose_a", "NO_TRANSPOSE")
    if transpose not in ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"):
        raise lowering.unsupported(instruction, f"transpose_a={transpose}")
    left = instruction.flag("left_side")
    lower = instruction.flag("lower")
    unit = instruction.flag("unit_diagonal")
    a_type, b_type = instruction.operand_types

    def kernel(a: Array, b: Array) -> Array:
        x = solve_triangular(native(a, a_type), native(b, b_type), left, lower, transpose, unit)
        return finish(x, b_type)

    return kernel
