"""NaN and infinities that come of a product that is not rounded on its way into a sum, or of fast math."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.judging import executed

from hlotool.backends.numpy import NumpyBackend
from hlotool.ir.arrays import Array
from hlotool.judge.comparison import LeafComparison
from hlotool.judge.rules.freedoms import UNKNOWN_TARGET, Freedoms
from hlotool.judge.rules.judge import judge
from hlotool.judge.rules.judgement import judgement_of
from hlotool.judge.rules.products import contracted, contractions
from hlotool.judge.verdicts import Verdict
from hlotool.parser.reader import parse_module

F32, C64 = np.float32, np.complex64

DIFFERENCE = """ENTRY e {
  a = f32[4] parameter(0)
  b = f32[4] parameter(1)
  p = f32[4] multiply(a, a)
  q = f32[4] multiply(b, b)
  ROOT r = f32[4] subtract(p, q)
}"""
LARGE = [F32([4.5e32, 1, 2, 3]), F32([5.9e26, 1, 2, 3])]


def _said(
    text: str, arguments: list[Any], actual: Array, allowed: Freedoms = UNKNOWN_TARGET
) -> LeafComparison:
    """The verdict on what a backend returned."""
    judgement = judgement_of(parse_module(text), arguments, actual)
    return judge(replace(judgement, freedoms=allowed)).leaves[0]


@pytest.mark.parametrize("infinity", [-np.inf, np.inf])
def test_an_overflow_of_one_product_of_two_is_range(infinity: float) -> None:
    assert np.isnan(executed(DIFFERENCE, LARGE)[0])
    leaf = _said(DIFFERENCE, LARGE, F32([infinity, 0, 0, 0]))
    assert leaf.verdict is Verdict.RANGE
    assert (
        "a contraction (fma) does not round a product that overflows, at multiply %p (line 4)" in leaf.reason
    )


def test_what_a_contraction_does_not_do_stays_wrong() -> None:
    assert _said(DIFFERENCE, LARGE, F32([7, 0, 0, 0])).verdict is Verdict.WRONG
    assert _said(DIFFERENCE, LARGE, F32([np.nan, 0, 5, 0])).verdict is Verdict.WRONG
    assert _said(DIFFERENCE, LARGE, F32([-np.inf, np.inf, 0, 0])).verdict is Verdict.WRONG


def test_a_contraction_that_gives_the_same_bits_is_named() -> None:
    """However much is left of what cancels: `a · b - c`, where c is the rounded product."""
    text = """ENTRY e {
  a = f32[64] parameter(0)
  c = f32[64] parameter(1)
  p = f32[64] multiply(a, a)
  ROOT r = f32[64] subtract(p, c)
}"""
    a = np.random.default_rng(0).uniform(1, 2, 64).astype(F32)
    fused = (a.astype(np.float64) ** 2 - (a * a)).astype(F32)
    leaf = _said(text, [a, a * a], fused)
    assert leaf.verdict is Verdict.ROUNDING
    assert "a contraction (fma) gives the same bits: subtract %r (line 5)" in leaf.reason
    assert _said(text, [a, a * a], -fused).verdict is not Verdict.ROUNDING


COMPLEX = "ENTRY e { a = c64[2] parameter(0) b = c64[2] parameter(1) ROOT p = c64[2] multiply(a, b) }"


def test_parts_of_a_complex_product_are_contracted_one_by_one() -> None:
    z = np.array([4.5e32 - 5.9e26j, 1 + 2j], C64)
    one, other = (
        NumpyBackend().compile(contracted(parse_module(COMPLEX), last)).run([z, z]) for last in (0, 1)
    )
    assert {float(one[0].real), float(other[0].real)} == {-np.inf, np.inf}
    assert one[1] == other[1] == np.complex64(-3 + 4j)
    for real in (-np.inf, np.inf, np.nan):
        actual = np.array([0, -3 + 4j], C64)
        actual[0] = complex(real, executed(COMPLEX, [z, z])[0].imag)
        assert _said(COMPLEX, [z, z], actual).verdict in (Verdict.RANGE, Verdict.IDENTICAL)


def test_an_infinity_in_a_dot_of_complex_numbers_is_put_together_in_any_way() -> None:
    """Four real dots of its parts leave an infinity where one product of complex matrices may leave NaN."""
    dot = """ENTRY e {
  a = c64[1,4] parameter(0)
  b = c64[4,1] parameter(1)
  ROOT p = c64[1,1] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}"""
    rng = np.random.default_rng(0)
    a, b = (rng.uniform(1, 2, dims).astype(C64) for dims in ((1, 4), (4, 1)))
    a[0, 0], b[0, 0] = complex(0.5, np.inf), complex(-0.5, 0.5)
    [parts, *_] = (
        backend.compile(parse_module(dot)).run([a, b]) for backend in contractions(parse_module(dot))
    )
    assert np.isinf(parts[0, 0].real)
    assert np.isinf(parts[0, 0].imag)
    assert _said(dot, [a, b], parts).verdict in (Verdict.RANGE, Verdict.IDENTICAL)
    assert _said(dot, [a, b], np.array([[1 + 1j]], C64)).verdict is Verdict.WRONG


def test_where_nothing_is_multiplied_and_added_nothing_is_contracted() -> None:
    text = "ENTRY e { a = f32[4] parameter(0) b = f32[4] add(a, a) ROOT c = f32[4] multiply(b, b) }"
    assert not list(contractions(parse_module(text)))
    doubles = DIFFERENCE.replace("f32", "f64")
    assert not list(contractions(parse_module(doubles)))


FAST = Freedoms(fast_math=("xla_cpu_enable_fast_math=true",))
NOTHING_LEFT = "ENTRY e { x = f32[4] parameter(0) ROOT y = f32[4] subtract(x, x) }"


def test_nan_that_fast_math_loses_is_range_and_names_the_flag() -> None:
    x = F32([np.nan, 1, np.inf, 2])
    leaf = _said(NOTHING_LEFT, [x], F32([0, 0, 0, 0]), FAST)
    assert leaf.verdict is Verdict.RANGE
    assert "compiled with xla_cpu_enable_fast_math=true, NaN and infinity need not be kept" in leaf.reason
    assert _said(NOTHING_LEFT, [x], F32([0, 0, 0, 0])).verdict is Verdict.WRONG


def test_fast_math_excuses_nothing_where_all_is_finite() -> None:
    x = F32([3, 1, 4, 2])
    assert _said(NOTHING_LEFT, [x], F32([0, 1, 0, 0]), FAST).verdict is Verdict.WRONG
    assert _said(NOTHING_LEFT, [x], F32([0, np.nan, 0, 0]), FAST).verdict is Verdict.WRONG


def test_a_question_whether_a_number_is_nan_is_answered_no_by_fast_math() -> None:
    text = "ENTRY e { x = f32[4] parameter(0) ROOT y = pred[4] compare(x, x), direction=NE }"
    x = F32([np.nan, 1, 2, 3])
    none = np.zeros(4, np.bool_)
    assert _said(text, [x], none, FAST).verdict is Verdict.RANGE
    assert _said(text, [x], none).verdict is Verdict.WRONG


def test_a_complex_product_of_three_real_ones_may_overflow_in_a_sum() -> None:
    """As a TPU makes them: c(a + b) is infinite where a + b is."""
    text = """ENTRY e {
  x = c64[2,1] parameter(0)
  y = c64[1,2] parameter(1)
  ROOT d = c64[2,2] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}"""
    arguments = [C64([[3e38 + 3e38j], [1]]), C64([[0.001, 0.25]])]
    plain = np.matmul(*arguments)
    assert np.isfinite(plain[0, 0])
    infinite = plain.copy()
    infinite[0, 0] = complex(np.inf, np.inf)
    infinite[0, 1] = complex(np.inf, np.inf)
    assert _said(text, arguments, infinite).verdict is Verdict.RANGE
    infinite[1, 0] = complex(np.inf, np.inf)
    assert _said(text, arguments, infinite).verdict is Verdict.WRONG
