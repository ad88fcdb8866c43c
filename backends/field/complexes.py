"""Complex numbers as pairs of words, and matrices of them: products, triangular factors, triangular
systems.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np

from hlotool.backends.field import words as w
from hlotool.backends.field.products import matmul
from hlotool.backends.field.trial import Trial
from hlotool.backends.field.values import pair, parts
from hlotool.backends.field.words import Words
from hlotool.ir.arrays import Array

#: Real and imaginary part.
Pair: TypeAlias = tuple[Words, Words]

_TWO: Final = w.integers(2)
#: The largest exponent, doubled, whose power is a product.
_LARGEST_POWER: Final = 32

#: From pairs to a pair.
Function: TypeAlias = Callable[..., Pair]


def lifted(function: Function) -> Callable[..., Array]:
    """`function` on arrays that hold complex numbers (`held`)."""
    return lambda *operands: pair(*function(*map(parts, operands)))


def add(x: Pair, y: Pair) -> Pair:
    """x + y."""
    return w.add(x[0], y[0]), w.add(x[1], y[1])


def subtract(x: Pair, y: Pair) -> Pair:
    """x - y."""
    return w.subtract(x[0], y[0]), w.subtract(x[1], y[1])


def negate(x: Pair) -> Pair:
    """-x."""
    return w.negate(x[0]), w.negate(x[1])


def multiply(x: Pair, y: Pair) -> Pair:
    """x y."""
    (a, b), (c, d) = x, y
    real = w.subtract(w.multiply(a, c), w.multiply(b, d))
    return real, w.add(w.multiply(a, d), w.multiply(b, c))


def divide(x: Pair, y: Pair) -> Pair:
    """x / y, by the square of the length of y."""
    scale = w.inverse(_square(y))
    real, imaginary = multiply(x, (y[0], w.negate(y[1])))
    return w.multiply(real, scale), w.multiply(imaginary, scale)


def length(x: Pair) -> Words:
    """|x|."""
    return w.sqrt(_square(x))


def direction(x: Pair) -> Pair:
    """x / |x|."""
    scale = w.inverse(length(x))
    return w.multiply(x[0], scale), w.multiply(x[1], scale)


def exp(trial: Trial, x: Pair) -> Pair:
    """exp of the real part, turned by the imaginary one."""
    size = trial.exp(x[0])
    return w.multiply(size, trial.cosine(x[1])), w.multiply(size, trial.sine(x[1]))


def log(trial: Trial, x: Pair) -> Pair:
    """The logarithm of the length, and the angle."""
    return trial.log(trial.sqrt(_square(x))), trial.opaque("atan2", x[1], x[0])


def sqrt(trial: Trial, x: Pair) -> Pair:
    """The root with a positive real part: of the squares of its parts the difference is a, their sum |x|."""
    real = trial.sqrt(w.divide(w.add(trial.sqrt(_square(x)), x[0]), _TWO))
    return real, w.divide(x[1], w.add(real, real))


def power(trial: Trial, x: Pair, y: Pair) -> Pair:
    """x^y: a product where y is whole and not large, a root where it is 1/2, else exp(y log x)."""
    exponents = np.where(w.equal(y[1], w.ZERO), trial.kappa(y[0]), np.nan)
    different = np.unique(exponents)
    if is_product(different):
        dims = np.broadcast_shapes(np.shape(x[0]), np.shape(y[0]))
        base = np.broadcast_to(x[0], dims), np.broadcast_to(x[1], dims)
        return _half_power(trial, base, int(2 * different[0]))
    return exp(trial, multiply(y, log(trial, x)))


def is_product(exponents: Array) -> bool:
    """Whether a power is a product, up to a root, given the different exponents of its elements."""
    if len(exponents) != 1 or exponents[0].imag:
        return False
    twice = 2 * float(exponents[0].real)
    return abs(twice) <= _LARGEST_POWER and twice % 1 == 0


def _half_power(trial: Trial, x: Pair, twice: int) -> Pair:
    """x^(twice/2)."""
    result: Pair = np.broadcast_to(w.ONE, x[0].shape), np.broadcast_to(w.ZERO, x[0].shape)
    for _ in range(abs(twice) // 2):
        result = multiply(result, x)
    if twice % 2:
        result = multiply(result, sqrt(trial, x))
    return divide((w.ONE, w.ZERO), result) if twice < 0 else result


def opaque(trial: Trial, name: str, *operands: Pair) -> Pair:
    """A function without laws."""
    words = [part for operand in operands for part in operand]
    return trial.opaque(f"{name}.real", *words), trial.opaque(f"{name}.imaginary", *words)


def _square(x: Pair) -> Words:
    return w.add(w.multiply(x[0], x[0]), w.multiply(x[1], x[1]))


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
            rest = subtract(rest, product(done, adjoint(_part(done, (..., slice(1), slice(None))))))
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
            value = subtract(value, product(known, _part(x, above)))
        if not unit:
            value = divide(value, _part(a, (..., slice(row, row + 1), slice(row, row + 1))))
        x[0][here], x[1][here] = value
    return x


def _part(x: Pair, index: tuple[object, ...]) -> Pair:
    return x[0][index], x[1][index]  # type: ignore[index]
