"""Words as fractions: Euclid's algorithm on P and the residue modulo P, for whole arrays.

The remainders r and cofactors s with x s = r (mod P) pass through all small fractions r / s that x may be
modulo P. A word is the fraction a / b if its residue modulo Q says so, too. Whatever the word, one of the
fractions has both terms below √P: tables of √P entries give the value of any multiplicative function of x.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from math import isqrt
from typing import Final

import numpy as np
import numpy.typing as npt

from hlotool.backends.field.hashing import Words
from hlotool.backends.field.residues import MODULO_P, MODULO_Q, P, Q

Floats = npt.NDArray[np.float64]

#: Up to so many words Python's integers are faster than NumPy's calls.
_ONE_BY_ONE: Final = 24
#: Convergents that are looked at; of nearly all residues there are fewer.
_STEPS: Final = 24
#: Both terms of a balanced fraction are at most this.
ROOT: Final = isqrt(P)


@dataclass(frozen=True, slots=True)
class Balanced:
    """Fractions that residues are, both terms at most ROOT: arrays of one dimension.

    Attributes:
        numerator: from 0 to ROOT.
        denominator: from -ROOT to ROOT, never 0.
    """

    numerator: npt.NDArray[np.int64]
    denominator: npt.NDArray[np.int64]


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
    found = _Balance(p.size)
    for step in _convergents(p):
        if not found.take(step):
            break
    return found.result


def fractions_of(p: Words, q: Words) -> Fractions:
    """The fractions of words with residues p and q, arrays of one dimension."""
    if p.size <= _ONE_BY_ONE:
        return _one_by_one(p.tolist(), q.tolist())
    found = _Balance(p.size)
    # |s| q - (±r) modulo Q of the last two steps: 0 where the fraction holds modulo Q, too.
    off0 = np.ones(p.shape, np.uint64)  # P modulo Q
    off1 = MODULO_Q.reduce(q + (np.uint64(2 * Q) - MODULO_Q.reduce(p.copy())))
    is_small, value = np.zeros(p.shape, np.bool_), np.zeros(p.shape)
    for step in _convergents(p):
        found.take(step)
        if step.quotient is not None:
            off0 += step.quotient.astype(np.uint64) * off1
            off0, off1 = off1, MODULO_Q.reduce(off0)
        if not off1.all():
            new = (off1 == 0) & ~is_small & (step.remainder > 0) & (np.abs(step.cofactor) < P)
            np.divide(step.remainder, step.cofactor, out=value, where=new)
            is_small |= new
    return Fractions(is_small, value, found.result)


def _one_by_one(p: list[int], q: list[int]) -> Fractions:
    """The same of a few words, by Python's integers."""
    values: list[float | None] = []
    terms: list[tuple[int, int]] = []
    for x, y in zip(p, q):
        (r0, r1), (s0, s1) = (P, x), (0, 1)
        value: float | None = None
        balance: tuple[int, int] | None = None
        for _ in range(_STEPS):
            if balance is None and r1 <= ROOT:
                balance = r1, s1
            if value is None and r1 and (s1 * y - r1) % Q == 0:
                value = r1 / s1
            if r1 <= 1:
                break
            quotient = r0 // r1
            r0, r1 = r1, r0 - quotient * r1
            s0, s1 = s1, s0 - quotient * s1
        values.append(value)
        terms.append(balance or (r1, s1))
    numerators, denominators = np.array(terms, np.int64).reshape(-1, 2).T
    return Fractions(
        np.array([value is not None for value in values], np.bool_),
        np.array([value or 0.0 for value in values]),
        Balanced(numerators, denominators),
    )


@dataclass(frozen=True, slots=True)
class _Step:
    """One step of Euclid's algorithm: x cofactor = remainder (mod P).

    Attributes:
        before: the remainder of the step before.
        remainder: from 0 to P.
        cofactor: of alternating sign.
        quotient: that of the two remainders before; None at the first step.
    """

    before: Floats
    remainder: Floats
    cofactor: Floats
    quotient: Floats | None


def _convergents(p: Words) -> Iterator[_Step]:
    """The steps from x = x / 1 until all remainders are 0 or 1, at most _STEPS.

    Where a remainder is 0 already, what follows are fractions without meaning that are not small.
    """
    r0, r1 = np.full(p.shape, float(P)), p.astype(np.float64)
    s0, s1 = np.zeros(p.shape), np.ones(p.shape)
    quotient: Floats | None = None
    for _ in range(_STEPS):
        yield _Step(r0, r1, s1, quotient)
        if r1.max(initial=0.0) <= 1:
            break
        quotient = np.maximum(r1, 0.5)
        np.divide(r0, quotient, out=quotient)
        np.floor(quotient, out=quotient)
        r0, r1 = r1, r0 - quotient * r1
        s0, s1 = s1, s0 - quotient * s1


class _Balance:
    """Waits for the first remainder of each element that is at most ROOT: its cofactor is, too."""

    def __init__(self, size: int) -> None:
        self._numerator, self._denominator = np.zeros(size), np.ones(size)
        self._is_over = False

    def take(self, step: _Step) -> bool:
        """See one step; whether more are needed."""
        if not self._is_over:
            is_unbalanced = step.before > ROOT
            if is_unbalanced.any():
                np.copyto(self._numerator, step.remainder, where=is_unbalanced)
                np.copyto(self._denominator, step.cofactor, where=is_unbalanced)
            else:
                self._is_over = True
        return not self._is_over

    @property
    def result(self) -> Balanced:
        """The fractions found."""
        return Balanced(self._numerator.astype(np.int64), self._denominator.astype(np.int64))


def is_square(fractions: Balanced) -> npt.NDArray[np.bool_]:
    """Where the number is a square modulo P: positive."""
    squares = _squares()
    odd = squares[fractions.numerator] != squares[np.abs(fractions.denominator)]
    return np.asarray(odd == (fractions.denominator < 0))  # -1 is no square


@cache
def _squares() -> npt.NDArray[np.bool_]:
    """For every number up to ROOT whether it is a square modulo P; it is for 0, too."""
    found = np.asarray(MODULO_P.power(np.arange(ROOT + 1, dtype=np.uint64), Q) == 1)
    found[0] = True
    return found
