"""Constants as exact numbers."""

from __future__ import annotations

from fractions import Fraction
from math import e, pi, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property.laws import law
from support.field_words import word_of

from hlotool.backends.field import words as w
from hlotool.backends.field.constants import Constants
from hlotool.backends.field.snapping import Rule, dyadic, simplest
from hlotool.ir.arrays import dtype_of
from hlotool.ir.builder import Builder, array
from hlotool.ir.module import Module
from hlotool.ir.types import ELEMENT_TYPES


def program(*values: float, kind: str = "f32") -> Module:
    """A program with these constants."""
    builder = Builder("constants")
    root = builder.parameter(0, array(kind), "x")
    for value in values:
        root = builder.op("add", root, builder.constant(value, kind))
    return builder.build_module(root)


def rounded(value: float, kind: str = "f32") -> float:
    return float(np.float64(value).astype(dtype_of(ELEMENT_TYPES[kind])))


@pytest.mark.parametrize(
    ("value", "number", "rule"),
    [
        (0.1, Fraction(1, 10), Rule.FRACTION),
        (-0.75, Fraction(-3, 4), Rule.SHORT),
        (1 / 3, Fraction(1, 3), Rule.FRACTION),
        (1e-5, Fraction(1, 10**5), Rule.FRACTION),
        (0.044715, Fraction(44715, 10**6), Rule.DECIMAL),
        (3 * 0.044715, Fraction(134145, 10**6), Rule.DECIMAL),
        (-1e9, Fraction(-(10**9)), Rule.DECIMAL),
        (0.0, Fraction(0), Rule.SHORT),
    ],
)
def test_what_a_constant_of_f32_means(value: float, number: Fraction, rule: Rule) -> None:
    found = Constants(program()).reading(rounded(value))
    assert (found.word, found.rule) == (word_of(number), rule)
    assert Fraction(found.text) == number


def test_roots_of_fractions() -> None:
    found = Constants(program()).reading(rounded(sqrt(0.5)))
    assert (found.rule, found.text) == (Rule.ROOT, "√(1/2)")
    assert w.equal(w.multiply(found.word, found.word), w.rational(1, 2))


def test_a_number_that_nothing_simple_rounds_to_is_what_it_is() -> None:
    value = rounded(e)
    found = Constants(program()).reading(value)
    assert (found.word, found.rule) == (word_of(Fraction(value)), Rule.DYADIC)


def test_the_narrowest_type_of_both_programs_counts() -> None:
    """A tenth in bf16, and its copy in f32; in a program of f32 alone it is another number."""
    value = rounded(0.1, "bf16")
    assert Constants(program(kind="bf16"), program(value)).reading(value).word == w.rational(1, 10)
    assert Constants(program()).reading(value).word == word_of(Fraction(value))


@pytest.mark.parametrize(
    ("limit", "kind"), [(448, "f8e4m3fn"), (57344, "f8e5m2"), (240, "f8e4m3fnuz"), (30, "f8e3m4")]
)
def test_the_limits_of_f8_are_what_they_are(limit: int, kind: str) -> None:
    """By which programs clip, as f32; 450 and 60000 round to them."""
    assert Constants(program(limit), program(kind=kind)).reading(limit).word == word_of(Fraction(limit))


@law
@given(st.integers(1, 200), st.integers(1, 200), st.sampled_from(["f32", "f64"]))
def test_roundings_of_simple_fractions_are_the_fraction(n: int, d: int, kind: str) -> None:
    assert Constants(program(kind=kind)).reading(rounded(n / d, kind)).word == w.rational(n, d)


@law
@given(st.floats(allow_subnormal=False, allow_nan=False, allow_infinity=False))
def test_numbers_as_they_are(value: float) -> None:
    assert dyadic(np.array([value]))[0] == word_of(Fraction(value))


def test_infinities_and_nan() -> None:
    special = np.array([np.inf, -np.inf, np.nan, 1.0])
    expected = [int(x) for x in (w.INF, w.NEG_INF, w.NAN, w.ONE)]
    assert Constants(program()).words(special).tolist() == expected
    assert dyadic(special).tolist() == expected


