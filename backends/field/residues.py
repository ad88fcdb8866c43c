"""Arithmetic modulo one prime on arrays of residues, and modulo both primes of the field at once.

Residues are below 2^31, so a product of two fits into 64 bits and is reduced by a division by a constant,
which NumPy does in vector registers. Up to a few hundred elements the calls cost more than the arithmetic:
there both residues of a word stand next to each other in one array, and one call serves them both.
"""

from __future__ import annotations

import sys
from typing import Final

import numpy as np

from hlotool.backends.field.hashing import Words

#: P = 2 Q + 1, both prime, Q = 3 mod 4; all primes up to 67 are squares modulo P.
P: Final = 1931011319
Q: Final = 965505659

#: Elements up to which one call of `remainder` is faster than a division, a product and a difference.
_FEW = 256
#: So few inverses are computed one by one.
_ONE_BY_ONE = 8


class Residues:
    """Arithmetic modulo `modulus`; arrays are u64, all elements below the modulus.

    Args:
        modulus: a prime below 2^31; or an array of primes that repeats every two elements, for arrays of one
            dimension whose elements have these moduli in turn.
    """

    def __init__(self, modulus: np.uint64 | Words) -> None:
        self._modulus = modulus

    def _of(self, size: int) -> np.uint64 | Words:
        return self._modulus if isinstance(self._modulus, np.uint64) else self._modulus[:size]

    def reduce(self, numbers: Words) -> Words:
        """The residues of any 64-bit numbers, in their place; the array that was given."""
        modulus = self._of(numbers.size)
        if modulus.ndim or numbers.size <= _FEW:
            np.remainder(numbers, modulus, out=numbers)
        else:
            quotients = numbers // modulus
            quotients *= modulus
            numbers -= quotients
        return numbers

    def product(self, a: Words, b: Words | np.uint64) -> Words:
        """a b, a new array of the shape that both broadcast to, which must not be a scalar's."""
        product: Words = np.multiply(a, b)
        return self.reduce(product)

    def power(self, x: Words, exponent: int) -> Words:
        """x^exponent, a new array; x^0 is 1."""
        if exponent == 0:
            return np.ones_like(x)
        result = x.copy()
        for bit in bin(exponent)[3:]:
            np.multiply(result, result, out=result)
            self.reduce(result)
            if bit == "1":
                np.multiply(result, x, out=result)
                self.reduce(result)
        return result

    def inverse(self, x: Words) -> Words:
        """1/x for an array of one dimension without zeros: three products per element.

        Montgomery's trick as a tree: the product of two neighbours is inverted in place of both.
        """
        if x.size <= _ONE_BY_ONE:
            moduli = np.broadcast_to(self._of(x.size), x.shape).tolist()
            return np.array([pow(v, -1, m) for v, m in zip(x.tolist(), moduli)], np.uint64)
        half = x.size // 4 * 2  # even: each half begins with the first of two moduli
        a, b = x[:half], x[half : 2 * half]
        inverted = self.inverse(np.concatenate([self.product(a, b), x[2 * half :]]))
        both = inverted[:half]
        return np.concatenate([self.product(both, b), self.product(both, a), inverted[half:]])


MODULO_P: Final = Residues(np.uint64(P))
MODULO_Q: Final = Residues(np.uint64(Q))

#: Words up to which both residues are computed in one array.
INTERLEAVED_WORDS: Final = 512
#: Moduli of the 32-bit halves of words as they lie in memory.
HALVES: Final = (Q, P) if sys.byteorder == "little" else (P, Q)
INTERLEAVED: Final = Residues(np.tile(np.array(HALVES, np.uint64), INTERLEAVED_WORDS))


def interleaved(words: Words) -> Words:
    """Both residues of each of up to INTERLEAVED_WORDS words, next to each other in one dimension."""
    return words.ravel().view(np.uint32).astype(np.uint64)


def words_of_interleaved(residues: Words, dims: tuple[int, ...]) -> Words:
    """The words of given dimensions whose residues `interleaved` has put next to each other."""
    return residues.astype(np.uint32).view(np.uint64).reshape(dims)
