"""Products of arrays over contracted dimensions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hlotool.backends.numpy.accumulation import native
from hlotool.backends.numpy.contraction import matrix, multiply_matrices, operand_dtype, rounded, widened
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.registry import Kernel, lowers
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Instruction


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
