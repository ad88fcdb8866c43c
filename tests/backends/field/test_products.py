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
    assert np.array_equal(products.bilinear(np.matmul, a, b), expected)


def test_empty_matrices() -> None:
    assert np.array_equal(products.matmul(random_words(1, 2, 0), random_words(2, 0, 3)), np.zeros((2, 3)))
    assert products.matmul(random_words(1, 0, 2), random_words(2, 2, 3)).shape == (0, 3)


def test_the_longest_sum_at_once_of_the_largest_residues(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every partial sum is below 2^53; longer ones are cut."""
    largest = np.full((1, products.MOST_TERMS), np.uint64((P - 1) << 32 | (Q - 1)))
    count = products.MOST_TERMS
    assert products.matmul(largest, largest.T)[0, 0] == (count % P) << 32 | count % Q
    a, b = random_words(1, 2, 50), random_words(2, 50, 3)
    expected = products.matmul(a, b)
    monkeypatch.setattr(products, "MOST_TERMS", 7)
    assert np.array_equal(products.matmul(a, b), expected)


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