def test_five_ulps_are_another_number() -> None:
    constants = Constants(program(0.5, 0.1), program(0.5 * (1 + 6e-7)))
    assert constants.reading(rounded(0.5 * (1 + 6e-7))).word != w.rational(1, 2)
    assert constants.reading(rounded(0.1 * (1 + 6e-7))).word != w.rational(1, 10)


LN2, CLIP = rounded(0.6931471805599453), rounded(3.92572474)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1 / LN2, w.inverse(word_of(Fraction(LN2)))),
        (-1 / CLIP, w.negate(w.inverse(word_of(Fraction(CLIP))))),
        (LN2 * CLIP, w.multiply(word_of(Fraction(LN2)), word_of(Fraction(CLIP)))),
        (LN2 / CLIP, w.divide(word_of(Fraction(LN2)), word_of(Fraction(CLIP)))),
        (LN2 + CLIP, w.add(word_of(Fraction(LN2)), word_of(Fraction(CLIP)))),
        (LN2 - CLIP, w.subtract(word_of(Fraction(LN2)), word_of(Fraction(CLIP)))),
        (sqrt(CLIP), w.sqrt(word_of(Fraction(CLIP)))),
        (1 / sqrt(CLIP), w.rsqrt(word_of(Fraction(CLIP)))),
    ],
)
def test_what_a_compiler_made_of_the_reference_s_constants(value: float, expected: w.Words) -> None:
    """Up to a rounding, and half of one before."""
    for off in (0, 2.0**-25):
        made = rounded(value * (1 + off))
        found = Constants(program(LN2, CLIP), program(made)).reading(made)
        assert (found.word, found.rule) == (expected, Rule.RELATION)


def test_constants_of_the_reference_are_never_explained_away() -> None:
    made = rounded(LN2 * CLIP)
    assert Constants(program(LN2, CLIP, made)).reading(made).rule is Rule.DYADIC


def test_what_the_reference_folds_is_known_too() -> None:
    folded, value = CLIP, rounded(1 / CLIP)
    constants = Constants(program(), program(value))
    constants.folded(np.array([folded], np.float32))
    assert constants.reading(value).word == w.inverse(word_of(Fraction(folded)))


def test_tiny_constants_are_zero_at_the_second_attempt() -> None:
    value = rounded(1e-38)
    assert Constants(program(value)).reading(value).word != 0
    assert Constants(program(value), zeros={abs(value)}).reading(value).rule is Rule.ZERO


def test_sizes_of_constants_are_known() -> None:
    value = rounded(e)
    known = Constants(program(value)).known
    at = np.searchsorted(known.words, [word_of(Fraction(value)), word_of(Fraction(-value))])
    assert known.values[at].tolist() == [value, -value]


def test_pi_is_read_as_a_fraction() -> None:
    """355/113 rounds to it: not what was meant, but the same in both programs."""
    assert Constants(program()).reading(rounded(pi)).text == "355/113"


def test_arrays() -> None:
    """Each element by itself, in any dimensions; a table with many values is taken as it is."""
    constants = Constants(program())
    small = np.array([[0.1, 0.5], [0.1, 1 / 3]], np.float32)
    assert constants.words(small).tolist() == [
        [int(w.rational(1, 10)), int(w.rational(1, 2))],
        [int(w.rational(1, 10)), int(w.rational(1, 3))],
    ]
    table = np.linspace(0.1, 0.2, 4000, dtype=np.float32)
    assert np.array_equal(constants.words(table), dyadic(table.astype(np.float64)))


