"""Real numbers as words: a u64 with the residue modulo P in the high half, the one modulo Q in the low
half.

The arithmetic modulo one prime, or both, works on whole arrays.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hlotool.backends.field.blockwise import (
    Words,
    in_blocks,
    key,
    once_per_element,
    splitmix,
    splitmix_of,
)

#: P = 2 Q + 1, both prime, Q = 3 mod 4; all primes up to 67 are squares modulo P.
P: Final = 1931011319
Q: Final = 965505659

#: Elements up to which one call of `remainder` is faster than a division, a product and a difference.
_FEW = 256
#: So few inverses are computed by Python's integers.
_ONE_BY_ONE = 32


class Residues:
    """Arithmetic modulo a prime below 2^31; arrays are u64, all elements below the prime."""

    def __init__(self, modulus: int) -> None:
        self._modulus = np.uint64(modulus)

    def reduce(self, numbers: Words) -> Words:
        """The residues of any 64-bit numbers, in their place; the array that was given."""
        if numbers.size <= _FEW:
            np.remainder(numbers, self._modulus, out=numbers)
        else:
            quotients = numbers // self._modulus
            quotients *= self._modulus
            numbers -= quotients
        return numbers

    def product(self, a: Words, b: Words | np.uint64) -> Words:
        """a b, a new array of the shape that both broadcast to."""
        return self.reduce(np.asarray(np.multiply(a, b)))

    def power(self, x: Words, exponent: int) -> Words:
        """x^exponent, a new array; x^0 is 1."""
        if exponent == 0:
            return np.ones_like(x)
        result = x.copy()
        # Reduced after each product: those of two residues below 2^31 fit into a u64, those of three do not.
        for bit in bin(exponent)[3:]:
            result *= result
            self.reduce(result)
            if bit == "1":
                result *= x
                self.reduce(result)
        return result

    def inverse(self, x: Words) -> Words:
        """1/x for an array of one dimension without zeros: three products per element.

        Montgomery's trick as a tree: the product of two neighbours is inverted in place of both.
        """
        if x.size <= _ONE_BY_ONE:
            return self._inverse_of_few(x)
        half = x.size // 4 * 2  # even: each half begins with the first of two moduli
        a, b, rest = x[:half], x[half : 2 * half], x[2 * half :]
        both = self.product(a, b)
        inverted = self.inverse(np.concatenate([both, rest]) if rest.size else both)
        both = inverted[:half]
        result = np.empty_like(x)
        self.reduce(np.multiply(both, b, out=result[:half]))
        self.reduce(np.multiply(both, a, out=result[half : 2 * half]))
        result[2 * half :] = inverted[half:]
        return result

    def _inverse_of_few(self, x: Words) -> Words:
        return np.array(_inverses(x.tolist(), int(self._modulus)), np.uint64)


def _inverses(numbers: Sequence[int], modulus: int) -> list[int]:
    """1/x for each of some residues that are not 0; Montgomery's trick, from the left and back."""
    products = list(accumulate(numbers, lambda a, b: a * b % modulus))
    inverses = []
    rest = pow(products[-1], -1, modulus) if products else 0
    for number, before in zip(reversed(numbers), [*products[-2::-1], 1]):
        inverses.append(rest * before % modulus)
        rest = rest * number % modulus
    return inverses[::-1]


class _Interleaved(Residues):
    """Arithmetic on arrays of one dimension whose elements are residues of words as these lie in memory."""

    def __init__(self) -> None:
        self._moduli = np.tile(np.array(HALVES, np.uint64), INTERLEAVED_WORDS)

    def reduce(self, numbers: Words) -> Words:
        np.remainder(numbers, self._moduli[: numbers.size], out=numbers)
        return numbers

    def _inverse_of_few(self, x: Words) -> Words:
        result = np.empty_like(x)
        for half, modulus in enumerate(HALVES):
            result[half::2] = _inverses(x[half::2].tolist(), modulus)
        return result


MODULO_P: Final = Residues(P)
MODULO_Q: Final = Residues(Q)

#: Words up to which both residues are computed in one array.
INTERLEAVED_WORDS: Final = 1024
#: Moduli of the 32-bit halves of words as they lie in memory.
HALVES: Final = (Q, P) if sys.byteorder == "little" else (P, Q)
INTERLEAVED: Final = _Interleaved()


def interleaved(words: Words) -> Words:
    """Both residues of each of up to INTERLEAVED_WORDS words, next to each other in one dimension."""
    return words.ravel().view(np.uint32).astype(np.uint64)


def words_of_interleaved(residues: Words, dims: tuple[int, ...]) -> Words:
    """The words of given dimensions whose residues `interleaved` has put next to each other."""
    return residues.astype(np.uint32).view(np.uint64).reshape(dims)


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
