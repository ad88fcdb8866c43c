"""Solution of triangular systems by blocks, vectorised over batches of matrices."""

from __future__ import annotations

import numpy as np

from hlotool.ir.dtypes import Array

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
    x = np.array(b)
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
