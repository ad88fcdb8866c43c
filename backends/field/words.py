"""Real numbers as words: a u64 with the residue modulo P in the high half, the one modulo Q in the low half.

P = 2 Q + 1, both prime, Q = 3 mod 4. The squares modulo P are a group of order Q; they play the positive
numbers:

- the quadratic character is multiplicative and odd, and right for all products of primes up to 67;
- `sqrt` is x^((3P-1)/4): multiplicative, odd, and of a positive number its one positive root;
- `exponential` maps the residues modulo Q one to one to the positive residues modulo P.

Each half is a model of the real numbers by itself. Two results that are equal in one half at random points
are the same rational function of what the half takes for unknown: an element where they differ goes unnoticed
with a probability of their degree / 2^30 in each trial. What has no meaning in a half (an exponential modulo
Q) is a hash of the operand there, the same in both programs.

Every function takes arrays of any dimensions, scalars included, that broadcast against each other, and
returns a new array (or a read-only broadcast one). Integer and float scalars are not words: `integers`,
`rational`.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hlotool.backends.field.blockwise import in_blocks, once_per_element
from hlotool.backends.field.hashing import Words, key, splitmix, splitmix_of
from hlotool.backends.field.residues import (
    HALVES,
    INTERLEAVED,
    INTERLEAVED_WORDS,
    MODULO_P,
    MODULO_Q,
    P,
    Q,
    interleaved,
    words_of_interleaved,
)

__all__ = [
    "INF",
    "NAN",
    "NEG_INF",
    "ONE",
    "ZERO",
    "P",
    "Q",
    "Words",
    "add",
    "cbrt",
    "divide",
    "equal",
    "integers",
    "inverse",
    "join",
    "key",
    "multiply",
    "negate",
    "power",
    "rational",
    "rsqrt",
    "split",
    "splitmix",
    "sqrt",
    "subtract",
    "word",
    "word_of_hash",
]

_HALF: Final = np.uint64(32)
_LOW: Final = np.uint64(0xFFFFFFFF)
_MODULI: Final = np.uint64(P << 32 | Q)


def word(p: int, q: int) -> Words:
    """The word of two residues, without dimensions."""
    return np.array(p << 32 | q, np.uint64)


def split(words: Words) -> tuple[Words, Words]:
    """The residues modulo P and modulo Q."""
    return np.asarray(words >> _HALF), np.asarray(words & _LOW)


def join(p: Words, q: Words) -> Words:
    """The words of residues modulo P and modulo Q."""
    return np.asarray(p << _HALF | q)


def _parts(words: Words) -> tuple[int, int]:
    """The residues of a scalar."""
    value = int(words)
    return value >> 32, value & 0xFFFFFFFF


def word_of_hash(hashes: Words) -> Words:
    """A pseudo-random word for each hash."""
    if hashes.ndim == 0:
        value = int(hashes)
        return word(value % P, splitmix_of(value) % Q)
    return join(MODULO_P.reduce(hashes.copy()), MODULO_Q.reduce(splitmix(hashes)))


ZERO: Final = word(0, 0)
ONE: Final = word(1, 1)


#: Moduli of the halves of a block of words, as they lie in memory.
_TILE: Final = np.tile(np.array(HALVES, np.uint32), 1 << 13)


def _wrapped(words: Words, correction: np.ufunc) -> Words:
    """Each half x as the smaller of x and x -/+ its modulus, which is a residue again; in place."""
    halves = words.reshape(-1).view(np.uint32)
    np.minimum(halves, correction(halves, _TILE[: halves.size]), out=halves)
    return words


@in_blocks(np.uint64)
def add(a: Words, b: Words) -> Words:
    """a + b."""
    total = np.add(a, b, order="C")  # no half overflows: 2 P is below 2^32
    if total.ndim == 0:
        p, q = _parts(total)
        return word(p - P if p >= P else p, q - Q if q >= Q else q)
    return _wrapped(total, np.subtract)


@in_blocks(np.uint64)
def negate(a: Words) -> Words:
    """-a."""
    opposite = np.subtract(_MODULI, a, order="C")
    if opposite.ndim == 0:
        p, q = _parts(opposite)
        return word(p % P, q % Q)
    return _wrapped(opposite, np.subtract)


@in_blocks(np.uint64)
def subtract(a: Words, b: Words) -> Words:
    """a - b."""
    if a.ndim == b.ndim == 0:
        (a_p, a_q), (b_p, b_q) = _parts(a), _parts(b)
        return word((a_p - b_p) % P, (a_q - b_q) % Q)
    total = np.add(a, np.subtract(_MODULI, b), order="C")
    return _wrapped(total, np.subtract)


@in_blocks(np.uint64)
def multiply(a: Words, b: Words) -> Words:
    """a b."""
    if a.ndim == b.ndim == 0:
        (a_p, a_q), (b_p, b_q) = _parts(a), _parts(b)
        return word(a_p * b_p % P, a_q * b_q % Q)
    if a.shape == b.shape and a.size <= INTERLEAVED_WORDS:
        return words_of_interleaved(INTERLEAVED.product(interleaved(a), interleaved(b)), a.shape)
    p = MODULO_P.product(a >> _HALF, b >> _HALF)
    p <<= _HALF
    p |= MODULO_Q.product(a & _LOW, b & _LOW)
    return p


@once_per_element
@in_blocks(np.uint64)
def inverse(a: Words) -> Words:
    """1 / a; 1 / 0 = INF and 1 / ±INF = 0. Elsewhere INF is an unknown like any other."""
    if a.ndim == 0:
        p, q = _parts(a)
        if p == 0:
            return INF.copy()
        return ZERO.copy() if a in (INF, NEG_INF) else word(pow(p, -1, P), pow(q, -1, Q) if q else 0)
    if a.size <= INTERLEAVED_WORDS:
        residues = interleaved(a)
        zeros = residues == 0
        residues[zeros] = 1
        residues = INTERLEAVED.inverse(residues)
        residues[zeros] = 0
        result = words_of_interleaved(residues, a.shape)
    else:
        halves = []
        for half, modulo in zip(split(a.ravel()), (MODULO_P, MODULO_Q)):
            zeros = half == 0
            half[zeros] = 1
            inverted = modulo.inverse(half)
            inverted[zeros] = 0
            halves.append(inverted)
        result = join(*halves).reshape(a.shape)
    result[a < _LEAST_P] = INF
    result[(a == INF) | (a == NEG_INF)] = 0
    return result


#: Words below this one have the residue 0 modulo P.
_LEAST_P: Final = np.uint64(1 << 32)


def divide(a: Words, b: Words) -> Words:
    """a / b, by `inverse`."""
    return multiply(a, inverse(b))


def integer_power(a: Words, exponent: int) -> Words:
    """a^exponent for an exponent of any sign; 0^0 = 1."""
    result = _integer_power(np.asarray(a), np.array(abs(exponent)))
    return inverse(result) if exponent < 0 else result


@once_per_element
@in_blocks(np.uint64)
def _integer_power(a: Words, exponent: Words) -> Words:
    return _powers(a, int(exponent), int(exponent))


def _powers(a: Words, p_exponent: int, q_exponent: int) -> Words:
    """The power of each half."""
    if a.ndim == 0:
        in_p, in_q = _parts(a)
        return word(pow(in_p, p_exponent, P), pow(in_q, q_exponent, Q))
    if a.size <= INTERLEAVED_WORDS and p_exponent == q_exponent:
        return words_of_interleaved(INTERLEAVED.power(interleaved(a), p_exponent), a.shape)
    p, q = split(a)
    return join(MODULO_P.power(p, p_exponent), MODULO_Q.power(q, q_exponent))


@once_per_element
@in_blocks(np.uint64)
def sqrt(a: Words) -> Words:
    """The root of a positive number, modulo P; multiplicative in both halves. √INF = INF.

    Modulo Q its square is a or -a. Of a negative number it is -√-a, so that a wrong sign under a root shows;
    real numbers have none there.
    """
    if a.size <= INTERLEAVED_WORDS and a.ndim:
        root = _powers(a, _ROOT_OF_Q, _ROOT_OF_Q)
        root_p, root_q = split(root)
        squared = MODULO_P.power(root_p, 2)
        root = join(MODULO_P.product(squared, split(a)[0]), root_q)  # _ROOT_OF_P is 2 _ROOT_OF_Q + 1
    else:
        root = _powers(a, _ROOT_OF_P, _ROOT_OF_Q)
    root[a == INF] = INF
    return root


#: x^((p + 1) / 4) is a root of every square, the same for x and -x; with the character x^((p - 1) / 2) as a
#: factor it is odd, and multiplicative still.
_ROOT_OF_P: Final = (3 * P - 1) // 4
_ROOT_OF_Q: Final = (3 * Q - 1) // 4


@once_per_element
@in_blocks(np.uint64)
def cbrt(a: Words) -> Words:
    """The one cube root, in both halves: 3 divides the order of neither group. ∛±INF = ±INF."""
    root = _powers(a, _THIRD_OF_P, _THIRD_OF_Q)
    for infinite in (INF, NEG_INF):
        root[a == infinite] = infinite
    return root


#: Exponents e with x^(3 e) = x.
_THIRD_OF_P: Final = pow(3, -1, P - 1)
_THIRD_OF_Q: Final = pow(3, -1, Q - 1)


def rsqrt(a: Words) -> Words:
    """1 / √a."""
    return inverse(sqrt(a))


def power(a: Words, twice: int) -> Words:
    """a^(twice/2) for an integer `twice`: of a^1.5 = a √a and a^-1.5 = 1 / (a √a) both sides are the same."""
    result = integer_power(a, abs(twice) // 2)
    if twice % 2:
        result = multiply(result, sqrt(a))
    return inverse(result) if twice < 0 else result


def equal(a: Words, b: Words) -> npt.NDArray[np.bool_]:
    """Whether two words stand for the same number: the residues modulo P decide."""
    return np.asarray(np.asarray(a >> _HALF) == np.asarray(b >> _HALF))


def integers(numbers: npt.ArrayLike) -> Words:
    """The words of integers: of an array of any integer type or of Python's."""
    array: npt.NDArray[Any] = np.asarray(numbers)
    if array.dtype.kind in "ub":
        wide = array.astype(np.uint64)
        return join(MODULO_P.reduce(wide.copy()), MODULO_Q.reduce(wide)).reshape(array.shape)
    if array.dtype == object:
        return join(*(np.array(array % m, np.uint64) for m in (P, Q))).reshape(array.shape)
    wide_signed = array.astype(np.int64)
    return join(*(np.remainder(wide_signed, m).astype(np.uint64) for m in (P, Q)))


def rational(numerator: int, denominator: int) -> Words:
    """The word of a fraction, without dimensions.

    Raises:
        ValueError: P or Q divides the denominator.
    """
    return word(numerator * pow(denominator, -1, P) % P, numerator * pow(denominator, -1, Q) % Q)


#: Stand-ins for what no field has: ordinary words that a few operations know.
INF: Final = word_of_hash(np.array(key("infinity"), np.uint64))
NEG_INF: Final = negate(INF)
NAN: Final = word_of_hash(np.array(key("not a number"), np.uint64))
