"""Cholesky decomposition and triangular systems."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.precision import finish, native
from hlotool.backends.numpy.registry import Kernel, lowers
from hlotool.ir.arrays import Array
from hlotool.ir.module import Instruction
from hlotool.ir.types import ElementType

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
