"""Cholesky decomposition and triangular systems."""

from __future__ import annotations

import numpy as np

from hlotool.backends.numpy.accumulation import finish, native
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.registry import Kernel, lowers
from hlotool.backends.numpy.triangular import adjoint, solve_triangular
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Instruction


@lowers("cholesky")
def cholesky(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The triangular factor of each Hermitian positive definite matrix in the last two dimensions.

    Reads only the triangle that `lower` names, of a complex diagonal only the real part; the other triangle
    of the result is 0. A matrix that is not positive definite gives NaN everywhere (XLA's CPU code leaves
    some elements of singular matrices finite, and lets imaginary parts of the diagonal through). Computed in
    f64 or c128.

    XLA: operation_semantics.md#cholesky.
    """
    kind = instruction.element_type
    lower = instruction.flag("lower")

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
