"""Float constants as the numbers that are meant: 0.100000001 is 1/10; tables computed by a compiler, by
place.

A program and its optimised version hold the same number rounded differently: as bf16 and as f32, as x and
1/x. Each is read as the simplest number that rounds to it, so that both read the same. A constant that no
simple number rounds to is the dyadic fraction that it is.

An element of a table is no constant of a formula: among hundreds of numbers any number is explained by
accident. But a table of the tested program that is, element by element, what the reference computes from
constants up to roundings (int8 weights times their scales) is that table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from math import isfinite, log2
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hlotool.backends.field.words import (
    INF,
    NAN,
    NEG_INF,
    Words,
    integers,
    multiply,
    negate,
    rational,
    sqrt,
)
from hlotool.facts import thresholds
from hlotool.facts.float_order import epsilon
from hlotool.ir.arrays import DTYPES, Array, Literal
from hlotool.ir.module import Module
from hlotool.ir.types import ArrayShape, ElementType


def slack() -> Fraction:
    """How far a constant may be off, relatively, in units of 2^-bits of its type."""
    return Fraction(thresholds.SNAP_UNITS.value)


class Rule(Enum):
    """Why a constant is read as a number."""

    SHORT = "few significant bits: exact"
    FRACTION = "the simplest fraction within its rounding"
    DECIMAL = "a short decimal within its rounding"
    ROOT = "the root of a simple fraction"
    DERIVED = "computed from constants of the reference, without rounding"
    RELATION = "made of constants of the reference by a few operations"
    ZERO = "so small that it is taken for 0"
    DYADIC = "nothing simpler: exact"


#: Bits of the types that hold so few numbers that integers among them are meant: f8 and narrower ones.
_NARROW: Final = 4


@dataclass(frozen=True, slots=True)
class Reading:
    """What a constant is read as.

    Attributes:
        word: its word, without dimensions.
        text: the number, such as `1/10` or `√(2/3)`.
        rule: why.
    """

    word: Words
    text: str
    rule: Rule


@dataclass(frozen=True, slots=True)
class Precision:
    """One float type.

    Attributes:
        bits: of its significand, the leading one included.
        dtype: as NumPy holds it.
    """

    bits: int
    dtype: np.dtype[Any]

    def holds(self, value: float) -> bool:
        """Whether `value` is one of its numbers."""
        with np.errstate(all="ignore"):
            return float(np.float64(value).astype(self.dtype)) == value

    @property
    def digits(self) -> int:
        """How many digits a decimal behind a constant may have: fewer than the type tells apart."""
        return {53: 14, 24: 6, 11: 3}.get(self.bits, 2)


def precisions(types: Sequence[ElementType]) -> tuple[Precision, ...]:
    """The real float types among `types`, and f32 and f64 in any case, from narrow to wide."""
    parts = {t.real_part for t in types if t.is_inexact} | {ElementType.F32, ElementType.F64}
    parts.discard(ElementType.F8E8M0FNU)  # powers of two, which every other type reads exactly
    found = {Precision(round(1 - log2(epsilon(t))), DTYPES[t]) for t in parts}
    return tuple(sorted(found, key=lambda p: (p.bits, p.dtype.itemsize, str(p.dtype))))


@lru_cache(maxsize=1 << 14)
def reading_of(value: float, types: tuple[Precision, ...]) -> Reading:
    """The number that `value` stands for, at the narrowest of `types` that holds it; the last one is f64."""
    if value < 0:
        positive = reading_of(-value, types)
        return Reading(negate(positive.word), f"-{positive.text}", positive.rule)
    if value == 0 or not isfinite(value):
        return Reading(dyadic(np.array(value)), f"{value:g}", Rule.SHORT)
    exact = Fraction(value)
    narrowest = next(t for t in types if t.holds(value))
    return _simple(exact, value, narrowest) or _of_fraction(exact, Rule.DYADIC)


def _simple(exact: Fraction, value: float, precision: Precision) -> Reading | None:
    bits = precision.bits
    short = exact.numerator // (exact.numerator & -exact.numerator)
    # 448 is the largest number of f8e4m3fn, and not the 450 that rounds to it.
    if short < 1 << max(2, bits // 2 - 2) or (bits <= _NARROW and exact.denominator == 1):
        return _of_fraction(exact, Rule.SHORT)
    fraction = simplest(exact, bits)
    if _cost(fraction) <= bits - max(2, bits // 4):
        return _of_fraction(fraction, Rule.FRACTION)
    for digits in range(1, precision.digits + 1):
        decimal = Fraction(f"{value:.{digits - 1}e}")
        if abs(decimal - exact) * 2**bits <= slack() * exact:
            return _of_fraction(decimal, Rule.DECIMAL)
    if bits >= 24:
        square = simplest(exact * exact, bits - 1)
        if _cost(square) <= bits - max(2, bits // 3):
            word = sqrt(rational(square.numerator, square.denominator))
            return Reading(word, f"√({square})", Rule.ROOT)
    return None


def _of_fraction(fraction: Fraction, rule: Rule) -> Reading:
    return Reading(rational(fraction.numerator, fraction.denominator), str(fraction), rule)


def _cost(fraction: Fraction) -> float:
    """Bits that it takes to write the fraction."""
    return log2(fraction.numerator) + log2(fraction.denominator) if fraction > 0 else 0.0


def simplest(exact: Fraction, bits: int) -> Fraction:
    """The fraction of the smallest denominator within `slack` units of a positive number of `bits` bits."""
    width = exact * slack() / 2**bits
    return _between(exact - width, exact + width)


def _between(low: Fraction, high: Fraction) -> Fraction:
    """The fraction of the smallest denominator from `low` to `high`: a path in the Stern-Brocot tree."""
    whole = -(-low.numerator // low.denominator)
    if whole <= high:
        return Fraction(whole)
    base = low.numerator // low.denominator
    return base + 1 / _between(1 / (high - base), 1 / (low - base))


def dyadic(values: npt.NDArray[np.float64]) -> Words:
    """The words of f64 numbers as they are."""
    finite = np.isfinite(values)
    mantissas, exponents = np.frexp(np.where(finite, values, 0.0))
    shifts, inverse = np.unique(exponents - 53, return_inverse=True)
    powers = [rational(1 << max(s, 0), 1 << max(-s, 0)) for s in shifts.tolist()]
    scales = np.array(powers, np.uint64)[inverse].reshape(values.shape)
    words = multiply(integers((mantissas * 2.0**53).astype(np.int64)), scales)
    for special, word in ((np.inf, INF), (-np.inf, NEG_INF)):
        words = np.where(values == special, word, words)
    return np.where(np.isnan(values), NAN, words)


#: Elements of smaller arrays are constants of a formula.
SMALL: Final = 64
#: Larger ones are not looked at.
_LARGE: Final = 1 << 20


class Tables:
    """The tables that follow from constants in a reference, of the sizes that a tested program has.

    Args:
        reference: the program whose constants are as they were written.
        tested: the other one, if there is one.

    Attributes:
        sizes: elements of the tables that only the tested program has.
    """

    def __init__(self, reference: Module, tested: Module | None) -> None:
        own = [] if tested is None else list(_tables(tested))
        written = {literal.key for literal in _tables(reference)} if own else set()
        self.sizes = frozenset(one.array.size for one in own if one.key not in written)
        self._known: list[tuple[Array, npt.NDArray[np.float64], Words]] = []

    def note(self, values: Array, off: npt.NDArray[np.float64], words: Words) -> None:
        """Note what the reference computes from constants alone.

        Args:
            values: in its own arithmetic.
            off: by how much roundings may have moved each.
            words: what they are without rounding.
        """
        self._known.append((values, off, words))

    def find(self, values: npt.NDArray[np.float64]) -> Words | None:
        """The words of a table of the tested program; None where nothing explains it."""
        for known, off, words in self._known:
            if known.size != values.size:
                continue
            wide = known.astype(np.float64).reshape(values.shape)
            if (np.abs(wide - values) <= off.reshape(values.shape)).all():
                return words.reshape(values.shape)
        return None


def _tables(module: Module) -> Iterator[Literal]:
    for instruction in module.instructions():
        shape, literal = instruction.shape, instruction.literal
        if literal is None or not isinstance(shape, ArrayShape) or not shape.element_type.is_floating:
            continue
        if SMALL < shape.size <= _LARGE and not literal.has_elided:
            yield literal
