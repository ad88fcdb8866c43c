"""Sums of numbers that look exact: what another legal order may make of them, and what none does."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from support.judging import executed, judged_leaf

from hlotool.backends.numpy.executions.noise import Member, Noise
from hlotool.backends.numpy.executions.rounding_errors import Error
from hlotool.backends.numpy.executions.sums import PerturbTerms
from hlotool.ir.arrays import Array
from hlotool.judge.comparison import LeafComparison
from hlotool.judge.verdicts import Answer, Verdict
from hlotool.parser.reader import parse_module

F32 = np.float32

SUM = """add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
ENTRY e {
  x = f32[12] parameter(0)
  zero = f32[] constant(0)
  r = f32[] reduce(x, zero), dimensions={0}, to_apply=add
  ROOT t = f32[] tanh(r)
}"""
#: The same reducer, which nobody recognises as an addition: its terms are added one after the other.
SUM_IN_TURN = SUM.replace(
    "ROOT s = f32[] add(a, b)", "h = f32[] add(a, b) n = f32[] negate(h) ROOT s = f32[] negate(n)"
)
DOT = """ENTRY e {
  x = f32[64] parameter(0)
  ones = f32[64] parameter(1)
  ROOT d = f32[] dot(ones, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}
}"""


def _value(text: str, *arguments: Array) -> Array:
    return np.asarray(executed(text, list(arguments)))


def _judged(text: str, arguments: list[Array], actual: Array, tested: str = "") -> LeafComparison:
    return judged_leaf(text, arguments, actual, tested=parse_module(tested) if tested else None)


def _terms(size: float, seed: int) -> Array:
    """A large number, its opposite and small ones in some order."""
    numbers = [size, -size, 2.3, 0.5, 0.1, 0.2, 0.3, 0, 0, 0, 0, 0]
    return np.array(np.random.default_rng(seed).permutation(numbers), F32)


def _in_turn(terms: Array) -> Array:
    """The sum in f32, one term after the other, as XLA's CPU code makes it."""
    total = F32(0)
    for term in terms:
        total = F32(total + term)
    return np.asarray(total)


@pytest.mark.parametrize("size", [3.4028235e38, 1e30, 1e20, 1e10, 1e5])
def test_no_order_of_a_sum_that_cancels_is_wrong(size: float) -> None:
    others = 0
    for seed in range(12):
        terms = _terms(size, seed)
        actual = _value(SUM_IN_TURN, terms)
        others += bool(actual != _value(SUM, terms))
        leaf = _judged(SUM, [terms], actual, SUM_IN_TURN)
        assert leaf.verdict.answer is not Answer.BAD, leaf.reason
    assert others, "both programs add up in the same order: this shows nothing"


@pytest.mark.parametrize("large", [0.0, 1e5])
def test_no_order_of_a_product_with_ones_is_wrong(large: float) -> None:
    rng = np.random.default_rng(3)
    others = 0
    for _ in range(6):
        x = rng.standard_normal(64).astype(F32)
        x[3], x[40] = x[3] + large, x[40] - large
        x[5] -= F32(x.astype(np.float64).sum())
        ones, actual = np.ones(64, F32), _in_turn(x)
        others += bool(actual != _value(DOT, x, ones))
        leaf = _judged(DOT, [x, ones], actual)
        assert leaf.verdict.answer is not Answer.BAD, leaf.reason
    assert others


def test_whole_numbers_add_up_exactly_in_every_order() -> None:
    x = np.pad(np.tile(np.array([3, -1, 7, 1e4, -1e4, 0.25], F32), 10), (0, 4))
    ones = np.ones(64, F32)
    right = _value(DOT, x, ones)
    assert _judged(DOT, [x, ones], right + F32(0.25)).verdict is Verdict.WRONG


def test_more_than_all_orders_make_of_a_sum_is_wrong() -> None:
    x = np.random.default_rng(4).standard_normal(64).astype(F32)
    x[3], x[40] = 1e5, -1e5
    ones = np.ones(64, F32)
    # Every sum on the way is below 2^17, and 64 of them are off by 2^-7 at most, each.
    assert _judged(DOT, [x, ones], _value(DOT, x, ones) + F32(64)).verdict is Verdict.WRONG


@pytest.mark.parametrize(
    ("rows", "spared"),
    [
        ([[1, 2, 4], [8, 0.5, 0.25]], [True, True]),  # exact in every order
        ([[1e5, 0.1, -1e5], [1, 2, 3]], [False, True]),  # row by row
        ([[2.0**30, 1, 0], [2.0**30, 0, 0]], [False, True]),  # 31 digits; a single term
        ([[2.0**22, 0.5, 0], [2.0**23, 0.5, 0]], [True, False]),  # 24 digits; one more
    ],
)
def test_terms_stay_where_their_sum_is_exact(rows: list[list[float]], spared: list[bool]) -> None:
    value = np.array(rows, F32)
    change = PerturbTerms(Noise(Member(1)), Error(1e-3, 4), 1e-3, 24, 3, axes=(1,))
    same = (change(value) == value).all(axis=1)
    assert same.tolist() == spared


