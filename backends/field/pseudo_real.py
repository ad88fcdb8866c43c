"""From words to real numbers: kappa.

Comparisons, rounding to integers and conversions need an order and a size, which a finite field has not. So
every word has a pseudo-real value: a constant of either program and a small fraction their own; any other a
magnitude hashed from {x, -x}, with the sign of the quadratic character. Hence kappa(-x) = -kappa(x), squares
are positive, and the sign of a product is that of its factors. It does not obey: x < y implies x + z < y + z.

The words of a trial are ordered by kappa, and equal ones by their bits: a total order. Where a program looks
at the bits of floats, those have no more digits than its type, and of 20,000 f32 two may be alike: values are
cut off so far, and for comparisons and sorts equal ones are a tie, as their bits are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from hlotool.backends.field.blockwise import Words, by_blocks, key, splitmix, without_repeats
from hlotool.backends.field.fractions_of import fractions_of, is_square
from hlotool.backends.field.functions import Found
from hlotool.backends.field.words import INF, NAN, NEG_INF, P, Q, negate

Floats = npt.NDArray[np.float64]

#: Binary digits of an f64 after the first.
F64_DIGITS: Final = 52
_ALL: Final = (1 << 64) - 1
#: Integers up to this size are recognised before anything else is tried.
_SMALL: Final = 1 << 24
_HALF: Final = np.uint64(32)
_LOW: Final = np.uint64(0xFFFFFFFF)


@dataclass(frozen=True, slots=True)
class Known:
    """Words whose values are known: those of constants, and the stand-ins of ±inf and NaN.

    Attributes:
        words: in ascending order, each once.
        values: their values.
    """

    words: Words
    values: Floats

    @staticmethod
    def of(values: dict[int, float]) -> Known:
        """From words, as integers, and their values, to which those of the stand-ins are added."""
        all_values = {**values, int(INF): np.inf, int(NEG_INF): -np.inf, int(NAN): np.nan}
        words = sorted(all_values)
        return Known(np.array(words, np.uint64), np.array([all_values[w] for w in words], np.float64))


NOTHING_KNOWN: Final = Known.of({})


class Kappa:
    """The pseudo-real values of one trial, and the order that they make.

    Args:
        seed: of the trial.
        known: asked for the values of the constants of both programs; they may become more.
        around: binary logarithm of the sizes in the middle of those of unknown words.
        digits: binary digits of the values of unknown words, after the first.

    Attributes:
        has_ties: different words may have one value, and are a tie then.
    """

    def __init__(
        self,
        seed: int,
        known: Callable[[], Known] = lambda: NOTHING_KNOWN,
        around: float = 0.0,
        digits: int = F64_DIGITS,
    ) -> None:
        self._around = around
        self._cut = np.uint64(-1 << (F64_DIGITS - digits) & _ALL)
        self.has_ties = digits < F64_DIGITS
        self._salt = np.array(key("kappa", seed), np.uint64)
        self._get_known = known
        self._known = NOTHING_KNOWN
        self._found = Found()

    def __call__(self, words: Words) -> Floats:
        """The pseudo-real value of each word, an array of the same dimensions; ±inf and NaN of stand-ins."""
        once = without_repeats(words)
        known = self._get_known()
        if known is not self._known:
            self._known, self._found = known, Found()
        found = self._found.values(once, self._values)
        return found if once is words else np.broadcast_to(found, words.shape)

    def _values(self, words: Words) -> Floats:
        """The values of an array of one dimension, computed."""
        salt, known, around = self._salt, self._known, self._around
        found = by_blocks(lambda part: _kappa(part, salt, known, around), np.float64, words)
        if self.has_ties:
            bits = found.view(np.uint64)
            bits &= np.where(np.isfinite(found), self._cut, np.uint64(_ALL))
        return found

    def places(self, words: Words) -> npt.NDArray[np.int64]:
        """Numbers in whose order the words stand, of the dimensions of `words`; those of a tie are equal."""
        if not self.has_ties:
            return self.ranks(words)[0]
        values = self(np.ascontiguousarray(words).reshape(-1))
        return np.unique(values, return_inverse=True)[1].reshape(words.shape).astype(np.int64)

    def tied(self, a: Words, b: Words) -> npt.NDArray[np.bool_]:
        """Where neither is larger: equal values, of different words where `has_ties`."""
        return np.asarray(self(a) == self(b)) if self.has_ties else np.asarray((a >> _HALF) == (b >> _HALF))

    def ranks(self, words: Words) -> tuple[npt.NDArray[np.int64], Words]:
        """Numbers in whose order the words stand, and the words by rank.

        Returns:
            The ranks, of the dimensions of `words`: equal words have equal ranks, from 0 without gaps. And
            one array of one dimension: the word of each rank. INF, -INF and NAN are the largest, the
            smallest, and larger still.
        """
        flat = np.ascontiguousarray(words).reshape(-1)
        values = self(flat)
        order = np.argsort(values)
        _order_ties(order, flat, values[order])
        ordered = flat[order]
        is_new = np.ones(flat.shape, np.bool_)
        is_new[1:] = ordered[1:] != ordered[:-1]
        rank = np.empty(flat.shape, np.int64)
        rank[order] = np.cumsum(is_new) - 1
        return rank.reshape(words.shape), ordered[is_new]

    def less(self, a: Words, b: Words) -> npt.NDArray[np.bool_]:
        """a < b in the order of the trial; false where one is NAN."""
        x, y = self(a), self(b)
        is_less = np.asarray(x < y)
        is_tie = x == y
        if np.any(is_tie):
            is_less |= is_tie & (a < b) & ((a >> _HALF) != (b >> _HALF))
        return is_less

    def maximum(self, a: Words, b: Words) -> Words:
        """The larger of both; NAN where one is."""
        return _with_nan(np.where(self.less(a, b), b, a), a, b)

    def minimum(self, a: Words, b: Words) -> Words:
        """The smaller of both; NAN where one is."""
        return _with_nan(np.where(self.less(b, a), b, a), a, b)

    def absolute(self, a: Words) -> Words:
        """|a|: -a where the pseudo-real value is negative."""
        return np.where(self(a) < 0, negate(a), a)


def _kappa(words: Words, salt: Words, known: Known, around: float) -> Floats:
    """The values of an array of one dimension."""
    at = np.minimum(known.words.searchsorted(words), known.words.size - 1)
    is_known = known.words[at] == words
    if not is_known.any():
        return _unknown(words, salt, around)
    value = known.values[at]
    todo = ~is_known
    value[todo] = _unknown(words[todo], salt, around)
    return value


def _unknown(words: Words, salt: Words, around: float) -> Floats:
    """Integers and fractions have their value; the others a size from 2^(around - 8) to 2^(around + 8)."""
    p, q = words >> _HALF, words & _LOW
    near_zero = np.flatnonzero((p < _SMALL) | (p > P - _SMALL))
    if not near_zero.size:
        return _others(p, q, salt, around)
    numbers = p[near_zero].astype(np.int64)
    numbers[numbers > P // 2] -= P
    are_integers = numbers % Q == q[near_zero]
    at = near_zero[are_integers]
    if not at.size:
        return _others(p, q, salt, around)
    value = np.empty(words.shape)
    value[at] = numbers[are_integers]
    if at.size < words.size:
        others = np.ones(words.shape, np.bool_)
        others[at] = False
        value[others] = _others(p[others], q[others], salt, around)
    return value


def _others(p: Words, q: Words, salt: Words, around: float) -> Floats:
    fractions = fractions_of(p, q)
    exponents = splitmix(np.minimum(p, P - p) ^ salt) / 2.0**60 + (around - 8)
    value = np.exp2(exponents, out=exponents)
    value *= np.where(is_square(fractions.balanced), 1.0, -1.0)
    if fractions.is_small.any():
        np.copyto(value, fractions.value, where=fractions.is_small)
    return value


def _order_ties(order: npt.NDArray[np.intp], words: Words, ordered_values: Floats) -> None:
    """Put words of the same value, which are equal modulo P, into the order of their bits; in place."""
    is_tie = ordered_values[1:] == ordered_values[:-1]
    ordered = words[order]
    is_mixed = is_tie & (ordered[1:] != ordered[:-1])
    if not is_mixed.any():
        return
    run = np.zeros(order.shape, np.intp)
    np.cumsum(~is_tie, out=run[1:])
    has_both = np.zeros(order.shape, np.bool_)
    has_both[run[1:][is_mixed]] = True
    members = np.flatnonzero(has_both[run])
    order[members] = order[members][np.lexsort((ordered[members], run[members]))]


def _with_nan(chosen: Words, a: Words, b: Words) -> Words:
    return np.where((a == NAN) | (b == NAN), NAN, chosen)
