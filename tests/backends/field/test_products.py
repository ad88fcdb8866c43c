"""Sums, products and contractions of words beside Python's integers."""

from __future__ import annotations

import numpy as np
import pytest
from support.field_words import random_words

from hlotool.backends.field import products
from hlotool.backends.field.words import P, Q, Words, join, multiply, split

Dims = tuple[int, ...]


def exact(words: Words) -> list[np.ndarray]:
    """The residues as Python's integers."""
    return [half.astype(object) for half in split(words)]


def back(halves: list[np.ndarray]) -> Words:
    return join(*(np.asarray(half % m, np.uint64) for half, m in zip(halves, (P, Q))))


@pytest.mark.parametrize(
    ("a_dims", "b_dims"),
    [
        ((2, 3), (3, 4)),
        ((1, 1), (1, 1)),
        ((5, 2, 3), (3, 4)),
        ((2, 1, 4, 70), (5, 70, 3)),
        ((3, 300), (300, 2)),
    ],
)
def test_matrices(a_dims: Dims, b_dims: Dims) -> None:
    a, b = random_words(1, *a_dims), random_words(2, *b_dims)
    expected = back([np.matmul(x, y) for x, y in zip(exact(a), exact(b))])
    assert np.array_equal(products.matmul(a, b), expected)
    for terms in (a_dims[-1], 10_000, 1_000_000):
        assert np.array_equal(products.bilinear(np.matmul, a, b, terms), expected)


def test_empty_matrices() -> None:
    assert np.array_equal(products.matmul(random_words(1, 2, 0), random_words(2, 0, 3)), np.zeros((2, 3)))
    assert products.matmul(random_words(1, 0, 2), random_words(2, 2, 3)).shape == (0, 3)


@pytest.mark.parametrize("digits", range(2, products.MOST_DIGITS + 1))
def test_the_longest_sums_of_the_largest_numbers(digits: int) -> None:
    """Every partial sum is below 2^53: of residues and digits that are as far from 0 as they can be."""
    terms = products.most_terms(digits)
    base = products.base(digits)
    worst = base // 2 * sum(base**place for place in range(digits - 1))
    for p, q in ((P // 2, Q // 2), (P // 2 + 1, Q // 2 + 1), (worst % P, worst % Q)):
        numbers = np.full((1, terms), np.uint64(p << 32 | q))
        found = products.bilinear(np.matmul, numbers, numbers.T, terms)
        assert found[0, 0] == (p * p * terms % P) << 32 | q * q * terms % Q


def test_longer_sums_of_matrices_are_cut() -> None:
    a, b = random_words(1, 2, 1000), random_words(2, 1000, 3)
    assert np.array_equal(products.matmul(a, b), back([np.matmul(x, y) for x, y in zip(exact(a), exact(b))]))


@pytest.mark.parametrize("axes", [(), (0,), (1, 2), (0, 2), (0, 1, 2)])
def test_sums_and_products_over_dimensions(axes: Dims) -> None:
    a = random_words(1, 4, 5, 6)
    assert np.array_equal(products.sum_of(a, axes), back([np.asarray(x.sum(axes)) for x in exact(a)]))
    assert np.array_equal(products.product_of(a, axes), back([np.asarray(x.prod(axes)) for x in exact(a)]))


def test_sums_and_products_of_nothing() -> None:
    nothing = random_words(1, 3, 0)
    assert products.sum_of(nothing, (1,)).tolist() == [0] * 3
    assert products.product_of(nothing, (1,)).tolist() == [1 << 32 | 1] * 3


def test_a_product_in_another_order() -> None:
    a = random_words(1, 37)
    assert products.product_of(a, (0,)) == multiply(
        products.product_of(a[:20], (0,)), products.product_of(a[20:], (0,))
    )