@pytest.mark.parametrize("axes", [(0,), None])
@pytest.mark.parametrize("dims", [(0, 3), (1,)])
def test_sums_of_nothing_and_of_one_term_have_no_order(
    dims: tuple[int, ...], axes: tuple[int, ...] | None
) -> None:
    value = np.full(dims, 0.5, F32)
    change = PerturbTerms(Noise(Member(1)), Error(1e-3, 4), 1e-3, 24, 3, axes)
    assert (change(value) == value).all()


def test_complex_terms_are_exact_where_both_parts_are() -> None:
    change = PerturbTerms(Noise(Member(1)), Error(1e-3, 4), 1e-3, 24, 3, axes=(1,))
    value = np.array([[1 + 2j, 0.5 - 1j, 3], [1e5 + 2j, -1e5 + 0.1j, 3]], np.complex64)
    assert (change(value) == value).all(axis=1).tolist() == [True, False]


def test_factors_count_for_the_digits_of_a_product() -> None:
    ones, few = np.ones((1, 4), F32), np.array([1, 2, 3, 4], F32)
    many = np.array([0.1, 0.2, 0.3, 0.4], F32)
    change = PerturbTerms(Noise(Member(1)), Error(1e-3, 4), 1e-3, 24, 4, axes=(1,), factor=1)
    assert (change(ones, few) == ones).all()
    assert (change(ones, many) != ones).all()


def test_the_sum_of_exact_terms_is_the_same_in_every_order() -> None:
    """What the tests above rest on, by brute force."""
    sums = {float(_in_turn(np.array(p, F32))) for p in permutations([2.0**22, 0.5, 3, -1.5])}
    assert len(sums) == 1
    sums = {float(_in_turn(np.array(p, F32))) for p in permutations([1e5, 0.1, -1e5])}
    assert len(sums) > 1


PREFIXES = """add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
ENTRY e {
  x = f32[12,66] parameter(0)
  zero = f32[] constant(0)
  ROOT r = f32[12,66] reduce-window(x, zero), window={size=1x66 pad=0_0x65_0}, to_apply=add
}"""
#: Prefixes of half a row each, and the sum of the first half added to those of the other one.
PREFIXES_IN_TWO = """add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
ENTRY e {
  x = f32[12,66] parameter(0)
  zero = f32[] constant(0)
  h = f32[12,2,33] reshape(x)
  r = f32[12,2,33] reduce-window(h, zero), window={size=1x1x33 pad=0_0x0_0x32_0}, to_apply=add
  l = f32[12,1,1] slice(r), slice={[0:12], [0:1], [32:33]}
  p = f32[12,2,1] pad(l, zero), padding=0_0x1_0x0_0
  q = f32[12,2] reshape(p)
  o = f32[12,2,33] broadcast(q), dimensions={0,1}
  t = f32[12,2,33] add(r, o)
  ROOT s = f32[12,66] reshape(t)
}"""


def _largest_in_turn() -> Array:
    """Rows of which every fifth element is the largest number there is, and two behind it its opposite."""
    row = np.resize(np.array([1, 3.4028235e38, 1.17e-38, -3.4028235e38, 1.4e-45], F32), 66)
    return np.stack([row] * 12)


def test_where_legal_executions_overflow_no_order_is_wrong() -> None:
    """In f32 the first program loses the ones to the largest numbers, the second one in other places."""
    terms = _largest_in_turn()
    actual = _value(PREFIXES_IN_TWO, terms)
    assert np.isfinite(actual).all()
    assert (actual != _value(PREFIXES, terms)).any()
    leaf = _judged(PREFIXES, [terms], actual, PREFIXES_IN_TWO)
    assert leaf.verdict.answer is not Answer.BAD, leaf.reason


def test_where_legal_executions_overflow_other_elements_are_judged() -> None:
    """The first element of each row is what it is, whatever overflows behind it."""
    terms = _largest_in_turn()
    actual = _value(PREFIXES_IN_TWO, terms)
    actual[:, 0] = 1.01
    assert _judged(PREFIXES, [terms], actual).verdict is Verdict.WRONG


NORMALISED = """ENTRY e {
  x = f64[4,1] parameter(0)
  scale = f64[1] parameter(1)
  offset = f64[1] parameter(2)
  mean = f64[1] parameter(3)
  variance = f64[1] parameter(4)
  ROOT n = f64[4,1] batch-norm-inference(x, scale, offset, mean, variance), epsilon=0.25, feature_index=1
}"""


def test_terms_of_a_normalisation_are_rounded_before_they_cancel() -> None:
    """XLA multiplies by one factor and adds one number, which are made first."""
    x = np.array([[0], [-1e3], [1e3 + 1e-7], [7]])
    scale, offset, mean, variance = (np.array([value]) for value in (1.2, 1e3 * 1.2 / 1.25**0.5, 1e3, 1.0))
    arguments = [x, scale, offset, mean, variance]
    factor = scale / np.sqrt(variance + 0.25)
    actual = x * factor + (offset - mean * factor)
    expected = _value(NORMALISED, *arguments)
    assert (np.abs(actual - expected) > 100 * np.spacing(np.abs(expected))).any()
    assert _judged(NORMALISED, arguments, actual).verdict is not Verdict.WRONG
    assert (
        _judged(NORMALISED, arguments, expected + np.array([[0], [0], [0], [1e-9]])).verdict is Verdict.WRONG
    )
