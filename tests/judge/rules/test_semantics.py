"""What XLA is known to do otherwise accuses nobody, and a fault beside it is still found."""

from __future__ import annotations

import numpy as np
import pytest
from support.judging import judged_leaf

from hlotool.backends.numpy.executions import departures
from hlotool.ir.arrays import Array
from hlotool.judge.rules.judge import judge
from hlotool.judge.rules.judgement import judgement_of
from hlotool.judge.verdicts import Verdict
from hlotool.lab.conformance.agreement import DEPARTURES
from hlotool.lab.conformance.spec_files import value_of
from hlotool.parser.reader import parse_module

KNOWN = sorted({rule.id for rule in departures.DEPARTURES})
EXAMPLES = [rule for rule in KNOWN if rule in DEPARTURES and DEPARTURES[rule].example is not None]


@pytest.mark.parametrize("rule", KNOWN)
def test_every_rule_is_in_the_table(rule: str) -> None:
    assert rule in DEPARTURES or rule == "evaluator-saturating-convolution"


@pytest.mark.parametrize("rule", EXAMPLES)
def test_what_xla_gives_is_explained_by_the_rule(rule: str) -> None:
    example = DEPARTURES[rule].example
    assert example is not None
    module = parse_module(example.text)
    arguments = [value_of(text, p.shape) for text, p in zip(example.inputs, module.entry.parameters)]
    actual = value_of(example.xla, module.entry.root.shape)
    leaf = judge(judgement_of(module, arguments, actual)).leaves[0]
    assert (leaf.verdict, leaf.evidence and leaf.evidence.rule) == (Verdict.SEMANTICS, rule)
    assert rule in leaf.reason


POWER = "ENTRY e { b = s32[3] parameter(0) x = s32[3] parameter(1) ROOT p = s32[3] power(b, x) }"
BASES, EXPONENTS = np.int32([3, 2, 5]), np.int32([64, 3, 2])


def test_exponents_of_more_than_six_bits() -> None:
    leaf = judged_leaf(POWER, [BASES, EXPONENTS], np.int32([1, 8, 25]))
    assert leaf.evidence.rule == "integer-power-six-bits"
    assert leaf.verdict is Verdict.SEMANTICS


def test_a_fault_beside_a_known_difference_is_wrong() -> None:
    leaf = judged_leaf(POWER, [BASES, EXPONENTS], np.int32([1, 9, 25]))
    assert leaf.verdict is Verdict.WRONG


LOGISTIC = "ENTRY e { x = f16[4] parameter(0) y = f16[4] logistic(x) ROOT r = f32[4] convert(y) }"
#: What jaxlib 0.10.2 gives for them: exp(-x) is infinite in f16 for the first, and rounded for the second.
FAR_AND_NEAR, ON_XLA = (
    np.float16([-13.38, -5.246, 0.5, 1]),
    np.float32([0, 0.005237579, 0.6225586, 0.73095703]),
)


def test_a_known_difference_beside_rounding() -> None:
    """Some elements follow the rule, others are rounded as some legal execution rounds them."""
    leaf = judged_leaf(LOGISTIC, [FAR_AND_NEAR], ON_XLA)
    assert (leaf.verdict, leaf.evidence.rule) == (Verdict.SEMANTICS, "f16-logistic-overflows")
    for place, value in ((1, 0.0), (1, 0.00515), (2, 0.6255)):
        faulty = ON_XLA.copy()
        faulty[place] = value
        assert judged_leaf(LOGISTIC, [FAR_AND_NEAR], faulty).verdict is Verdict.WRONG


def test_a_rule_that_some_elements_follow() -> None:
    """Of a singular system only some unknowns become NaN, as jaxlib 0.10.2 computes it."""
    text = (
        "ENTRY e { x = f32[2,2] parameter(0) i = f32[2,2] iota(), iota_dimension=1 "
        "ROOT r = f32[2,2] triangular-solve(i, x), transpose_a=TRANSPOSE }"
    )
    x, actual = np.float32([[1, 2], [3, 4]]), np.float32([[np.nan, 2], [np.nan, 4]])
    leaf = judged_leaf(text, [x], actual)
    assert (leaf.verdict, leaf.evidence.rule) == (Verdict.SEMANTICS, "singular-triangular-solve")
    faulty = np.where(np.isnan(actual), actual, np.float32(7))
    assert judged_leaf(text, [x], faulty).verdict is Verdict.WRONG


