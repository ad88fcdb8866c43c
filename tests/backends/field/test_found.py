"""The table of values that were asked for before."""

from __future__ import annotations

import numpy as np
import pytest
from support.field_words import random_words

from hlotool.backends.field.functions import Found
from hlotool.backends.field.words import Words


class Halves:
    """Computes half of each word, and counts how many it was asked for."""

    def __init__(self) -> None:
        self.computed = 0

    def __call__(self, words: Words) -> np.typing.NDArray[np.float64]:
        assert words.ndim == 1
        self.computed += words.size
        return words.astype(np.float64) / 2


def test_what_is_kept_is_not_computed_again() -> None:
    found, halves = Found(), Halves()
    words = random_words(1, 4, 5)
    first, second = found.values(words, halves), found.values(words.T, halves)
    assert np.array_equal(first, words / 2)
    assert np.array_equal(second, first.T)
    assert halves.computed == 20


@pytest.mark.parametrize("count", [1, 1000, 100_000, 300_000])
def test_many_words(count: int) -> None:
    """More than there are places at first, and more than there ever are: no value is another word's."""
    found, halves = Found(), Halves()
    for seed in range(2):
        words = random_words(seed, count)
        assert np.array_equal(found.values(words, halves), words / 2)
    words = np.concatenate([random_words(0, count), random_words(1, count)])
    assert np.array_equal(found.values(words, halves), words / 2)


def test_a_word_without_dimensions() -> None:
    found, halves = Found(), Halves()
    word = np.array(7, np.uint64)
    assert found.values(word, halves).shape == ()
    assert found.values(np.full(3, word), halves).tolist() == [3.5] * 3
    assert halves.computed == 1


def test_most_of_what_was_asked_for_is_kept() -> None:
    """However many words came before, two different ones seldom share a place."""
    found, halves = Found(), Halves()
    words = [random_words(seed, 3000) for seed in range(10)]
    for _ in range(2):
        for some in words:
            found.values(some, halves)
    assert halves.computed < 1.3 * 30_000
