"""What excuses a difference of two programs in f64, and what does not."""

from __future__ import annotations

import numpy as np
import pytest

import hlotool
from hlotool.facts.result_facts import NOTHING
from hlotool.ir.types import ArrayShape, ElementType
from hlotool.judge.comparison import LeafComparison
from hlotool.judge.rules.ensemble import Ensemble
from hlotool.judge.rules.f64_check import Wide, WideRelation, stay_finite
from hlotool.judge.rules.judgement import Leaf, side_of
from hlotool.judge.verdicts import Verdict


def test_executions_that_are_not_finite_span_everything() -> None:
    expected = np.array([1.0, np.inf, np.nan])
    assert stay_finite([np.array([1.5, 2.0, np.nan])], expected)
    assert not stay_finite([np.array([1.5, 2.0, 3.0]), np.array([np.nan, 2.0, 3.0])], expected)


#: Two outputs, the first of which takes two of six operations.
TWO = """HloModule m
ENTRY e {
  p = f32[64] parameter(0)
  q = f32[64] parameter(1)
  a = f32[64] sine(p)
  b = f32[64] exponential(a)
  c = f32[64] multiply(a, q)
  d = f32[64] cosine(c)
  f = f32[64] add(d, b)
  ROOT r = (f32[64], f32[64]) tuple(b, f)
}"""


def test_other_executions_for_one_output_leave_the_rest_of_the_program_out() -> None:
    """What is rounded anew moves the output by an ulp of f32, as in executions of the whole."""
    p = np.random.default_rng(0).normal(size=(2, 64)).astype(np.float32)
    ensemble = Ensemble(side_of(hlotool.parse(TWO), list(p)), 0)
    part = ensemble.for_output(0)
    assert part is not None
    assert [i.name for i in part.side.module.entry.instructions] == ["p", "q", "a", "b"]
    assert part.shadow[0].tobytes() == ensemble.shadow[0].tobytes()
    rounded = frozenset(part.side.module.entry.instructions[2:])
    for [member] in part.wide_members(2, rounded):
        off = np.abs(member - part.shadow[0]).max()
        assert 0 < off < 8 * np.finfo(np.float32).eps
    assert ensemble.for_output(1) is None


@pytest.mark.parametrize("scale", [0.0, 1e-13, 1e-9, 1e-3, 1.0])
def test_outputs_are_equal_in_f64_up_to_what_long_programs_make_of_it(scale: float) -> None:
    """However large the elements: beside large ones small ones count for nothing."""
    rng = np.random.default_rng(0)
    one = rng.normal(size=1000) * np.exp(8 * rng.normal(size=1000))
    other = one * (1 + scale * rng.normal(size=1000))
    text = "HloModule m ENTRY e { p = f64[1000] parameter(0) ROOT n = f64[1000] negate(p) }"
    sides = [Ensemble(side_of(hlotool.parse(text), [value]), 0) for value in (one, other)]
    compared = LeafComparison((), "f64[1000]", Verdict.WRONG, "they differ")
    leaf = Leaf(0, ArrayShape(ElementType.F64, (1000,)), NOTHING, -one, -other, compared)
    found = Wide(*sides).glance(leaf)
    assert found is not None
    assert (found.relation is WideRelation.EQUAL) is (scale < 1e-12)
