"""From words to real numbers: `kappa`.

Comparisons, rounding to integers and conversions need an order and a size, which a finite field has not. So
every word has a pseudo-real value: a constant of either program and a small fraction their own; any other a
magnitude hashed from {x, -x}, with the sign of the quadratic character. Hence kappa(-x) = -kappa(x), squares
are positive, and the sign of a product is that of its factors. It does not obey: x < y implies x + z < y + z.

The words of a trial are ordered by kappa, and equal ones by their bits: a total order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from hlotool.backends.field.blockwise import in_blocks, once_per_element
from hlotool.backends.field.fractions_of import fractions_of, is_square
from hlotool.backends.field.hashing import Words, key, splitmix
from hlotool.backends.field.residues import MODULO_Q
from hlotool.backends.field.words import INF, NAN, NEG_INF, P, negate

Floats = npt.NDArray[np.float64]

#: Integers up to this size are recognised before anything else is tried.
_SMALL: Final = 1 << 24
_HALF: Final = np.uint64(32)
_LOW: Final = np.uint64(0xFFFFFFFF)


@dataclass(frozen=True, slots=True)
class Known:
    """Words whose values are known: those of constants.

    Attributes:
        words: in ascending order, each once.
        values: their values, finite.
    """

    words: Words
    values: Floats

    @staticmethod
    def of(values: dict[int, float]) -> Known:
        """From words, as integers, and their values."""
        words = sorted(values)
        return Known(np.array(words, np.uint64), np.array([values[w] for w in words], np.float64))


NOTHING_KNOWN: Final = Known.of({})


def kappa(words: Words, seed: int, known: Known = NOTHING_KNOWN) -> Floats:
    """The pseudo-real value of each word; ±inf and NaN for their stand-ins.

    Args:
        words: of any dimensions.
        seed: of the trial.
        known: values of the constants of both programs.
    """
    salt = np.array(key("kappa", seed), np.uint64)

    @once_per_element
    @in_blocks(np.float64)
    def values(part: Words) -> Floats:
        return _kappa(np.ascontiguousarray(part).reshape(-1), salt, known).reshape(part.shape)

    return values(np.asarray(words))


def _kappa(words: Words, salt: Words, known: Known) -> Floats:
    p, q = words >> _HALF, words & _LOW
    signed = p.astype(np.int64)
    signed[signed > P // 2] -= P
    value = signed.astype(np.float64)
    unknown = (np.abs(signed) >= _SMALL) | (
        MODULO_Q.reduce((signed + _SMALL_MULTIPLE).astype(np.uint64)) != q
    )
    if known.words.size:
        at = np.minimum(np.searchsorted(known.words, words), known.words.size - 1)
        hit = known.words[at] == words
        value[hit] = known.values[at[hit]]
        unknown &= ~hit
    for special, number in ((INF, np.inf), (NEG_INF, -np.inf), (NAN, np.nan)):
        value[words == special] = number
    todo = np.flatnonzero(unknown & np.isfinite(value))
    if todo.size:
        value[todo] = _others(p[todo], q[todo], salt)
    return value


#: A multiple of Q that makes every centred residue positive.
_SMALL_MULTIPLE: Final = 2 * ((P - 1) // 2)


def _others(p: Words, q: Words, salt: Words) -> Floats:
    """Fractions their value; the others a size from 2^-8 to 2^8."""
    fractions = fractions_of(p, q)
    units = splitmix(np.minimum(p, np.uint64(P) - p) ^ salt).astype(np.float64) / 2.0**64
    sizes = np.exp2(units * 16 - 8)
    return np.where(
        fractions.is_small, fractions.value, np.where(is_square(fractions.balanced), sizes, -sizes)
    )


def ranks(words: Words, seed: int, known: Known = NOTHING_KNOWN) -> tuple[npt.NDArray[np.int64], Words]:
    """Numbers in whose order the words stand, and the words by rank.

    Returns:
        The ranks, of the dimensions of `words`: equal words have equal ranks, from 0 without gaps. And one
        array of one dimension: the word of each rank. INF, -INF and NAN are the largest, the smallest, and
        larger still.
    """
    flat = np.ascontiguousarray(words).reshape(-1)
    values = kappa(flat, seed, known)
    order = np.argsort(values)
    _order_ties(order, flat, values[order])
    ordered = flat[order]
    is_new = np.ones(flat.shape, np.bool_)
    is_new[1:] = ordered[1:] != ordered[:-1]
    rank = np.empty(flat.shape, np.int64)
    rank[order] = np.cumsum(is_new) - 1
    return rank.reshape(words.shape), ordered[is_new]


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


def less(a: Words, b: Words, seed: int, known: Known = NOTHING_KNOWN) -> npt.NDArray[np.bool_]:
    """a < b in the order of the trial; false where one is NAN."""
    x, y = kappa(a, seed, known), kappa(b, seed, known)
    is_tie = (x == y) & (a < b) & ((a >> _HALF) != (b >> _HALF))
    return np.asarray((x < y) | is_tie)


def maximum(a: Words, b: Words, seed: int, known: Known = NOTHING_KNOWN) -> Words:
    """The larger of both; NAN where one is."""
    return _with_nan(np.where(less(a, b, seed, known), b, a), a, b)


def minimum(a: Words, b: Words, seed: int, known: Known = NOTHING_KNOWN) -> Words:
    """The smaller of both; NAN where one is."""
    return _with_nan(np.where(less(b, a, seed, known), b, a), a, b)


def _with_nan(chosen: Words, a: Words, b: Words) -> Words:
    return np.where((a == NAN) | (b == NAN), NAN, chosen)


def absolute(a: Words, seed: int, known: Known = NOTHING_KNOWN) -> Words:
    """|a|: -a where the pseudo-real value is negative."""
    return np.where(kappa(a, seed, known) < 0, negate(a), a)