@law
@given(st.fractions(min_value=Fraction(1, 1000), max_value=1000, max_denominator=10**9))
def test_the_simplest_fraction_within_a_rounding(exact: Fraction) -> None:
    """No fraction of a smaller denominator is as near."""
    found = simplest(exact, 12)
    width = exact * Fraction(3, 2) / 2**12
    assert abs(found - exact) <= width
    for d in range(1, min(found.denominator, 60)):
        assert not any(abs(Fraction(n, d) - exact) <= width for n in (exact * d // 1, exact * d // 1 + 1))


def test_what_a_compiler_made_is_that_before_a_decimal_that_is_as_near() -> None:
    """1 / 1.429 in f32 is 0.699790061, and 0.69979 is within its rounding, too."""
    made = rounded(1 / rounded(1.429))
    assert Constants(program()).reading(made).rule is Rule.DECIMAL
    found = Constants(program(1.429), program(made)).reading(made)
    assert (found.rule, found.word) == (Rule.RELATION, word_of(Fraction(1000, 1429)))


@pytest.mark.parametrize("value", [1 / 0.82 / sqrt(2), 3.7 * 3.7 * 0.013, 0.31 / (2.9 * 1.7)])
def test_products_of_three(value: float) -> None:
    written = program(0.82, 2.0, 3.7, 0.013, 0.31, 2.9, 1.7)
    found = Constants(written, program(value)).reading(rounded(value))
    assert found.rule is Rule.RELATION
    assert not w.equal(found.word, dyadic(np.array(rounded(value))))
    nearly = rounded(value * (1 + 1e-6))
    assert Constants(written, program(nearly)).reading(nearly).rule is not Rule.RELATION


def test_products_of_four() -> None:
    """As the price of an option has them in its second derivative, each step rounded to f32.

    The product of all four steps is 2.4 units off: more than one rounding can do, less than four.
    """
    constants = [8.46020412, 0.0167791713, 1.41421354, 0.37]
    made = np.float32(1) / np.float32(constants[1]) * (np.float32(1) / np.float32(constants[2]))
    made = float(made * np.float32(constants[0]) * np.float32(constants[3]))
    found = Constants(program(*constants), program(made)).reading(made)
    words = [Constants(program(*constants)).reading(rounded(value)).word for value in constants]
    assert found.rule is Rule.RELATION
    assert found.word == w.divide(w.multiply(words[0], words[3]), w.multiply(words[1], words[2]))


def test_among_many_constants_a_product_explains_nothing() -> None:
    """Of 200 constants products of four are as near to any number: none says where it comes from."""
    many = [rounded(v) for v in np.random.default_rng(0).uniform(0.5, 2, 200)]
    for made in (rounded(e / 2), rounded(many[0] * many[1] * many[2] * many[5])):
        assert Constants(program(*many), program(made)).reading(made).rule is Rule.DYADIC
    pair = rounded(many[0] * many[1])
    assert Constants(program(*many[:20]), program(pair)).reading(pair).rule is Rule.RELATION


def test_a_product_has_no_two_roots_of_one_constant() -> None:
    """√r √r is r in the product of three; as words it is -r where r is no square, as here."""
    r = 9008249 / 536870912
    assert w.multiply(*[w.sqrt(word_of(Fraction(r)))] * 2) != word_of(Fraction(r))
    made = rounded(1 / r / rounded(sqrt(2)))
    found = Constants(program(r, rounded(sqrt(2))), program(made)).reading(made)
    assert found.word == w.multiply(w.inverse(word_of(Fraction(r))), w.rsqrt(word_of(Fraction(2))))


def test_what_a_frontend_made_of_its_constants() -> None:
    """-1/2 of 1.201^-2, as the derivative of a density has it: read as that where 1.201 stands beside it."""
    made = rounded(0.5 / 1.201**2)
    found = Constants(program(1.201, 2.0, made)).reading(made)
    assert found.word == word_of(Fraction(1000, 1201) ** 2 / 2)


def test_what_follows_from_constants_is_not_rounded() -> None:
    """0.1 * 0.7 in f32, and what the tested program has in its place; 1 - 1e-38 is 1."""
    constants = Constants(program(0.1, 0.7, 1e-38), program(rounded(0.07)))
    tenth, part = (constants.words(np.float32(v)) for v in (0.1, 0.7))
    product = constants.derived(np.float32(0.1) * np.float32(0.7), w.multiply(tenth, part), True)
    assert product == word_of(Fraction(7, 100))
    assert constants.reading(float(np.float32(0.1) * np.float32(0.7))).word == product
    tiny = constants.words(np.float32(1e-38))
    assert constants.derived(np.float32(1), w.subtract(w.ONE, tiny), True) == w.ONE
