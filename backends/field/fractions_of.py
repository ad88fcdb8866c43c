"""Words as fractions: Euclid's algorithm on P and the residue modulo P, for whole arrays.

The remainders r and cofactors s with x s = r (mod P) pass through all small fractions r / s that x may be
modulo P. A word is the fraction a / b if its residue modulo Q says so, too. Whatever the word, one of the
fractions has both terms below √P: tables of √P entries give the value of any multiplicative function of x.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import isqrt
from typing import Final

import numpy as np
import numpy.typing as npt

from hlotool.backends.field.hashing import Words
from hlotool.backends.field.residues import MODULO_P, MODULO_Q, P, Q

Floats = npt.NDArray[np.float64]

#: Convergents that are looked at; of nearly all residues there are fewer.
_STEPS: Final = 24
#: Both terms of a balanced fraction are at most this.
ROOT: Final = isqrt(P)


@dataclass(frozen=True, slots=True)
class Fractions:
    """What an array of one dimension is as fractions.

    Attributes:
        is_small: where the word is a fraction in both halves, so small that no other is meant.
        value: the fraction there; 0 elsewhere.
        numerator: of the balanced fraction modulo P, from 0 to ROOT.
        denominator: of it, from -ROOT to ROOT, never 0.
    """

    is_small: npt.NDArray[np.bool_]
    value: Floats
    numerator: npt.NDArray[np.int64]
    denominator: npt.NDArray[np.int64]


def fractions_of(p: Words, q: Words) -> Fractions:
    """The fractions of words with residues p and q, arrays of one dimension without zeros modulo P."""
    r0, r1 = np.full(p.shape, float(P)), p.astype(np.float64)
    s0, s1 = np.zeros(p.shape), np.ones(p.shape)
    # |s| q - (±r) modulo Q of both: 0 where the fraction holds modulo Q, too.
    off0 = np.ones(p.shape, np.uint64)  # P modulo Q
    off1 = MODULO_Q.reduce(q + (np.uint64(2 * Q) - MODULO_Q.reduce(p.copy())))
    is_small, value = np.zeros(p.shape, np.bool_), np.zeros(p.shape)
    numerator, denominator = np.zeros(p.shape), np.ones(p.shape)
    for _ in range(_STEPS):
        is_unbalanced = r0 > ROOT
        np.copyto(numerator, r1, where=is_unbalanced)
        np.copyto(denominator, s1, where=is_unbalanced)
        if not off1.all():
            new = (off1 == 0) & ~is_small
            np.divide(r1, s1, out=value, where=new)
            is_small |= new
        if r1.max(initial=0.0) <= 1:
            break
        # Where the remainder is 0 already, what follows are fractions without meaning that nothing reads.
        quotient = np.floor(r0 / np.maximum(r1, 0.5))
        r0, r1 = r1, r0 - quotient * r1
        s0, s1 = s1, s0 - quotient * s1
        off0, off1 = off1, MODULO_Q.reduce(quotient.astype(np.uint64) * off1 + off0)
    return Fractions(is_small, value, numerator.astype(np.int64), denominator.astype(np.int64))


def is_square(fractions: Fractions) -> npt.NDArray[np.bool_]:
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
