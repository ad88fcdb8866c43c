"""exp, log and unknown functions: the laws that real numbers have, and that nothing else holds."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from property.laws import law
from support.field_words import random_words, seeds

from hlotool.backends.field import words as w
from hlotool.backends.field.exponential import Exponential
from hlotool.backends.field.functions import even, odd, opaque
from hlotool.backends.field.pseudo_real import Kappa

EXP = Exponential(7)


@law
@given(seeds)
def test_exp_of_sums(seed: int) -> None:
    """exp(a + b) = exp(a) exp(b), exp(-a) = 1 / exp(a), exp(2a) = exp(a)², exp(a) > 0."""
    a, b = random_words(seed, 20), random_words(seed + 1, 20)
    assert np.all(w.equal(EXP(w.add(a, b)), w.multiply(EXP(a), EXP(b))))
    assert np.all(w.equal(EXP(w.negate(a)), w.inverse(EXP(a))))
    assert np.all(w.equal(w.sqrt(EXP(w.add(a, a))), EXP(a)))
    assert np.all(Kappa(0)(EXP(a)) > 0)


@law
@given(seeds)
def test_exponents_of_exponentials(seed: int) -> None:
    """exp(-x) = 1 / exp(x) and exp(2x) = exp(x)² as parts of exponents, too, in any order."""
    exp, x = Exponential(seed), random_words(seed, 20)
    first = exp(x)
    double = w.multiply(first, first)
    assert np.all(exp(w.negate(x)) == w.inverse(first))
    assert np.all(exp(w.add(x, x)) == double)
    assert np.all(exp(w.negate(w.add(x, x))) == w.inverse(double))
    again = Exponential(seed)
    double = again(w.add(x, x))
    assert np.all(w.multiply(again(x), again(x)) == double)
    assert np.all(exp(w.multiply(x, first)) != exp(w.multiply(x, double)))


def test_exponentials_that_are_no_exponents_have_no_laws_there() -> None:
    exp, x = Exponential(3, nests=False), random_words(3, 20)
    assert np.all(w.equal(exp(w.negate(x)), w.inverse(exp(x))))
    assert not np.any(exp(w.negate(x)) == w.inverse(exp(x)))


def test_no_other_law() -> None:
    a, b = random_words(1, 100), random_words(2, 100)
    assert not np.any(w.equal(EXP(w.multiply(a, b)), w.multiply(EXP(a), EXP(b))))
    assert not np.any(w.equal(EXP(a), Exponential(8)(a)))


def test_exp_of_its_corners() -> None:
    special = np.array([0, int(w.NEG_INF), int(w.INF)], np.uint64)
    assert EXP(special).tolist() == [int(w.ONE), 0, int(w.INF)]
    assert [int(EXP(s)) for s in special] == EXP(special).tolist()


def test_log_inverts_exp() -> None:
    """Whatever has been a value of exp, in any order and in any array."""
    exp = Exponential(3)
    a, b = random_words(1, 300), random_words(2, 5, 6)
    values, others = exp(a), exp(b)
    assert np.array_equal(exp.log(others), b)
    assert np.array_equal(exp.log(values[::-1]), a[::-1])
    assert np.array_equal(exp.log(w.multiply(values[:30].reshape(5, 6), w.ONE)), a[:30].reshape(5, 6))
    assert exp.log(exp(w.integers(5))) == w.integers(5)


def squares(seed: int, size: int) -> w.Words:
    a = random_words(seed, size)
    return w.multiply(a, a)


def modulo_q(words: w.Words) -> list[int]:
    return w.split(words)[1].tolist()


@law
@given(seeds)
def test_log_of_products_and_powers(seed: int) -> None:
    """Modulo Q: log(a b) = log(a) + log(b), log(√a) = log(a) / 2, log(1/a) = -log(a)."""
    a, b = squares(seed, 20), squares(seed + 1, 20)
    assert modulo_q(EXP.log(w.multiply(a, b))) == modulo_q(w.add(EXP.log(a), EXP.log(b)))
    assert modulo_q(EXP.log(w.sqrt(a))) == modulo_q(w.divide(EXP.log(a), w.integers(2)))
    assert modulo_q(EXP.log(w.inverse(a))) == modulo_q(w.negate(EXP.log(a)))
    assert np.all(w.equal(EXP(EXP.log(a)), a))


def test_log_of_negative_numbers_is_not_that_of_their_size() -> None:
    a = squares(1, 50)
    assert not set(modulo_q(EXP.log(w.negate(a)))) & set(modulo_q(EXP.log(a)))


@law
@given(seeds)
def test_powers(seed: int) -> None:
    """Modulo P: x^a x^b = x^(a + b), (x^a)^(1/a) = x, x^0.5 = √x, x^3 = x x x, x^y = exp(y log x)."""
    x, a, b = squares(seed, 20), random_words(seed + 1, 20), random_words(seed + 2, 20)
    assert np.all(w.equal(w.multiply(EXP.power(x, a), EXP.power(x, b)), EXP.power(x, w.add(a, b))))
    assert np.all(w.equal(EXP.power(EXP.power(x, a), w.inverse(a)), x))
    assert np.all(w.equal(EXP.power(x, w.rational(1, 2)), w.sqrt(x)))
    assert np.all(w.equal(EXP.power(x, w.rational(1, 3)), w.cbrt(x)))
    assert np.all(w.equal(EXP.power(x, w.integers(3)), w.power(x, 6)))
    assert np.all(w.equal(EXP.power(x, a), EXP(w.multiply(a, EXP.log(x)))))
    assert np.all(w.equal(EXP.power(EXP(w.ONE), a), EXP(a)))


def test_powers_of_0_and_of_negative_numbers() -> None:
    a, y = squares(1, 40), random_words(2, 40)
    assert not EXP.power(np.zeros(40, np.uint64), y).any()
    assert not np.any(w.equal(EXP.power(w.negate(a), y), EXP.power(a, y)))


def test_log_of_its_corners() -> None:
    special = np.array([int(w.ONE), 0, int(w.INF)], np.uint64)
    for exp in (Exponential(3), EXP):
        assert exp.log(special).tolist() == [0, int(w.NEG_INF), int(w.INF)]


def test_odd_and_even_functions() -> None:
    a = np.append(random_words(1, 100), np.uint64(0))
    sine, cosine = odd("sine", 1, a), even("cosine", 1, a, at_zero=w.ONE)
    assert np.array_equal(odd("sine", 1, w.negate(a)), w.negate(sine))
    assert np.array_equal(even("cosine", 1, w.negate(a)), even("cosine", 1, a))
    assert sine[-1] == 0
    assert cosine[-1] == w.ONE
    assert len(np.unique(sine)) == 101


def test_unknown_functions() -> None:
    a, b = random_words(1, 4, 1), random_words(2, 5)
    value = opaque("atan2", 1, a, b)
    assert value.shape == (4, 5)
    assert value[2, 3] == opaque("atan2", 1, a[2, 0], b[3])
    assert len({int(x) for x in (*opaque("f", 1, b), *opaque("g", 1, b), *opaque("f", 2, b))}) == 15
    only_modulo_q = w.join(w.split(b)[0], np.zeros(5, np.uint64))
    assert np.array_equal(opaque("f", 1, only_modulo_q), opaque("f", 1, b))