def test_flushed_denormals_are_legal_even_where_they_are_amplified() -> None:
    text = "ENTRY e { x = f32[2] parameter(0) y = f32[2] parameter(1) ROOT d = f32[2] divide(y, x) }"
    x = np.float32([1e-40, 2])
    leaf = judged_leaf(text, [x, np.float32([1e-40, 1])], np.float32([np.nan, 0.5]))
    # 1e-40 / 1e-40, flushed, is NaN on one side only: explained, and no plain agreement.
    assert leaf.verdict is Verdict.RANGE


def test_convolutions_of_bytes_saturate_in_the_evaluator() -> None:
    text = (
        "ENTRY e { x = s8[1,2,1] parameter(0) w = s8[2,1,1] parameter(1) "
        "ROOT c = s8[1,1,1] convolution(x, w), window={size=2}, dim_labels=b0f_0io->b0f }"
    )
    x, w = np.int8([100, 100]).reshape(1, 2, 1), np.int8([1, 1]).reshape(2, 1, 1)
    leaf = judged_leaf(text, [x, w], np.int8([127]).reshape(1, 1, 1))
    assert leaf.evidence.rule == "evaluator-saturating-convolution"


def test_padding_beside_infinite_weights() -> None:
    """Infinities cancel, and meet zeros, only where both factors are there."""
    text = (
        "ENTRY e { x = f32[1,5,1] parameter(0) w = f32[2,1,1] parameter(1) "
        "ROOT c = f32[1,6,1] convolution(x, w), window={size=2 pad=1_1}, dim_labels=b0f_0io->b0f }"
    )
    x = np.float32([1, 0, -2, 3, np.nan]).reshape(1, 5, 1)
    w = np.float32([np.inf, np.inf]).reshape(2, 1, 1)
    inf, nan = np.inf, np.nan
    legal = np.float32([inf, nan, nan, nan, nan, nan]).reshape(1, 6, 1)
    skipped = judged_leaf(text, [x, w], legal)
    assert (skipped.verdict, skipped.evidence.rule) == (Verdict.SEMANTICS, "convolution-skips-padding")
    for place in (0, 2):
        faulty = legal.copy()
        faulty[0, place, 0] = -inf
        assert judged_leaf(text, [x, w], faulty).verdict is Verdict.WRONG
    x = np.float32([2, 4, -2, -3, 1]).reshape(1, 5, 1)
    legal = np.float32([inf, inf, nan, -inf, nan, inf]).reshape(1, 6, 1)
    assert judged_leaf(text, [x, w], legal).verdict is Verdict.SEMANTICS


DOT = (
    "ENTRY e { a = f64[200] parameter(0) b = f64[200] parameter(1) "
    "ROOT d = f64[] dot(a, b), lhs_contracting_dims={0}, rhs_contracting_dims={0} }"
)
CONVOLUTION = (
    "ENTRY e { a = f64[1,20,1] parameter(0) b = f64[16,1,1] parameter(1) "
    "ROOT c = f64[1,5,1] convolution(a, b), window={size=16}, dim_labels=b0f_0io->b0f }"
)
#: Products of 2.5e-309 each, of which 200 are no denormal number any more, and one that is far from it.
SMALL, AND_ONE = np.full(200, 5e-155), np.where(np.arange(200) == 3, 1e-150, 5e-155)


@pytest.mark.parametrize(("factors", "left"), [(SMALL, 0.0), (AND_ONE, 5e-305)])
def test_denormal_products_leave_nothing_in_a_sum(factors: Array, left: float) -> None:
    """The sum itself is no denormal number; what code leaves of it that takes such products for zero."""
    leaf = judged_leaf(DOT, [factors, SMALL], np.float64(left))
    assert (leaf.verdict, leaf.evidence.rule) == (Verdict.SEMANTICS, "flushed-denormals")
    whole = np.float64(np.dot(factors, SMALL))
    assert judged_leaf(DOT, [factors, SMALL], whole).verdict is Verdict.IDENTICAL
    for faulty in (1.5 * whole, 0.5 * whole, whole + 3e-306):
        assert judged_leaf(DOT, [factors, SMALL], np.float64(faulty)).verdict is Verdict.WRONG


@pytest.mark.xla
@pytest.mark.parametrize("text", [DOT, CONVOLUTION])
@pytest.mark.parametrize("size", [5e-155, 2e-154, 1e-153])
def test_xla_is_not_wrong_on_denormal_products(text: str, size: float) -> None:
    from hlotool.backends.xla import create

    module = parse_module(text)
    rng = np.random.default_rng(5)
    arguments = [rng.uniform(0.5, 1, p.shape.dims) * size for p in module.entry.parameters]
    actual = create().compile(module).run(arguments)
    assert judged_leaf(text, arguments, actual).verdict is not Verdict.WRONG
