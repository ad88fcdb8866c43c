"""Factorisations that choose rows by size: unknown functions of the matrix, but for what a pivot can be.

The integers that black boxes return are 0. Here they say which rows change places, and with pivots of 0 one
use of them could not be told from another.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hlotool.backends.field.black_boxes import without_model
from hlotool.backends.field.hashing import splitmix
from hlotool.backends.field.held import residues
from hlotool.backends.field.lowering import FieldLowering
from hlotool.backends.field.registry import call_means, plain
from hlotool.backends.numpy.registry import Kernel
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Instruction
from hlotool.ir.types import array_shapes

_LAPACK = tuple(f"lapack_{letter}getrf{ending}" for letter in "sdcz" for ending in ("", "_ffi"))
_GPU = tuple(
    f"{platform}{name}"
    for platform in ("cu", "hip", "oneapi")
    for name in ("solver_getrf", "solver_getrf_ffi", "blas_getrf_batched")
)


@call_means(*_LAPACK, *_GPU)
def getrf(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """Factors of which nothing is known; the row that each one changes places with, from 1 on; `info`."""
    return _with_pivots(instruction, lowering, first=1)


@call_means("LuDecomposition")
def lu(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """The same with rows counted from 0, and the order of the rows that the exchanges make."""
    kernel = plain(_with_pivots(instruction, lowering, first=0))

    def with_order(*operands: Any) -> tuple[Any, ...]:
        factors, pivots, _ = kernel(*operands)
        rows = np.shape(factors)[-2]
        return factors, pivots, np.apply_along_axis(_order, -1, pivots, rows).astype(pivots.dtype)

    return with_order


def _with_pivots(instruction: Instruction, lowering: FieldLowering, first: int) -> Kernel:
    """The black box of a call, with pivots that depend on the factors."""
    box = plain(without_model(instruction, lowering))
    shape, *_ = array_shapes(instruction.shape)

    def kernel(*operands: Any) -> tuple[Any, ...]:
        factors, zeros, *others = box(*operands)
        return factors, (_pivots(residues(shape, factors)) + first).astype(zeros.dtype), *others

    return kernel


def _pivots(factors: Array) -> Array:
    """Of each row one of those from it on: a number for each element of the diagonals of `factors`, s64."""
    diagonal = np.diagonal(factors, axis1=-2, axis2=-1)
    row = np.arange(diagonal.shape[-1], dtype=np.uint64)
    left = np.uint64(factors.shape[-2]) - row
    return (row + splitmix(np.ascontiguousarray(diagonal, np.uint64)) % left).astype(np.int64)


def _order(pivots: Array, rows: int) -> Array:
    """The rows after row k has changed places with row `pivots[k]`, for every k in turn."""
    order = np.arange(rows)
    for row, other in enumerate(pivots):
        order[[row, other]] = order[[other, row]]
    return order
