"""Functions of words that are costly or unknown: kept once computed, or hashes of their operands.

A function that the field knows nothing of is a hash of its operands, the same in both programs. What
functions without an inverse in the field returned is kept by value, with what it came from.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from hlotool.backends.field.blockwise import Words, in_blocks, key, splitmix
from hlotool.backends.field.words import P, negate, word_of_hash

_HALF: Final = np.uint64(32)
#: Of a pair {x, -x} of residues modulo P one is up to this.
_MIDDLE: Final = np.uint64(P // 2)


def opaque(name: str, seed: int, *operands: Words) -> Words:
    """A function of which nothing is known.

    Args:
        name: which function; equal names are the same function.
        seed: of the trial.
        operands: its arguments, which broadcast against each other.
    """
    return _hashed(*operands, np.array(_salt(name, seed), np.uint64))


@in_blocks(np.uint64)
def _hashed(*operands: Words) -> Words:
    """Words that depend on the residues modulo P of all operands but the last, the salt."""
    *arguments, hashes = operands
    for argument in arguments:
        hashes = splitmix(np.asarray((argument >> _HALF) ^ hashes))
    return word_of_hash(hashes)


@lru_cache(256)
def _salt(name: str, seed: int) -> int:
    return key(name, seed)


def odd(name: str, seed: int, operand: Words) -> Words:
    """A function with f(-x) = -f(x), and so f(0) = 0."""
    p = operand >> _HALF
    is_other = p > _MIDDLE
    result = opaque(name, seed, np.where(is_other, negate(operand), operand))
    return np.where(p == 0, np.uint64(0), np.where(is_other, negate(result), result))


def even(name: str, seed: int, operand: Words, at_zero: Words | None = None) -> Words:
    """A function with f(-x) = f(x).

    Args:
        name: which function.
        seed: of the trial.
        operand: x.
        at_zero: f(0), where it is known.
    """
    p = operand >> _HALF
    result = opaque(name, seed, np.where(p > _MIDDLE, negate(operand), operand))
    return result if at_zero is None else np.where(p == 0, at_zero, result)


Floats = npt.NDArray[np.float64]

#: Places, as powers of two: at first, and at most. Sixteen bytes each.
_FIRST_BITS: Final = 10
_MOST_BITS: Final = 20
#: There are so many places for each word that is kept.
_ROOM: Final = 4
#: No word: both halves of a word are below 2^31.
_NO_WORD: Final = np.uint64(2**64 - 1)
#: The golden ratio: products with it have well mixed high bits (Knuth, TAOCP vol. 3, 6.4).
_SPREAD: Final = np.uint64(0x9E3779B97F4A7C15)


class Found:
    """A table from words to values, in which each word has one place and displaces what is there.

    Devices that execute a program in threads of their own may share one.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept = 0
        self._make(_FIRST_BITS)

    def _make(self, bits: int) -> None:
        self._bits, self._shift = bits, np.uint64(64 - bits)
        self._words = np.full(1 << bits, _NO_WORD)
        self._values = np.empty(1 << bits)

    def values(self, words: Words, compute: Callable[[Words], Floats]) -> Floats:
        """The value of each word, a new array of their dimensions.

        Args:
            words: of any dimensions.
            compute: called for words, an array of one dimension, that are not in the table; each value must
                depend on its word alone.
        """
        flat = words.reshape(-1)
        if _ROOM * flat.size > 1 << _MOST_BITS:
            return compute(flat).reshape(words.shape)
        with self._lock:
            places = (flat * _SPREAD) >> self._shift
            values = self._values[places]
            is_missing = self._words[places] != flat
        if is_missing.any():
            missing = flat[is_missing]
            values[is_missing] = computed = compute(missing)
            self._keep(missing, computed)
        found: Floats = values.reshape(words.shape)
        return found

    def _keep(self, words: Words, values: Floats) -> None:
        with self._lock:
            self._kept += words.size
            if _ROOM * self._kept > self._words.size and self._bits < _MOST_BITS:
                self._grow()
            places = (words * _SPREAD) >> self._shift
            self._words[places] = words
            self._values[places] = values

    def _grow(self) -> None:
        """Make the table large enough for all that were kept, and put them there."""
        is_kept = self._words != _NO_WORD
        words, values = self._words[is_kept], self._values[is_kept]
        self._make(min(_MOST_BITS, (2 * _ROOM * self._kept).bit_length()))
        places = (words * _SPREAD) >> self._shift
        self._words[places] = words
        self._values[places] = values
