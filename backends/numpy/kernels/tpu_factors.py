"""Blocks of linear algebra that the TPU's compiler leaves to calls of its own, which it does not document.

What each computes is read off how compiled programs use it: the algebra that its operands and results enter
holds for these meanings and for no others. Measured on what libtpu 0.0.42 makes of decompositions, solutions
and their gradients (batches, sizes above one block of 128, upper and lower triangles). Where a result is not
unique (signs of vectors, order of eigenvalues) a TPU may choose otherwise.
"""

from __future__ import annotations

import numpy as np

from hlotool.backends.numpy.backward_errors import Stability
from hlotool.backends.numpy.custom_calls import custom_call
from hlotool.backends.numpy.kernels import lapack_factors, lapack_spectra, platform_calls
from hlotool.backends.numpy.kernels.linear_algebra import cholesky_kernel, solve_triangular
from hlotool.backends.numpy.lapack import LapackCall, Results, batched, lapack_call
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.registry import Kernel
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Instruction


@custom_call("Cholesky", widens=True)
def cholesky_block(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The lower factor of each matrix, NaN where there is none; programs look at the diagonal for that.

    Source: programs that libtpu 0.0.42 compiles; they zero the other triangle themselves.
    """
    return cholesky_kernel(instruction.element_type, lower=True)


@custom_call("InvertDiagBlocksLowerTriangular", "InvertDiagBlocksUpperTriangular", widens=True)
def inverse_of_triangles(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The inverses of triangular matrices; a zero on a diagonal gives infinities and NaN.

    Source: programs that libtpu 0.0.42 compiles: a solution of a triangular system multiplies by them.
    """
    is_lower = "Lower" in instruction.custom_call_target

    def kernel(a: Array) -> Array:
        one = np.broadcast_to(np.eye(a.shape[-1], dtype=a.dtype), a.shape)
        return solve_triangular(a, one, True, is_lower, "NO_TRANSPOSE", False)

    return kernel


@custom_call("QrDecompositionBlock", widens=True, stable=Stability.COLUMNS)
def qr_block(instruction: Instruction, lowering: Lowering) -> Kernel:
    """QR decomposition of panels: R with the Householder vectors below it, and their factors.

    Source: programs that libtpu 0.0.42 compiles; XLA: hlo/transforms/expanders/qr_expander.cc.
    """
    return batched(lapack_factors.geqrf, lapack_call(instruction, lowering, {}), (2,), instruction, lowering)


@custom_call("CompactWyHelper", widens=True)
def compact_wy(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The middle factor T of a product of reflections, I + V·T·Vᵀ.

    The operand is (I + the strict upper triangle of VᵀV) with column j multiplied by -tau[j]. T has its
    diagonal, and T[:j, j] = T[:j, :j] · operand[:j, j].

    Source: programs that libtpu 0.0.42 compiles; XLA: hlo/transforms/expanders/qr_expander.cc; the recurrence
    is that of LAPACK's larft.
    """

    def routine(call: LapackCall, a: Array) -> Results:
        factor = np.diag(np.diag(a))
        for column in range(1, len(a)):
            factor[:column, column] = factor[:column, :column] @ a[:column, column]
        return (factor,)

    return batched(routine, lapack_call(instruction, lowering, {}), (2,), instruction, lowering)


@custom_call("LuDecompositionBlock", "LuRealDecompositionBlock", widens=True, stable=Stability.COLUMNS)
def lu_block(instruction: Instruction, lowering: Lowering) -> Kernel:
    """LU decomposition of panels with partial pivoting: factors, pivots from 0, permutation of the rows.

    Source: programs that libtpu 0.0.42 and 0.0.52 compile; XLA: hlo/builder/lib/lu_decomposition.h.
    """
    return platform_calls.lu(instruction, lowering)


@custom_call("EighTpu", widens=True, stable=Stability.MATRIX)
def eigenvalues_of_blocks(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Eigenvalues and eigenvectors of symmetric matrices in four blocks, in rows: (first values, last values,
    and four blocks of the matrix whose rows are the vectors).

    Programs sort the values, and the vectors with them. A last row and column of zeros, which matrices of odd
    size are padded with, keep their place, as they do where rotations meet nothing to rotate.

    Source: programs that libtpu 0.0.42 compiles; XLA: hlo/transforms/expanders/eigh_expander.cc.
    """
    options = {"mode": ord("V"), "uplo": ord("L")}

    def routine(call: LapackCall, *blocks: Array) -> Results:
        half = len(blocks[0])
        matrix = np.block([[blocks[0], blocks[1]], [blocks[2], blocks[3]]])
        rows, values = np.eye(2 * half, dtype=matrix.dtype), np.diag(matrix).copy()
        size = 2 * half if matrix[-1, :-1].any() or matrix[:-1, -1].any() else 2 * half - 1
        vectors, values[:size], _ = lapack_spectra.syevd(call, matrix[:size, :size])
        rows[:size, :size] = vectors.T
        parts = [rows[i : i + half, j : j + half] for i in (0, half) for j in (0, half)]
        return values[:half], values[half:], *parts

    return batched(routine, lapack_call(instruction, lowering, options), (2,) * 4, instruction, lowering)
