"""Dots and convolutions whose terms are seen one by one, which a product of matrices of NumPy's hides."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np

from hlotool.backends.numpy.contraction import operand_dtype
from hlotool.backends.numpy.kernels.convolution import convolver
from hlotool.backends.numpy.kernels.dot import dot_dimensions
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Instruction

#: Makes [batch…, m, n] of [batch…, m, k] and [batch…, k, n].
Multiply: TypeAlias = Callable[[Array, Array], Array]

#: Elements of terms that are held at a time.
BLOCK = 1 << 21


def contracted_by(held: Instruction, multiply: Multiply) -> Callable[..., Any]:
    """The kernel of a dot or convolution that multiplies matrices in a way of its own.

    Args:
        held: the instruction, in the types in which it is executed.
        multiply: makes products of matrices.
    """
    if held.opcode == "convolution":
        return convolver(held, multiply)
    dimensions = dot_dimensions(held)
    dtype = operand_dtype(held.element_type, *held.operand_types)

    def kernel(lhs: Array, rhs: Array) -> Array:
        left, right = (value.astype(dtype, copy=False) for value in (lhs, rhs))
        return dimensions.contract_by(multiply, left, right)

    return kernel


def zeros_for(lhs: Array, rhs: Array) -> Array:
    """Zeros in the shape of the product of matrices [batch…, m, k] and [batch…, k, n]."""
    batch = np.broadcast_shapes(lhs.shape[:-2], rhs.shape[:-2])
    return np.zeros((*batch, lhs.shape[-2], rhs.shape[-1]), lhs.dtype)


def terms_of(lhs: Array, rhs: Array, rows: int) -> Iterator[Array]:
    """The terms of that product, [terms, batch…, m, n] for `rows` of the terms at a time."""
    for start in range(0, lhs.shape[-1], rows):
        some = slice(start, start + rows)
        left, right = np.moveaxis(lhs[..., some], -1, 0), np.moveaxis(rhs[..., some, :], -2, 0)
        yield left[..., :, None] * right[..., None, :]


def rows_held(size: int, step: int = 1) -> int:
    """How many rows of so many elements are held at a time, a multiple of `step`."""
    return max(1, BLOCK // max(1, size) // step) * step
