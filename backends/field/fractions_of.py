"""Words as fractions: Euclid's algorithm on P and the residue modulo P, for whole arrays.

The remainders r and cofactors s with x s = r (mod P) pass through all small fractions r / s that x may be
modulo P. A word is the fraction if its residue modulo Q says so, too. Whatever the word, one of the fractions
has both terms near √P: tables of so many entries give the value of any multiplicative function of x.

Quotients are rounded to the nearest integer, which takes a third fewer steps than rounding down and leaves
out no fraction whose terms have a product below P / 3.

Both residues of a word are one number X modulo P Q, and x = r / s says that s X / (P Q) is nearly a whole
number, off by r / (P Q). So one product in f64 per step tells all but a millionth of the words that are no
fractions; what it lets pass is tried exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import repeat
from math import isqrt
from typing import Final

import numpy as np
import numpy.typing as npt

from hlotool.backends.field.blockwise import Words
from hlotool.backends.field.words import MODULO_P, MODULO_Q, P, Q

Floats = npt.NDArray[np.float64]

#: Up to so many words Python's integers are faster than NumPy's calls.
_ONE_BY_ONE: Final = 12
#: No residue takes more steps: each remainder is at most half of the one before.
_STEPS: Final = P.bit_length()
#: Steps after which some of many residues may be at the end: before, that is not tested.
_AT_LEAST: Final = 10
#: Both terms of a balanced fraction are at most this. One remainder with its cofactor is: where r is the one
#: before, r s is at most P + r/2 s/φ, that is 1.4472 P.
LARGEST: Final = isqrt(14472 * P // 10000) + 1
#: How far s X / (P Q) may be off a whole number: of cofactors up to 2^31, f64 computes it to 2^-21.4.
_NEARLY_WHOLE: Final = 2.0**-21


@dataclass(frozen=True, slots=True)
class Balanced:
    """Fractions that residues are, both terms at most ROOT: arrays of one dimension.

    Attributes:
        numerator: from 0, of 0 alone, to LARGEST.
        denominator: from -LARGEST to LARGEST, never 0.
    """

    numerator: npt.NDArray[np.int32]
    denominator: npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Fractions:
    """What an array of words of one dimension is as fractions.

    Attributes:
        is_small: where the word is a fraction in both halves, so small that no other is meant.
        value: the fraction there; 0 elsewhere.
        balanced: the fraction modulo P, which means nothing modulo Q.
    """

    is_small: npt.NDArray[np.bool_]
    value: Floats
    balanced: Balanced


def balanced(p: Words) -> Balanced:
    """The balanced fractions of residues modulo P, an array of one dimension."""
    if p.size <= _ONE_BY_ONE:
        return _one_by_one(p.tolist(), None).balanced
    steps, found = _Steps(p), _Balance(p.size)
    with np.errstate(all="ignore"):
        while found.is_waiting:
            found.look_at(steps)
            steps.take()
    return found.result


def fractions_of(p: Words, q: Words) -> Fractions:
    """The fractions of words with residues p and q, arrays of one dimension."""
    if p.size <= _ONE_BY_ONE:
        return _one_by_one(p.tolist(), q.tolist())
    steps, balance, small = _Steps(p), _Balance(p.size), _Small(p, q)
    with np.errstate(all="ignore"):
        for number in range(_STEPS):
            if number >= _AT_LEAST and not steps.are_left:
                break
            if balance.is_waiting:
                balance.look_at(steps)
            small.look_at(steps)
            steps.take()
    return Fractions(small.is_small, small.value, balance.result)


class _Steps:
    """Euclid's algorithm on P and each residue of an array, from x = x / 1 on.

    Attributes:
        remainder: r, of either sign, from P down to 0. What follows a 0 means nothing: infinities and NaN.
        cofactor: s, of either sign, with x s = r (mod P).
    """

    def __init__(self, p: Words) -> None:
        self._before = np.full(p.shape, float(P)), np.zeros(p.shape)
        self.remainder, self.cofactor = p.astype(np.float64), np.ones(p.shape)
        self._quotient, self._product = np.empty(p.shape), np.empty(p.shape)

    def take(self) -> None:
        """Go on by one step."""
        remainder, cofactor = self._before
        np.divide(remainder, self.remainder, out=self._quotient)
        # The nearest quotient, not the one below: remainders halve with each step, whatever their signs.
        np.rint(self._quotient, out=self._quotient)
        remainder -= np.multiply(self._quotient, self.remainder, out=self._product)
        cofactor -= np.multiply(self._quotient, self.cofactor, out=self._product)
        self._before = self.remainder, self.cofactor
        self.remainder, self.cofactor = remainder, cofactor

    @property
    def are_left(self) -> bool:
        """Whether some remainder is not 0 yet."""
        return bool((np.abs(self.remainder) >= 1).any())


class _Balance:
    """Waits for the first remainder of each element that is at most LARGEST: its cofactor is, too."""

    def __init__(self, size: int) -> None:
        self._numerator, self._denominator = np.zeros(size, np.int32), np.ones(size, np.int32)
        self._is_missing, self.is_waiting = np.ones(size, np.bool_), size > 0

    def look_at(self, steps: _Steps) -> None:
        """See one step."""
        at = np.flatnonzero(self._is_missing & (np.abs(steps.remainder) <= LARGEST))
        if at.size:
            self._numerator[at], self._denominator[at] = steps.remainder[at], steps.cofactor[at]
            self._is_missing[at] = False
            self.is_waiting = bool(self._is_missing.any())

    @property
    def result(self) -> Balanced:
        """The fractions found."""
        return Balanced(np.abs(self._numerator), self._denominator * np.sign(self._numerator))


class _Small:
    """Waits for fractions that words are modulo Q, too."""

    def __init__(self, p: Words, q: Words) -> None:
        self.is_small, self.value = np.zeros(p.shape, np.bool_), np.zeros(p.shape)
        self._q = q
        # X = p + P m, for P = 1 (mod Q)
        m = MODULO_Q.reduce(q + (np.uint64(2 * Q) - MODULO_Q.reduce(p.copy())))
        self._share = (m + p / P) / Q
        self._multiple, self._whole = np.empty(p.shape), np.empty(p.shape)

    def look_at(self, steps: _Steps) -> None:
        """See one step."""
        np.multiply(steps.cofactor, self._share, out=self._multiple)
        self._multiple -= np.rint(self._multiple, out=self._whole)
        is_near = np.abs(self._multiple, out=self._multiple) < _NEARLY_WHOLE
        if is_near.any():
            self._try(np.flatnonzero(is_near & ~self.is_small), steps)

    def _try(self, at: npt.NDArray[np.intp], steps: _Steps) -> None:
        """Note those of some words whose fraction holds modulo Q."""
        at = at[(steps.remainder[at] != 0) & (np.abs(steps.cofactor[at]) < P)]
        r, s = (np.remainder(x[at], Q).astype(np.uint64) for x in (steps.remainder, steps.cofactor))
        at = at[MODULO_Q.product(s, self._q[at]) == r]
        self.is_small[at] = True
        self.value[at] = steps.remainder[at] / steps.cofactor[at]


def _one_by_one(p: list[int], q: list[int] | None) -> Fractions:
    """The same of a few words, by Python's integers; without q only the balanced fractions are looked for."""
    values: list[float | None] = []
    terms: list[tuple[int, int]] = []
    for x, y in zip(p, q or repeat(0)):
        # Remainders without their signs, which their cofactors have.
        (r0, r1), (s0, s1) = (P, x), (0, 1)
        value: float | None = None
        balance: tuple[int, int] | None = None
        is_waiting = q is not None
        while r1:
            if balance is None and r1 <= LARGEST:
                balance = r1, s1
                if q is None:
                    break
            if is_waiting and (s1 * y - r1) % Q == 0:
                value, is_waiting = r1 / s1, False
            quotient, r2 = divmod(r0, r1)
            if 2 * r2 > r1 or (2 * r2 == r1 and quotient & 1):  # as np.rint
                r2 = r1 - r2
                s0, s1 = s1, (quotient + 1) * s1 - s0
            else:
                s0, s1 = s1, s0 - quotient * s1
            r0, r1 = r1, r2
        values.append(value)
        terms.append(balance or (0, 1))
    numerators, denominators = np.array(terms, np.int32).reshape(-1, 2).T
    return Fractions(
        np.array([value is not None for value in values], np.bool_),
        np.array([value or 0.0 for value in values]),
        Balanced(numerators, denominators),
    )


def is_square(fractions: Balanced) -> npt.NDArray[np.bool_]:
    """Where the number is a square modulo P: positive."""
    squares = _squares()
    odd = squares[fractions.numerator] != squares[np.abs(fractions.denominator)]
    return np.asarray(odd == (fractions.denominator < 0))  # -1 is no square


@cache
def _squares() -> npt.NDArray[np.bool_]:
    """For every number up to LARGEST whether it is a square modulo P; it is for 0, too."""
    found = np.asarray(MODULO_P.power(np.arange(LARGEST + 1, dtype=np.uint64), Q) == 1)
    found[0] = True
    return found
