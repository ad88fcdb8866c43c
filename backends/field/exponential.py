"""exp as a homomorphism, the logarithm that inverts it, and powers by both; discrete logarithms to base 2."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from math import isqrt
from typing import Final

import numpy as np
import numpy.typing as npt

from hlotool.backends.field.blockwise import (
    Words,
    by_blocks,
    in_blocks,
    key,
    once_per_element,
    splitmix,
    splitmix_of,
)
from hlotool.backends.field.fractions_of import LARGEST, Balanced, balanced, is_square
from hlotool.backends.field.functions import opaque
from hlotool.backends.field.words import (
    INF,
    MODULO_P,
    MODULO_Q,
    NEG_INF,
    ONE,
    P,
    Q,
    join,
    multiply,
    split,
)

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
    # A table of bits rules out nearly all quotients; what is left is few enough for a binary search.
    may_be_small = np.zeros(1 << _HASH_BITS, np.bool_)
    may_be_small[small & _HASH] = True
    row, high = np.nonzero(may_be_small[quotients & _HASH])
    # A quotient beyond all small powers is looked up as the largest of them, which it does not equal.
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


_LOW: Final = np.uint64(0xFFFFFFFF)
_DIGIT: Final = np.uint64((1 << DIGIT_BITS) - 1)

#: Exponents that are these multiples of an earlier one, and their inverses, give powers of its exponential.
#: Products of an exponential with itself have the first ones; a scan in pairs squares again and again.
_MULTIPLES: Final = (-1, 2, -2, 3, -3, 4, -4, 8, -8, 16, -16)

#: Powers of powers that a logarithm is traced back through.
_DEPTH: Final = 8


class Exponential:
    """exp, log and powers of one trial; both programs of a pair are given the same object.

    Args:
        seed: of the trial.
        remembers: whether `log` may be asked for; if not, the arguments of exp are not kept.
        nests: whether what exp returned may be part of what it is given; if not, the result modulo Q has no
            laws.
    """

    def __init__(self, seed: int, remembers: bool = True, nests: bool = True) -> None:
        base_log = splitmix_of(key("generator", seed)) % (Q - 1) + 1
        self._generator = pow(2, base_log, P)
        self._scale = np.uint64(pow(base_log, -1, Q))
        self._seed = seed
        self._log_of_minus_one = np.uint64(key("log(-1)", seed) % Q)
        self._salt = np.uint64(key("exponential", seed))
        self._remembers, self._nests = remembers, nests
        self._hashes = Memo()
        self._exps, self._logs = Memo(), Memo()
        self._powers, self._bases = Memo(2), Memo(0)

    @cached_property
    def _digit_powers(self) -> tuple[Words, Words]:
        """The powers of the generator by the low and by the high digit of an exponent."""
        return powers(self._generator), powers(pow(self._generator, 1 << DIGIT_BITS, P))

    def __call__(self, words: Words) -> Words:
        """exp(x); exp(0) = 1, exp(-INF) = 0, exp(INF) = INF."""
        result = self._exp(words)
        if self._remembers:
            self._exps.note(result, words)
        return result

    def note_power(self, result: Words, x: Words, y: Words) -> None:
        """Note that `result` is x^y: its logarithm is y log x, even where x or y are no positive numbers."""
        if not self._remembers:
            return
        # What others are powers of is no power itself: (x^a)^(1/a) = x would lead in a circle.
        is_base, _ = self._bases.find(result)
        fresh = ~is_base
        dims = result.shape
        bases, exponents = (np.broadcast_to(operand, dims)[fresh] for operand in (x, y))
        self._powers.note(result[fresh], bases, exponents)
        self._bases.note(bases)

    def _exp(self, words: Words) -> Words:
        result = by_blocks(self._exp_of_block, np.uint64, words)
        return self._with_laws(words, result) if self._nests and result.size else result

    def _with_laws(self, words: Words, result: Words) -> Words:
        """`result` with powers of earlier results modulo Q, where exponents are multiples of earlier ones."""
        is_number = (words != NEG_INF) & (words != INF) & (words & _LOW != 0)
        exponents, inverse = np.unique((words & _LOW)[is_number], return_inverse=True)
        if not exponents.size:
            return result
        p = np.empty(exponents.shape, np.uint64)
        p[inverse] = split(result[is_number])[0]
        # Squares, and of every square one root is a square: so powers of 1/2 are as good as any.
        hashes = MODULO_Q.reduce(splitmix(np.asarray(p ^ self._salt)))
        q = MODULO_Q.power(np.maximum(hashes, np.uint64(1)), 2)
        left = np.arange(exponents.size)
        for factor, power in _relations():
            numbers = _as_numbers(MODULO_Q.product(exponents[left], np.uint64(factor)))
            found, values = self._hashes.find(numbers)
            if values:
                q[left[found]] = MODULO_Q.power(values[0], power)
                left = left[~found]
        self._hashes.note(_as_numbers(exponents), q)
        changed = np.array(result)
        changed[is_number] = join(split(result[is_number])[0], q[inverse])
        return changed

    def _exp_of_block(self, words: Words) -> Words:
        exponents = words & _LOW
        low, high = self._digit_powers
        p = MODULO_P.product(low[exponents & _DIGIT], high[exponents >> np.uint64(DIGIT_BITS)])
        result = join(p, MODULO_Q.reduce(splitmix(np.asarray(p ^ self._salt))))
        result = np.where(p == 1, ONE, result)
        return np.where(words == NEG_INF, np.uint64(0), np.where(words == INF, INF, result))

    def log(self, words: Words, depth: int = _DEPTH) -> Words:
        """log(x); log 1 = 0, log 0 = -INF, log INF = INF; modulo Q log(-x) = log(x) + c for an unknown c."""
        p, _ = split(words)
        result = np.array(self._logarithms(words))
        # A number keeps its logarithm: what it turns out to be the power of must not change it.
        for is_known, found in (
            self._of_powers(words, depth),
            self._exps.find(words),
            self._logs.find(words),
        ):
            if found:
                result[is_known] = found[0]
        result = np.where(p == 0, NEG_INF, np.where(words == INF, INF, result))
        result = np.where(p == 1, np.uint64(0), result)
        self._logs.note(words, result)
        return result

    def _of_powers(self, words: Words, depth: int) -> tuple[npt.NDArray[np.bool_], list[Words]]:
        """Which words are powers of other numbers, and the logarithms of those; see `Memo.find`."""
        is_power, found = self._powers.find(words)
        if not is_power.any() or not depth:
            return is_power, []
        bases, exponents = found
        return is_power, [multiply(exponents, self.log(bases, depth - 1))]

    def _logarithms(self, words: Words) -> Words:
        """A hash modulo P, the logarithm modulo Q where there is one."""
        unknown, _ = split(opaque("log", self._seed, words))
        exponents, is_positive = self._exponents(words)
        of_negative = MODULO_Q.reduce(np.asarray(exponents + self._log_of_minus_one))
        return join(unknown, np.where(is_positive, exponents, of_negative))

    def _exponents(self, words: Words) -> tuple[Words, npt.NDArray[np.bool_]]:
        """k with g^k = |x|, and whether x is positive; 0 counts as 1."""
        found = _logarithms_and_signs(words)
        exponents = MODULO_Q.product(found >> np.uint64(1), self._scale)
        return np.asarray(exponents), np.asarray(found & np.uint64(1) == 1)

    def power(self, x: Words, y: Words) -> Words:
        """x^y = exp(y log x) of a positive x; of a negative one it is an unknown function, and 0^y = 0.

        Exact for all y modulo P: x^a x^b = x^(a + b), and x^2 = x x. Integer powers of negative numbers:
        `words.power`.
        """
        exponents, is_positive = self._exponents(x)
        powers_of_x = self._exp(multiply(exponents, y & _LOW))
        unknown = opaque("power", self._seed, x, y)
        result = np.where(split(x)[0] == 0, np.uint64(0), np.where(is_positive, powers_of_x, unknown))
        self.note_power(result, x, y)
        return result


@cache
def _relations() -> list[tuple[int, int]]:
    """Pairs of a factor and an exponent: where x times the one has been, exp(x) is its exp to the other.

    The first one is that of x itself.
    """
    pairs = [(1, 1)]
    for multiple in _MULTIPLES:
        # The group of squares modulo Q has (Q - 1) / 2 elements, an odd number.
        root = pow(multiple, -1, (Q - 1) // 2)
        pairs += [(pow(multiple, -1, Q), multiple % (Q - 1)), (multiple % Q, root)]
    return list(dict.fromkeys(pairs))


def _as_numbers(residues: Words) -> Words:
    """Residues modulo Q as words that differ modulo P where they do."""
    return join(residues, np.zeros_like(residues))


@once_per_element
@in_blocks(np.uint64)
def _logarithms_and_signs(words: Words) -> Words:
    """The logarithms of |x| to base 2, doubled, and 1 added where x is positive; 0 counts as 1."""
    p = np.maximum(split(words)[0].reshape(-1), np.uint64(1))
    fractions = balanced(p)
    return (logarithms(fractions) << np.uint64(1) | is_square(fractions)).reshape(words.shape)


# What functions without an inverse in the field returned so far: by value, what it came from.


@dataclass(frozen=True, slots=True)
class _Run:
    """Numbers in ascending order, each once, and what was noted with them."""

    keys: Words
    columns: Sequence[Words]

    @staticmethod
    def of(keys: Words, columns: Sequence[Words]) -> _Run:
        """Of several equal numbers the first one counts."""
        different, first = np.unique(keys, return_index=True)
        return _Run(different, [column[first] for column in columns])

    def with_newer(self, newer: _Run) -> _Run:
        """Both in one."""
        columns = [np.concatenate(pair) for pair in zip(self.columns, newer.columns)]
        return _Run.of(np.concatenate([self.keys, newer.keys]), columns)


class Memo:
    """Numbers, equal modulo P, and what was noted with the first of each.

    Args:
        columns: words noted with every number.
    """

    def __init__(self, columns: int = 1) -> None:
        self._columns = columns
        # The oldest first, each more than twice as long as the next: there are few, and words move seldom.
        self._runs: list[_Run] = []
        self._new: list[tuple[Words, ...]] = []

    def note(self, numbers: Words, *columns: Words) -> None:
        """Keep words that belong to numbers; they broadcast to the dimensions of `numbers`."""
        if numbers.size:
            held = (np.broadcast_to(column, numbers.shape).reshape(-1) for column in columns)
            self._new.append((split(numbers)[0].reshape(-1), *held))

    def find(self, numbers: Words) -> tuple[npt.NDArray[np.bool_], list[Words]]:
        """Which of the numbers are known, and for those, in one dimension, what was noted.

        The list is empty where none is known.
        """
        self._sort()
        p, _ = split(numbers)
        is_known = np.zeros(p.shape, np.bool_)
        found: list[Words] = []
        for run in self._runs:
            at = np.minimum(run.keys.searchsorted(p), run.keys.size - 1)
            is_here = np.asarray((run.keys[at] == p) & ~is_known)
            if is_here.any():
                found = found or [np.empty(p.shape, np.uint64) for _ in range(self._columns)]
                for column, noted in zip(found, run.columns):
                    column[is_here] = noted[at[is_here]]
                is_known |= is_here
        return is_known, [column[is_known] for column in found]

    def _sort(self) -> None:
        """Put what is new in order."""
        if not self._new:
            return
        keys, *columns = map(np.concatenate, zip(*self._new))
        self._new = []
        self._runs.append(_Run.of(keys, columns))
        while len(self._runs) > 1 and self._runs[-2].keys.size <= 2 * self._runs[-1].keys.size:
            newer, older = self._runs.pop(), self._runs.pop()
            self._runs.append(older.with_newer(newer))
