"""Complex numbers as pairs of words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np

from hlotool.backends.field import words as w
from hlotool.backends.field.held import pair, parts
from hlotool.backends.field.trial import Trial
from hlotool.backends.field.words import Words
from hlotool.ir.dtypes import Array

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
