"""Arithmetic of words beside that of Python's integers and fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from property.laws import law
from support.field_words import SIZES, fractions, in_both, pairs, random_words, seeds, word_of

from hlotool.backends.field import words as w

Dims = tuple[int, ...]


def is_prime(n: int) -> bool:
    return n > 1 and all(n % d for d in range(2, int(n**0.5) + 1))


def test_the_primes() -> None:
    """What the construction needs of them."""
    assert w.P == 2 * w.Q + 1
    assert w.Q % 4 == 3
    assert is_prime(w.P)
    assert is_prime(w.Q)
    assert all(pow(n, w.Q, w.P) == 1 for n in range(1, 71))


@pytest.mark.parametrize("dims", SIZES)
def test_sums_and_products(dims: Dims) -> None:
    a, b = random_words(1, *dims), random_words(2, *dims)
    assert pairs(w.add(a, b)) == in_both(lambda x, y: x + y, a, b)
    assert pairs(w.subtract(a, b)) == in_both(lambda x, y: x - y, a, b)
    assert pairs(w.multiply(a, b)) == in_both(lambda x, y: x * y, a, b)
    assert pairs(w.negate(a)) == in_both(lambda x: -x, a)
    for result in (w.add(a, b), w.multiply(a, b), w.inverse(a), w.sqrt(a), w.negate(a)):
        assert result.shape == dims
        assert result.dtype == np.uint64


def test_the_largest_residues() -> None:
    """Neither half overflows into the other one."""
    largest = np.full(10, w.word(w.P - 1, w.Q - 1))
    assert pairs(w.add(largest, largest)) == [(w.P - 2, w.Q - 2)] * 10
    assert pairs(w.multiply(largest, largest)) == [(1, 1)] * 10
    assert pairs(w.negate(np.zeros(10, np.uint64))) == [(0, 0)] * 10
    assert pairs(w.subtract(largest, largest)) == [(0, 0)] * 10


@pytest.mark.parametrize(
    ("a_dims", "b_dims"),
    [((), (5,)), ((4, 1), (3,)), ((2, 3, 1), (1, 4)), ((300, 1), (200,)), ((0, 3), (3,)), ((9000,), ())],
)
def test_operands_broadcast(a_dims: Dims, b_dims: Dims) -> None:
    a, b = random_words(1, *a_dims), random_words(2, *b_dims)
    x, y = np.broadcast_arrays(a, b)
    for function, expected in ((w.add, lambda x, y: x + y), (w.multiply, lambda x, y: x * y)):
        result = function(a, b)
        assert result.shape == x.shape
        assert pairs(result) == in_both(expected, x, y)


def test_operands_of_any_layout() -> None:
    a, b = random_words(1, 90, 120), random_words(2, 120, 90)
    assert np.array_equal(w.add(a, b.T), w.add(a, np.ascontiguousarray(b.T)))
    assert np.array_equal(w.multiply(a.T, b), w.multiply(np.ascontiguousarray(a.T), b))
    assert np.array_equal(w.negate(a[::2, ::3]), w.negate(a)[::2, ::3])
    assert np.array_equal(
        w.inverse(np.broadcast_to(a[:, :1], a.shape)), np.broadcast_to(w.inverse(a[:, :1]), a.shape)
    )


@pytest.mark.parametrize("dims", SIZES)
def test_inverses(dims: Dims) -> None:
    a = random_words(3, *dims)
    assert np.all(w.multiply(a, w.inverse(a)) == w.ONE)
    assert np.all(w.multiply(w.divide(a, w.rational(3, 7)), w.rational(3, 7)) == a)


@pytest.mark.parametrize("size", [1, 10, 2000])
def test_what_has_no_inverse(size: int) -> None:
    special = np.repeat(np.array([0, int(w.INF), int(w.NEG_INF)], np.uint64), size)
    assert w.inverse(special).tolist() == [int(w.INF)] * size + [0] * 2 * size
    assert int(w.inverse(w.ZERO)) == int(w.INF)
    assert int(w.inverse(w.NEG_INF)) == 0
    only_modulo_q = np.full(size, w.word(5, 0))
    assert pairs(w.inverse(only_modulo_q)) == [(pow(5, -1, w.P), 0)] * size


@law
@given(fractions, fractions)
def test_words_of_fractions_compute_as_fractions(a: Fraction, b: Fraction) -> None:
    x, y = word_of(a), word_of(b)
    assert w.add(x, y) == word_of(a + b)
    assert w.subtract(x, y) == word_of(a - b)
    assert w.multiply(x, y) == word_of(a * b)
    assert b == 0 or w.divide(x, y) == word_of(a / b)
    assert w.power(x, 6) == word_of(a**3)
    assert a == 0 or w.power(x, -4) == word_of(1 / a**2)


@law
@given(seeds)
def test_roots(seed: int) -> None:
    """√(a b) = √a √b; √(x²) is x or -x, and of both squares' roots the product is again a square's root."""
    a, b = random_words(seed, 50), random_words(seed + 1, 50)
    assert np.array_equal(w.sqrt(w.multiply(a, b)), w.multiply(w.sqrt(a), w.sqrt(b)))
    square = w.multiply(a, a)
    root = w.sqrt(square)
    assert np.all(w.equal(root, a) | w.equal(root, w.negate(a)))
    assert np.all(w.equal(w.multiply(root, root), square))
    assert np.all(w.equal(w.sqrt(w.multiply(square, square)), square))  # a square is positive
    assert np.array_equal(w.multiply(w.rsqrt(a), w.sqrt(a)), np.full(50, w.ONE))


def test_roots_do_not_depend_on_how_many_there_are() -> None:
    a = random_words(5, 2000)
    assert np.array_equal(w.sqrt(a), [w.sqrt(x) for x in a[:40]] + w.sqrt(a[40:]).tolist())
    assert np.array_equal(w.sqrt(a)[:30], w.sqrt(a[:30]))
    assert int(w.sqrt(w.integers(3721))) >> 32 == 61


@law
@given(seeds)
def test_cube_roots(seed: int) -> None:
    """The cube of the cube root is the number, in both halves, and of negative ones, too."""
    a = random_words(seed, 30)
    root = w.cbrt(a)
    assert np.array_equal(w.multiply(root, w.multiply(root, root)), a)
    assert np.array_equal(w.cbrt(w.negate(a)), w.negate(root))
    assert w.cbrt(w.integers(-27)) == w.integers(-3)


def test_half_powers() -> None:
    """As a compiler writes them out."""
    a = random_words(6, 30)
    root, cube = w.sqrt(a), w.multiply(a, w.multiply(a, a))
    assert np.array_equal(w.power(a, 1), root)
    assert np.array_equal(w.power(a, 3), w.multiply(a, root))
    assert np.array_equal(w.power(a, -3), w.inverse(w.multiply(a, root)))
    assert np.array_equal(w.power(a, 6), cube)
    assert np.array_equal(w.power(a, 0), np.full(30, w.ONE))


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.int32, np.int64, np.uint8, np.uint64])
def test_integers(dtype: type[np.generic]) -> None:
    info = (0, 1) if dtype is np.bool_ else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
    numbers = np.array([info[0], 0, 1, info[1]], dtype)
    assert pairs(w.integers(numbers)) == [(n % w.P, n % w.Q) for n in (info[0], 0, 1, info[1])]


def test_integers_of_python() -> None:
    assert pairs(w.integers([2**200, -5])) == [(2**200 % w.P, 2**200 % w.Q), (w.P - 5, w.Q - 5)]
    assert w.integers(-7).shape == ()


def test_no_words_for_fractions_by_a_prime() -> None:
    with pytest.raises(ValueError):
        w.rational(1, w.P)


def test_hashes_are_the_same_in_every_process() -> None:
    """The first outputs of SplitMix64 from state 0 (reference: Vigna's splitmix64.c)."""
    assert int(w.splitmix(np.array(0, np.uint64))) == 0xE220A8397B1DCDAF
    assert w.splitmix(np.array([0x9E3779B97F4A7C15], np.uint64))[0] == 0x6E789E6AA1B965F4
    assert w.key("a", 1) != w.key("a", 2)
    hashes = np.arange(1000, dtype=np.uint64)
    assert w.word_of_hash(hashes).tolist() == [int(w.word_of_hash(h)) for h in hashes]
