"""Words for tests of the field, and what Python's own integers and fractions say about them."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from hlotool.backends.field.words import P, Q, Words, rational, word_of_hash


def random_words(seed: int, *dims: int) -> Words:
    """Random words of the given dimensions."""
    return word_of_hash(np.random.default_rng(seed).integers(0, 1 << 63, dims).astype(np.uint64))


def pairs(words: Words) -> list[tuple[int, int]]:
    """The residues of each word."""
    return [(w >> 32, w & 0xFFFFFFFF) for w in np.asarray(words).ravel().tolist()]


def in_both(function: Callable[..., int], *operands: Words) -> list[tuple[int, int]]:
    """`function` of Python's integers, modulo P and modulo Q, of operands of the same dimensions."""
    return [
        (function(*(a for a, _ in of_one)) % P, function(*(b for _, b in of_one)) % Q)
        for of_one in zip(*map(pairs, operands))
    ]


def word_of(number: Fraction) -> Words:
    """The word of a fraction, without dimensions."""
    return rational(number.numerator, number.denominator)


def words_of(numbers: list[Fraction]) -> Words:
    """Their words, in one dimension."""
    return np.array([int(word_of(n)) for n in numbers], np.uint64)


#: Sizes below, between and above those at which the arithmetic changes its way.
SIZES = [(), (1,), (7,), (3, 4), (511,), (600,), (3, 3001), (20_000,)]

fractions = st.fractions(min_value=-1000, max_value=1000, max_denominator=1000)
seeds = st.integers(0, 2**32 - 1)
