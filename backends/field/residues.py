"""Arithmetic modulo one prime on arrays of residues, and modulo both primes of the field at once.

Residues are below 2^31, so a product of two fits into 64 bits and is reduced by a division by a constant,
which NumPy does in vector registers. Up to a thousand elements the calls cost more than the arithmetic: there
both residues of a word stand next to each other in one array, and one call serves them both.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import accumulate
from typing import Final

import numpy as np

from hlotool.backends.field.hashing import Words

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
