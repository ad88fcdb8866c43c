"""Complex numbers as pairs of words."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from hlotool.backends.field import words as w
from hlotool.backends.field.held import pair, parts
from hlotool.backends.field.trial import Trial
from hlotool.backends.field.words import Words
from hlotool.ir.dtypes import Array

#: Real and imaginary part.
Pair: TypeAlias = tuple[Words, Words]

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


def opaque(trial: Trial, name: str, *operands: Pair) -> Pair:
    """A function without laws."""
    words = [part for operand in operands for part in operand]
    return trial.opaque(f"{name}.real", *words), trial.opaque(f"{name}.imaginary", *words)


def _square(x: Pair) -> Words:
    return w.add(w.multiply(x[0], x[0]), w.multiply(x[1], x[1]))
