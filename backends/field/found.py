"""Values of words that cost much to compute, kept as far as they were asked for.

A trial asks for the value of one word again and again: a threshold in every comparison, an activation
forwards and backwards, every element of a sliding window; and the second program asks for what the first has
asked for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt

from hlotool.backends.field.hashing import Words

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
