"""Factorisations and triangular systems: rational functions and roots, exact whatever the algorithm.

Those that choose rows by size are unknown functions of the matrix, but for what a pivot can be.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hlotool.backends.field import complexes
from hlotool.backends.field import words as w
from hlotool.backends.field.blockwise import splitmix
from hlotool.backends.field.complexes import Pair
from hlotool.backends.field.lowering import FieldLowering
from hlotool.backends.field.numbers import Numbers
from hlotool.backends.field.products import matmul
from hlotool.backends.field.registry import call_means, means, plain
from hlotool.backends.field.trial import Trial
from hlotool.backends.field.unknown import without_model
from hlotool.backends.field.values import is_complex, pair, parts, residues
from hlotool.backends.field.words import Words
from hlotool.backends.numpy.kernels.lapack_calls import named_call
from hlotool.backends.numpy.kernels.linear_algebra import solve_triangular
from hlotool.backends.numpy.registry import Kernel
from hlotool.ir.arrays import Array
from hlotool.ir.module import Instruction
from hlotool.ir.types import array_shapes

_TRANSPOSES = {"N": "NO_TRANSPOSE", "T": "TRANSPOSE", "C": "ADJOINT"}


@means("cholesky")
def cholesky(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """The factor of a symmetric matrix, of which one triangle is read; the other one of the result is 0."""
    lower, trial = instruction.flag("lower"), lowering.trial
    if is_complex(instruction.shape):
        return lambda a: pair(*_complex_factor(parts(a), lower, trial))
    return lambda a: _in_triangle(a, lower, trial)


def _complex_factor(a: Pair, lower: bool, trial: Trial) -> Pair:
    factor = complexes.factor(a if lower else complexes.adjoint(a), trial)
    return factor if lower else complexes.adjoint(factor)


def _in_triangle(a: Words, lower: bool, trial: Trial) -> Words:
    return _factor(a, trial) if lower else _factor(a.swapaxes(-1, -2), trial).swapaxes(-1, -2)


def _factor(a: Words, trial: Trial) -> Words:
    """The lower factor of the matrices in the last two dimensions, column by column."""
    factor = np.zeros_like(a)
    for column in range(a.shape[-1]):
        rest = a[..., column:, column]
        if column:
            done = factor[..., column:, :column]
            rest = w.subtract(rest, matmul(done, done[..., :1, :].swapaxes(-1, -2))[..., 0])
        pivot = trial.sqrt(rest[..., :1])
        factor[..., column, column] = pivot[..., 0]
        factor[..., column + 1 :, column] = w.divide(rest[..., 1:], pivot)
    return factor


@call_means("lapack_spotrf_ffi", "lapack_dpotrf_ffi")
def potrf(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """The factor in the triangle `uplo`, the other one as it was; no matrix is singular."""
    lower = named_call(instruction, lowering).is_option("uplo", "L")
    _, info = array_shapes(instruction.shape)
    size, trial = instruction.operands[0].dims[-1], lowering.trial
    in_triangle = np.tri(size, dtype=np.bool_) if lower else np.tri(size, dtype=np.bool_).T

    def kernel(a: Words) -> tuple[Any, ...]:
        return np.where(in_triangle, _in_triangle(a, lower, trial), a), np.zeros(info.dims, np.int32)

    return kernel


@means("triangular-solve")
def triangular_solve(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """The solution of a triangular system."""
    transpose, unit = instruction.text("transpose_a", "NO_TRANSPOSE"), instruction.flag("unit_diagonal")
    left, lower = instruction.flag("left_side"), instruction.flag("lower")
    if is_complex(instruction.shape):
        return lambda a, b: pair(*complexes.solution(parts(a), parts(b), left, lower, transpose, unit))
    return _solution(lowering, left, lower, transpose, unit)


@call_means("lapack_strsm_ffi", "lapack_dtrsm_ffi")
def trsm(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """The solution of a triangular system."""
    call = named_call(instruction, lowering)
    transpose = _TRANSPOSES[chr(call.option("trans_x"))]
    left, lower = not call.is_option("side", "R"), call.is_option("uplo", "L")
    solved = _solution(lowering, left, lower, transpose, call.is_option("diag", "U"))
    if len(instruction.operands) == 2:
        return solved
    # jaxlib 0.4.38 and 0.5.0 hand over a factor of the right side.
    return lambda a, b, alpha: solved(a, w.multiply(b, alpha))


def _solution(
    lowering: FieldLowering, left: bool, lower: bool, transpose: str, unit: bool
) -> Callable[[Words, Words], Words]:
    """The numpy backend's substitution; transposed and adjoint are the same for real numbers."""
    real = "TRANSPOSE" if transpose == "ADJOINT" else transpose

    def kernel(a: Words, b: Words) -> Words:
        matrix, right = (Numbers(np.asarray(value), np.dtype(np.float64), lowering.trial) for value in (a, b))
        solution: Any = solve_triangular(matrix, right, left, lower, real, unit)  # type: ignore[arg-type]
        words: Words = solution.words
        return words

    return kernel


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
