"""Discrete logarithms modulo P to base 2: for which k is 2^k = x?

2 is a square modulo P, so its powers are the Q positive residues. Every residue is a fraction of two numbers
near √P, up to its sign; their logarithms stand in one table. It is made once per process: those of the
smallest primes by Shanks's baby and giant steps, those of larger primes from fractions r 2^i = a / b of
smaller numbers (index calculus without linear algebra).
"""

from __future__ import annotations

from functools import cache
from math import isqrt
from typing import Final

import numpy as np
import numpy.typing as npt

from hlotool.backends.field.fractions_of import LARGEST, Balanced, balanced
from hlotool.backends.field.hashing import Words
from hlotool.backends.field.residues import MODULO_P, MODULO_Q, P, Q

#: Exponents are below 2^30: two digits of as many bits.
DIGIT_BITS: Final = 15
#: Primes up to here are found by baby and giant steps; all of them are squares modulo P.
_FIRST: Final = 64
#: Bits by which most residues that are no small powers of 2 are told from them.
_HASH_BITS: Final = 20
_HASH: Final = np.uint64((1 << _HASH_BITS) - 1)
#: Multiples r 2^i that are tried for all primes at once.
_TRIES: Final = 16


def powers(base: int) -> Words:
    """base^0, base^1, … modulo P: one for each digit of an exponent."""
    table = np.ones(1 << DIGIT_BITS, np.uint64)
    for bit in range(DIGIT_BITS):
        filled = 1 << bit
        table[filled : 2 * filled] = MODULO_P.product(table[:filled], np.uint64(pow(base, filled, P)))
    return table


def logarithms(fractions: Balanced) -> Words:
    """k with 2^k = |x|, modulo Q, of numbers that are not 0; |x| is the one of x and -x that is positive."""
    table = _logarithms_of_integers()
    differences = table[fractions.numerator] + np.uint64(Q) - table[np.abs(fractions.denominator)]
    return MODULO_Q.reduce(differences)


@cache
def _logarithms_of_integers() -> Words:
    """Of every number up to LARGEST; the entry of 0 means nothing."""
    table = np.zeros(LARGEST + 1, np.uint64)
    primes = _primes()
    largest_factors = np.arange(LARGEST + 1)
    for prime in primes.tolist():
        largest_factors[prime::prime] = prime
    first = primes[primes <= _FIRST]
    _note(table, first, _by_steps(first.astype(np.uint64)))
    known = _FIRST
    while known < LARGEST:
        todo = primes[(primes > known) & (primes <= 2 * known)]
        tried = 0
        while todo.size:
            found, values = _by_smaller(todo, known, tried, table, largest_factors)
            _note(table, todo[found], values)
            todo = todo[~found]
            tried += _TRIES
        known *= 2
    return MODULO_Q.reduce(table)


def _primes() -> npt.NDArray[np.intp]:
    """All up to LARGEST."""
    is_prime = np.ones(LARGEST + 1, np.bool_)
    is_prime[:2] = False
    for n in range(2, isqrt(LARGEST) + 1):
        is_prime[n * n :: n] = False
    return np.flatnonzero(is_prime)


def _note(table: Words, primes: npt.NDArray[np.int64], values: Words) -> None:
    """Add the logarithms of primes to those of all their multiples: sums of at most 15 terms."""
    for prime, value in zip(primes.tolist(), values):
        power = prime
        while power <= LARGEST:
            table[power::power] += value
            power *= prime


def _by_steps(residues: Words) -> Words:
    """The logarithms of positive residues, an array of one dimension: 2^low = x / 2^(2^15 high)."""
    small = powers(2)
    order = np.argsort(small)
    quotients = MODULO_P.product(residues[:, None], powers(pow(2, -(1 << DIGIT_BITS), P)))
    may_be_small = np.zeros(1 << _HASH_BITS, np.bool_)
    may_be_small[small & _HASH] = True
    row, high = np.nonzero(may_be_small[quotients & _HASH])
    low = order[np.minimum(np.searchsorted(small, quotients[row, high], sorter=order), small.size - 1)]
    is_found = small[low] == quotients[row, high]
    logarithms_found = np.zeros(residues.shape, np.uint64)
    logarithms_found[row[is_found]] = high[is_found] << DIGIT_BITS | low[is_found]
    return logarithms_found


def _by_smaller(
    primes: npt.NDArray[np.int64],
    known: int,
    tried: int,
    table: Words,
    largest_factors: npt.NDArray[np.int64],
) -> tuple[npt.NDArray[np.bool_], Words]:
    """Logarithms of primes r for which some r 2^i is a fraction whose prime factors are up to `known`.

    Returns:
        For which primes one was found, and those logarithms.
    """
    shifts = np.array([pow(2, i, P) for i in range(tried, tried + _TRIES)], np.uint64)
    multiples = MODULO_P.product(primes.astype(np.uint64)[:, None], shifts).reshape(-1)
    fractions = balanced(multiples)
    a, b = fractions.numerator, np.abs(fractions.denominator)
    is_smooth = ((largest_factors[a] <= known) & (largest_factors[b] <= known)).reshape(-1, _TRIES)
    found, chosen = np.any(is_smooth, axis=1), np.argmax(is_smooth, axis=1)
    at = np.flatnonzero(found) * _TRIES + chosen[found]
    exponents = (tried + chosen[found]).astype(np.uint64)
    terms = MODULO_Q.reduce(table[a[at]]) + np.uint64(2 * Q) - MODULO_Q.reduce(table[b[at]]) - exponents
    return found, MODULO_Q.reduce(terms)
