"""Sizes and order of words."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from property.laws import law
from support.field_words import SIZES, fractions, random_words, seeds, word_of, words_of

from hlotool.backends.field import words as w
from hlotool.backends.field.fractions_of import fractions_of
from hlotool.backends.field.pseudo_real import Kappa, Known

Dims = tuple[int, ...]


@law
@given(seeds)
def test_signs(seed: int) -> None:
    """kappa is odd, the sign of a product that of its factors, a square positive and its root, too."""
    a, b = random_words(seed, 40), random_words(seed + 1, 40)
    x, y = Kappa(seed)(a), Kappa(seed)(b)
    assert np.array_equal(Kappa(seed)(w.negate(a)), -x)
    assert np.array_equal(np.sign(Kappa(seed)(w.multiply(a, b))), np.sign(x) * np.sign(y))
    assert np.all(Kappa(seed)(w.multiply(a, a)) > 0)
    assert np.all(Kappa(seed)(w.sqrt(w.multiply(a, a))) > 0)
    assert np.array_equal(w.equal(w.multiply(w.sqrt(a), w.sqrt(a)), a), x > 0)
    assert np.all(w.equal(Kappa(seed).absolute(a), w.sqrt(w.multiply(a, a))))


@law
@given(fractions, fractions)
def test_fractions_have_their_own_value(a: Fraction, b: Fraction) -> None:
    assert Kappa(0)(word_of(a)) == float(a)
    assert Kappa(0).less(word_of(a), word_of(b)) == (a < b)


def test_unequal_terms() -> None:
    """Fractions a / b with products a b up to 2^26, whichever of both is the larger."""
    rng = np.random.default_rng(1)
    numbers = [
        Fraction(int(rng.integers(-(2**bits), 2**bits)), int(rng.integers(1, 2 ** (26 - bits))))
        for bits in rng.integers(1, 26, 400)
    ]
    assert Kappa(3)(words_of(numbers)).tolist() == [float(n) for n in numbers]


def test_a_few_words_and_many() -> None:
    """Both ways to the fractions agree: of random words, small fractions, and residues that are 0."""
    few = [Fraction(n, d) for n in (-7, 1, 1000) for d in (1, 3, 50257)]
    words = np.concatenate(
        [random_words(4, 5), words_of(few), [w.word(5, 0), w.word(0, 7), w.word(w.P - 1, 0)]]
    )
    many = fractions_of(*w.split(np.concatenate([words, random_words(5, 100)])))
    found = fractions_of(*w.split(words))
    size = len(words)
    assert np.array_equal(found.is_small, many.is_small[:size])
    assert np.array_equal(found.value, many.value[:size])
    assert np.array_equal(found.balanced.numerator, many.balanced.numerator[:size])
    assert np.array_equal(found.balanced.denominator, many.balanced.denominator[:size])
    assert found.value[5:14].tolist() == [float(f) for f in few]


def test_constants_have_their_own_value() -> None:
    a = random_words(1, 20)
    known = Known.of({int(a[3]): 0.7071, int(a[5]): -2.5})
    assert Kappa(0, lambda: known)(a)[[3, 5]].tolist() == [0.7071, -2.5]
    assert np.array_equal(np.delete(Kappa(0, lambda: known)(a), [3, 5]), np.delete(Kappa(0)(a), [3, 5]))


@pytest.mark.parametrize("dims", SIZES)
def test_every_word_for_itself(dims: Dims) -> None:
    """Whatever stands beside it."""
    a = random_words(1, *dims)
    values = Kappa(5)(a)
    assert values.shape == dims
    for at in [(0,) * len(dims), tuple(d - 1 for d in dims)]:
        assert Kappa(5)(np.asarray(a[at])) == values[at]
    assert np.array_equal(Kappa(5)(np.broadcast_to(a, (2, *dims))), np.broadcast_to(values, (2, *dims)))


def test_stand_ins() -> None:
    special = np.array([int(w.INF), int(w.NEG_INF), int(w.NAN), 0], np.uint64)
    assert Kappa(0)(special)[:2].tolist() == [np.inf, -np.inf]
    assert np.isnan(Kappa(0)(w.NAN))
    rank, _ = Kappa(0).ranks(special)
    assert rank.tolist() == [2, 0, 3, 1]
    assert Kappa(0).maximum(w.NAN, w.ONE) == w.NAN
    assert Kappa(0).minimum(w.ONE, w.NAN) == w.NAN
    assert not Kappa(0).less(w.NAN, w.ONE)


@pytest.mark.parametrize("dims", SIZES)
def test_ranks_are_the_order(dims: Dims) -> None:
    a = random_words(1, *dims)
    rank, by_rank = Kappa(2).ranks(a)
    assert np.array_equal(by_rank[rank], a)
    assert np.all(Kappa(2).less(by_rank[:-1], by_rank[1:]))


def test_words_of_the_same_value_are_told_apart() -> None:
    a = random_words(1, 6)
    known = Known.of(dict.fromkeys(map(int, a), 1.5))
    twice = np.concatenate([a, a[::-1]])
    rank, by_rank = Kappa(0, lambda: known).ranks(twice)
    assert sorted(set(rank.tolist())) == list(range(6))
    assert np.array_equal(by_rank[rank], twice)


def test_larger_and_smaller() -> None:
    a, b = random_words(1, 3, 1), random_words(2, 50)
    larger, smaller = Kappa(1).maximum(a, b), Kappa(1).minimum(a, b)
    assert np.array_equal(Kappa(1)(larger), np.maximum(Kappa(1)(a), Kappa(1)(b)))
    assert np.array_equal(Kappa(1)(smaller), np.minimum(Kappa(1)(a), Kappa(1)(b)))
    assert np.all((larger == a) | (larger == b))
