"""Matrices of complex numbers as pairs of words: products, triangular factors, triangular systems."""

from __future__ import annotations

import numpy as np

from hlotool.backends.field import complexes as c
from hlotool.backends.field import words as w
from hlotool.backends.field.complexes import Pair
from hlotool.backends.field.products import matmul
from hlotool.backends.field.trial import Trial


def product(x: Pair, y: Pair) -> Pair:
    """The product of matrices [..., M, K] and [..., K, N]."""
    (a, b), (d, e) = x, y
    return w.subtract(matmul(a, d), matmul(b, e)), w.add(matmul(a, e), matmul(b, d))


def transposed(x: Pair) -> Pair:
    """With the last two dimensions exchanged."""
    return x[0].swapaxes(-1, -2), x[1].swapaxes(-1, -2)


def adjoint(x: Pair) -> Pair:
    """The conjugates, transposed."""
    real, imaginary = transposed(x)
    return real, w.negate(imaginary)


def factor(a: Pair, trial: Trial) -> Pair:
    """The lower factor of Hermitian matrices [..., n, n], of which the lower triangle is read."""
    found = np.zeros_like(a[0]), np.zeros_like(a[1])
    for column in range(a[0].shape[-1]):
        rest = _part(a, (..., slice(column, None), slice(column, column + 1)))
        if column:
            done = _part(found, (..., slice(column, None), slice(column)))
            rest = c.subtract(rest, product(done, adjoint(_part(done, (..., slice(1), slice(None))))))
        # What is under the root is real: the matrix is equal to its adjoint.
        pivot = trial.sqrt(rest[0][..., :1, :])
        below = (..., slice(column + 1, None), column)
        found[0][..., column, column] = pivot[..., 0, 0]
        for half, values in zip(found, rest):
            half[below] = w.divide(values[..., 1:, :], pivot)[..., 0]
    return found


def solution(a: Pair, b: Pair, left: bool, lower: bool, transpose: str, unit: bool) -> Pair:
    """x with op(a) · x = b (`left`) or x · op(a) = b; see the numpy backend's `solve_triangular`."""
    if transpose != "NO_TRANSPOSE":
        a, lower = (adjoint(a) if transpose == "ADJOINT" else transposed(a)), not lower
    if not left:
        return transposed(solution(transposed(a), transposed(b), True, not lower, "NO_TRANSPOSE", unit))
    if lower:
        return _forward(a, b, unit)
    backwards = slice(None, None, -1)
    rows = (..., backwards, slice(None))
    return _part(_forward(_part(a, (..., backwards, backwards)), _part(b, rows), unit), rows)


def _forward(a: Pair, b: Pair, unit: bool) -> Pair:
    """Forward substitution, one row after the other."""
    x = b[0].copy(), b[1].copy()
    for row in range(a[0].shape[-1]):
        here, above = (..., slice(row, row + 1), slice(None)), (..., slice(row), slice(None))
        value = _part(x, here)
        if row:
            known = _part(a, (..., slice(row, row + 1), slice(row)))
            value = c.subtract(value, product(known, _part(x, above)))
        if not unit:
            value = c.divide(value, _part(a, (..., slice(row, row + 1), slice(row, row + 1))))
        x[0][here], x[1][here] = value
    return x


def _part(x: Pair, index: tuple[object, ...]) -> Pair:
    return x[0][index], x[1][index]  # type: ignore[index]
