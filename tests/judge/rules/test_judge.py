"""Verdicts on results that are known to be right, wrong, or neither."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.judging import executed, judged, judged_leaf, pair_leaf
from support.programs import CHAOS

from hlotool.ir.arrays import Array
from hlotool.judge.comparison import LeafComparison
from hlotool.judge.rules.freedoms import Freedoms, ProductFreedom
from hlotool.judge.rules.judge import judge
from hlotool.judge.rules.judgement import judgement_of
from hlotool.judge.tolerance import ChosenTolerance
from hlotool.judge.verdicts import Verdict
from hlotool.parser.reader import parse_module

F32 = np.float32


def _normal(*dims: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(dims).astype(F32)


DOT = """ENTRY e {
  x = f32[32,2000] parameter(0)
  w = f32[2000,24] parameter(1)
  ROOT d = f32[32,24] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}"""
DOT_INPUTS = [_normal(32, 2000), _normal(2000, 24, seed=1)]


def _sequential_dot() -> Array:
    """One term after the other, in f32: the least accurate order."""
    x, w = DOT_INPUTS
    total = np.zeros((32, 24), F32)
    for k in range(2000):
        total += x[:, k, None] * w[k]
    return total


def test_equal_bits() -> None:
    assert judged_leaf(DOT, DOT_INPUTS, executed(DOT, DOT_INPUTS)).verdict is Verdict.IDENTICAL


def test_a_few_ulps_need_no_ensemble() -> None:
    leaf = judged_leaf(DOT, DOT_INPUTS, executed(DOT, DOT_INPUTS) * F32(1 + 2.0**-23))
    assert leaf.verdict is Verdict.AGREE
    assert leaf.evidence is None


def test_another_order_of_summation_is_rounding() -> None:
    leaf = judged_leaf(DOT, DOT_INPUTS, _sequential_dot())
    assert leaf.verdict is Verdict.ROUNDING
    assert leaf.evidence is not None
    assert 0 < leaf.evidence.ratio < 1
    assert leaf.evidence.members == 5
    assert "2000 terms, in dot %d (line 4)" in leaf.reason


def test_a_lost_term_is_wrong() -> None:
    x, w = DOT_INPUTS
    leaf = judged_leaf(DOT, DOT_INPUTS, x[:, 1:] @ w[1:])
    assert leaf.verdict is Verdict.WRONG
    assert leaf.evidence is not None
    assert leaf.evidence.ratio > 1000


def test_one_element_of_a_thousandth() -> None:
    actual = _sequential_dot()
    actual[3, 4] *= F32(1.001)
    leaf = judged_leaf(DOT, DOT_INPUTS, actual)
    assert leaf.verdict is Verdict.WRONG
    assert leaf.evidence is not None
    assert (leaf.evidence.pattern, leaf.evidence.beyond) == ("one element", 1)
    assert "worst element, [3,4]" in leaf.reason


def test_verdicts_are_reproducible() -> None:
    actual = _sequential_dot()
    assert judged_leaf(DOT, DOT_INPUTS, actual, seed=3) == judged_leaf(DOT, DOT_INPUTS, actual, seed=3)
    one, other = (judged_leaf(DOT, DOT_INPUTS, actual, seed=seed).evidence for seed in (3, 4))
    assert one is not None
    assert other is not None
    assert one.ratio != other.ratio


def test_plain_tolerances_say_so() -> None:
    leaf = judged_leaf(DOT, DOT_INPUTS, _sequential_dot(), tolerance=ChosenTolerance(rtol=1e-12))
    assert leaf.verdict is Verdict.WRONG
    assert leaf.evidence is None
    assert "set by the user" in leaf.reason
    generous = ChosenTolerance(0.1, 0.1)
    assert judged_leaf(DOT, DOT_INPUTS, _sequential_dot(), tolerance=generous).verdict is Verdict.AGREE


def test_chaos_is_unstable_and_names_the_amplifier() -> None:
    x = F32([0.3, 0.4, 0.55, 0.7])
    other = x.copy()
    for _ in range(200):
        other = F32(3.9) * (other - other * other)
    leaf = judged_leaf(CHAOS, [x], other)
    assert leaf.verdict is Verdict.UNSTABLE
    assert leaf.evidence is not None
    assert leaf.evidence.instruction is not None
    assert leaf.evidence.instruction.instruction in ("d", "p", "y")
    assert leaf.evidence.width > 0.1


AMPLIFIED = """ENTRY e {
  x = f32[300] parameter(0)
  c = f32[] constant(300000)
  cs = f32[300] broadcast(c), dimensions={}
  p = f32[300] multiply(x, cs)
  ROOT s = f32[300] sine(p)
}"""
#: The same product in two steps.
IN_TWO_STEPS = AMPLIFIED.replace(
    "p = f32[300] multiply(x, cs)",
    "a = f32[] constant(3000) as = f32[300] broadcast(a), dimensions={} q = f32[300] multiply(x, as) "
    "b = f32[] constant(100) bs = f32[300] broadcast(b), dimensions={} p = f32[300] multiply(q, bs)",
)


def test_what_is_amplified_is_settled_in_f64() -> None:
    """A sine of a hundred thousand radians has two digits in f32, and enough in f64."""
    x = np.random.default_rng(3).uniform(0.5, 1, 300).astype(F32)
    leaf = pair_leaf(AMPLIFIED, IN_TWO_STEPS, [x])
    assert leaf.verdict is Verdict.ROUNDING
    assert "in double precision" in leaf.reason
    assert leaf.evidence is not None
    assert leaf.evidence.width > 8 * np.sqrt(np.finfo(F32).eps)
    assert pair_leaf(AMPLIFIED, IN_TWO_STEPS.replace("constant(100)", "constant(100.001)"), [x]).verdict is (
        Verdict.WRONG
    )


def test_what_rounds_to_less_is_not_settled_in_f64() -> None:
    """The factor in bf16 is the same number in f64, where nothing is rounded, and no longer that in bf16."""
    x = np.random.default_rng(3).uniform(0.5, 1, 300).astype(F32)
    coarse = AMPLIFIED.replace(
        "p = f32[300] multiply(x, cs)",
        "n = bf16[300] convert(x) w = f32[300] convert(n) p = f32[300] multiply(w, cs)",
    )
    assert pair_leaf(AMPLIFIED, coarse, [x]).verdict in (Verdict.UNSTABLE, Verdict.WRONG)


FLOOR = """ENTRY e {
  x = f32[2000] parameter(0)
  c = f32[] constant(41)
  cs = f32[2000] broadcast(c), dimensions={}
  q = f32[2000] divide(x, cs)
  ROOT f = f32[2000] floor(q)
}"""
RECIPROCAL = FLOOR.replace("divide", "multiply").replace("constant(41)", "constant(0.0243902430)")


def test_a_floor_that_a_reciprocal_flips_accuses_nobody() -> None:
    x = np.arange(2000, dtype=F32) * 41
    leaf = pair_leaf(FLOOR, RECIPROCAL, [x])
    assert leaf.metrics is not None
    assert leaf.metrics.worst_absolute is not None
    assert leaf.metrics.worst_absolute.absolute == 1
    assert leaf.verdict in (Verdict.ROUNDING, Verdict.UNSTABLE)


def test_a_wrong_constant_is_found_between_two_programs() -> None:
    leaf = pair_leaf(FLOOR, RECIPROCAL.replace("0.0243902430", "0.0244"), [np.arange(2000, dtype=F32) * 40.7])
    assert leaf.verdict is Verdict.WRONG
    assert leaf.evidence is not None
    assert leaf.evidence.wide == "outside"


ARGMAX = """
larger {
  a = f32[] parameter(0)
  i = s32[] parameter(1)
  b = f32[] parameter(2)
  j = s32[] parameter(3)
  g = pred[] compare(a, b), direction=GT
  v = f32[] select(g, a, b)
  k = s32[] select(g, i, j)
  ROOT t = (f32[], s32[]) tuple(v, k)
}
ENTRY e {
  x = f32[64,50] parameter(0)
  w = f32[50,2] parameter(1)
  d = f32[64,2] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  n = s32[64,2] iota(), iota_dimension=1
  low = f32[] constant(-inf)
  z = s32[] constant(0)
  r = (f32[64], s32[64]) reduce(d, n, low, z), dimensions={1}, to_apply=larger
  ROOT k = s32[64] get-tuple-element(r), index=1
}"""


def test_an_argmax_of_a_tie_flips() -> None:
    """Two columns that differ by an ulp in one place."""
    w = np.repeat(_normal(50, 1, seed=2), 2, axis=1)
    w[0, 1] = np.nextafter(w[0, 1], F32(9))
    arguments = [_normal(64, 50), w]
    expected = executed(ARGMAX, arguments)
    actual = expected.copy()
    actual[::9] = 1 - actual[::9]
    assert judged_leaf(ARGMAX, arguments, actual).verdict in (Verdict.ROUNDING, Verdict.UNSTABLE)


def test_an_argmax_that_is_no_tie_must_be_right() -> None:
    arguments = [_normal(64, 50), _normal(50, 2, seed=2)]
    actual = executed(ARGMAX, arguments)
    actual[7] = 1 - actual[7]
    leaf = judged_leaf(ARGMAX, arguments, actual)
    assert leaf.verdict is Verdict.WRONG
    assert leaf.evidence is not None
    assert leaf.evidence.beyond == 1


def test_integers_without_floats_must_be_equal() -> None:
    text = "ENTRY e { x = s32[4] parameter(0) ROOT y = s32[4] add(x, x) }"
    x = np.int32([1, 2, 3, 4])
    leaf = judged_leaf(text, [x], np.int32([2, 4, 6, 9]))
    assert leaf.verdict is Verdict.WRONG
    assert leaf.evidence is not None
    assert leaf.evidence.members == 0


def test_nan_where_there_should_be_none_is_wrong() -> None:
    leaf = judged_leaf(DOT, DOT_INPUTS, np.where(np.arange(24) == 3, np.nan, _sequential_dot()).astype(F32))
    assert leaf.verdict is Verdict.WRONG
    assert leaf.evidence is not None
    assert leaf.evidence.pattern == "NaN"


def test_a_pole_is_no_overflow() -> None:
    """log(0) is infinite in every type."""
    text = "ENTRY e { x = f32[4] parameter(0) ROOT z = f32[4] log(x) }"
    doubled = text.replace("log(x)", "log(y)").replace("ROOT", "y = f32[4] add(x, x) ROOT")
    leaf = pair_leaf(text, doubled, [F32([0, 1, 2, 3])])
    assert leaf.verdict is Verdict.WRONG
    leaf = pair_leaf(text, text.replace("log", "exponential"), [F32([0, 1, 2, 3])])
    assert leaf.verdict is Verdict.WRONG


NET = """ENTRY e {
  x = bf16[48,64] parameter(0)
  w = bf16[64,256] parameter(1)
  v = bf16[256,64] parameter(2)
  h = bf16[48,256] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = bf16[48,256] tanh(h)
  y = bf16[48,64] dot(t, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT s = bf16[48,64] add(x, y)
}"""
LOST = NET.replace(
    "y = bf16[48,64] dot(t, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    """a = bf16[48,255] slice(t), slice={[0:48],[1:256]}
  b = bf16[255,64] slice(v), slice={[1:256],[0:64]}
  y = bf16[48,64] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}""",
)
KEPT = NET.replace("bf16", "f32").replace("t = f32", "t = f32")


def _bf16(array: Array) -> Array:
    return array.astype(ml_dtypes.bfloat16)


NET_INPUTS = [_bf16(_normal(48, 64)), _bf16(_normal(64, 256) / 8), _bf16(_normal(256, 64, seed=3) / 16)]


def test_a_lost_channel_hides_in_bf16_but_not_in_f64() -> None:
    leaf = pair_leaf(NET, LOST, NET_INPUTS)
    assert leaf.verdict is Verdict.WRONG
    assert leaf.evidence is not None
    assert leaf.evidence.wide == "outside"


def test_a_lost_channel_that_bf16_hides_altogether() -> None:
    x, w, v = NET_INPUTS
    v = v.copy()
    v[0] *= ml_dtypes.bfloat16(1 / 64)
    leaf = pair_leaf(NET, LOST, [x, w, v])
    assert leaf.verdict is Verdict.WRONG
    assert "in the declared types rounding hides it" in leaf.reason
    assert judged_leaf(NET, [x, w, v], executed(LOST, [x, w, v])).verdict in (Verdict.AGREE, Verdict.ROUNDING)


def test_f32_between_bf16_operations_is_rounding() -> None:
    wide = [a.astype(F32) for a in NET_INPUTS]
    actual = _bf16(executed(KEPT, wide))
    assert judged_leaf(NET, NET_INPUTS, actual).verdict in (Verdict.AGREE, Verdict.ROUNDING)


PRODUCT_IN_BF16 = """ENTRY e {
  x = f32[32,2000] parameter(0)
  w = f32[2000,24] parameter(1)
  a = bf16[32,2000] convert(x)
  b = bf16[2000,24] convert(w)
  ROOT d = f32[32,24] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}"""


def test_a_loss_of_precision_is_wrong_although_both_programs_mean_the_same() -> None:
    leaf = pair_leaf(DOT, PRODUCT_IN_BF16, DOT_INPUTS)
    assert leaf.verdict is Verdict.WRONG
    assert leaf.evidence is not None
    assert leaf.evidence.wide == "equal"


def test_random_numbers_are_not_compared() -> None:
    text = """ENTRY e {
      a = f32[] constant(0)
      b = f32[] constant(1)
      ROOT r = f32[9] rng(a, b), distribution=rng_uniform
    }"""
    assert judged_leaf(text, [], np.zeros(9, F32)).verdict is Verdict.NOT_COMPARABLE


def test_shapes_that_differ() -> None:
    assert judged(DOT, DOT_INPUTS, np.zeros((32, 23), F32)).verdict is Verdict.STRUCTURAL


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_the_size_of_the_values_does_not_matter(scale: float) -> None:
    x, w = DOT_INPUTS[0] * F32(scale), DOT_INPUTS[1]
    actual = _sequential_dot() * F32(scale)
    assert judged_leaf(DOT, [x, w], actual).verdict is Verdict.ROUNDING
    actual[5] *= F32(1.01)
    assert judged_leaf(DOT, [x, w], actual).verdict is Verdict.WRONG


def test_without_time_for_an_ensemble_a_bound_decides() -> None:
    judgement = judgement_of(parse_module(DOT), DOT_INPUTS, _sequential_dot())
    comparison = judge(replace(judgement, deadline=0.0))
    assert comparison.verdict is Verdict.AGREE
    assert "no correct runs to compare with" in comparison.reason
    assert "time limit" in comparison.reason


def test_without_time_for_an_ensemble_a_bound_accuses_of_nothing_that_is_near() -> None:
    """It is no proof; what is thousands of times as far off needs none."""
    for factor, verdict in ((1.0005, Verdict.UNSTABLE), (1000, Verdict.WRONG)):
        actual = _sequential_dot()
        actual[5] *= F32(factor)
        module = parse_module(DOT)
        assert judge(judgement_of(module, DOT_INPUTS, actual)).verdict is Verdict.WRONG
        late = judge(replace(judgement_of(module, DOT_INPUTS, actual), deadline=0.0))
        assert late.verdict is verdict, factor
        assert "no correct runs to compare with" in late.reason


def test_what_is_too_much_work_is_left_to_a_bound() -> None:
    judgement = judgement_of(parse_module(DOT), DOT_INPUTS, _sequential_dot())
    comparison = judge(replace(judgement, work=1))
    assert comparison.verdict is Verdict.AGREE
    assert "no correct runs to compare with" in comparison.reason
    assert "too much for the budget" in comparison.reason


def test_an_algorithm_that_rounds_its_operands_is_legal() -> None:
    x, w = (a.astype(ml_dtypes.bfloat16).astype(F32) for a in DOT_INPUTS)
    assert judged_leaf(DOT, DOT_INPUTS, x @ w).verdict is Verdict.WRONG
    asked = DOT.replace("rhs_contracting_dims={0}", "rhs_contracting_dims={0}, algorithm=dot_bf16_bf16_f32")
    assert judged_leaf(asked, DOT_INPUTS, x @ w).verdict is Verdict.ROUNDING


def test_an_infinite_input_is_no_overflow() -> None:
    text = "ENTRY e { x = f32[4] parameter(0) ROOT y = f32[4] add(x, x) }"
    leaf = judged_leaf(text, [F32([1, np.inf, 2, 3])], F32([2, 6e4, 4, 6]))
    assert leaf.verdict is Verdict.WRONG
    clamped = text.replace(
        "ROOT y", "l = f32[] constant(6e4) m = f32[4] broadcast(l), dimensions={} z"
    ).replace("add(x, x)", "add(x, x) ROOT y = f32[4] minimum(z, m)")
    leaf = pair_leaf(text, clamped, [F32([1, np.inf, 2, 3])])
    assert leaf.verdict is Verdict.WRONG


def test_an_overflow_that_only_the_tested_program_has_in_f64_is_wrong() -> None:
    text = "ENTRY e { x = f32[4] parameter(0) y = f32[4] negate(x) ROOT z = f32[4] exponential(y) }"
    leaf = pair_leaf(text, text.replace("exponential(y)", "exponential(x)"), [F32([1, 2, 1000, 3])])
    assert leaf.verdict is Verdict.WRONG


VARIANCE = """
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY e {
  x = f32[16,64] parameter(0)
  z = f32[] constant(0)
  q = f32[16,64] multiply(x, x)
  r = f32[16] reduce(q, z), dimensions={1}, to_apply=sum
  n = f32[] constant(0.015625)
  ns = f32[16] broadcast(n), dimensions={}
  m = f32[16] multiply(r, ns)
  i = f32[16] rsqrt(m)
  b = f32[16,64] broadcast(i), dimensions={0}
  ROOT y = f32[16,64] multiply(x, b)
}"""


def test_a_tested_program_that_explodes_is_no_excuse() -> None:
    """The squares minus themselves, computed otherwise: noise, whose spread spans everything."""
    nothing = """w = f32[16,64] exponential(x)
  l = f32[16,64] log(w)
  t = f32[16,64] multiply(l, x)
  p = f32[16,64] multiply(x, x)
  q = f32[16,64] subtract(p, t)"""
    noise = VARIANCE.replace("q = f32[16,64] multiply(x, x)", nothing)
    assert pair_leaf(VARIANCE, noise, [_normal(16, 64)]).verdict is Verdict.WRONG


def test_a_nan_of_what_executes_the_program_is_wrong() -> None:
    """Both programs are right, and the tested one was executed wrongly."""
    swapped = DOT.replace("dot(x, w)", "dot(y, w)").replace("ROOT", "y = f32[32,2000] copy(x) ROOT")
    actual = executed(swapped, DOT_INPUTS).copy()
    actual[4, 4] = np.nan
    leaf = judged_leaf(DOT, DOT_INPUTS, actual, tested=parse_module(swapped))
    assert leaf.verdict is Verdict.WRONG


def test_results_of_another_structure() -> None:
    text = "ENTRY e { x = f32[2] parameter(0) ROOT t = (f32[2], f32[2]) tuple(x, x) }"
    x = F32([1, 2])
    comparison = judged(text, [x], (x,))
    assert [leaf.verdict for leaf in comparison.leaves] == [Verdict.IDENTICAL, Verdict.STRUCTURAL]


LAYER = """ENTRY e {
  x = f32[16,64] parameter(0)
  w = f32[64,32] parameter(1)
  c = f32[32] parameter(2)
  d = f32[16,32] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b = f32[16,32] broadcast(c), dimensions={1}
  s = f32[16,32] add(d, b)
  ROOT y = f32[16,32] tanh(s)
}"""
LAYER_INPUTS = [_normal(16, 64) / 8, _normal(64, 32, seed=1), _normal(32, seed=2)]


def _pattern(text: str, actual: Any) -> tuple[str, str]:
    evidence = judged_leaf(text, LAYER_INPUTS, actual).evidence
    assert evidence is not None
    return evidence.pattern, evidence.detail


def test_a_stale_buffer_holds_another_value_of_the_program() -> None:
    stale = executed(LAYER.replace("ROOT y", "y").replace("s = f32", "ROOT s = f32"), LAYER_INPUTS)
    assert _pattern(LAYER, stale) == ("stale value", "the wrong elements hold the value of add %s (line 7)")
    half = executed(LAYER, LAYER_INPUTS).copy()
    half[8:] = stale[8:]
    assert _pattern(LAYER, half)[0] == "stale value"


def test_a_missing_addend_is_named() -> None:
    linear = LAYER.replace("tanh(s)", "negate(s)").replace("add(d, b)", "add(d, q)")
    linear = linear.replace("s = f32", "q = f32[16,32] multiply(d, d) s = f32")
    x, w, _ = LAYER_INPUTS
    kind, detail = _pattern(linear, -(x @ w))
    assert kind == "missing addend"
    assert "%q" in detail or "%s" in detail or "vector" in detail


def test_hardware_that_multiplies_in_less_than_f32_unless_asked() -> None:
    x, w = (a.astype(ml_dtypes.bfloat16).astype(F32) for a in DOT_INPUTS)

    def verdict(text: str, unit: float) -> Verdict:
        judgement = judgement_of(parse_module(text), DOT_INPUTS, x @ w)
        return judge(replace(judgement, freedoms=Freedoms(product=ProductFreedom(unit)))).verdict

    precision = "rhs_contracting_dims={0}, operand_precision={highest,highest}"
    asked = DOT.replace("rhs_contracting_dims={0}", precision)
    assert verdict(DOT, 0.0) is Verdict.WRONG
    assert verdict(DOT, 2.0**-7) is Verdict.ROUNDING
    assert verdict(asked, 2.0**-7) is Verdict.WRONG


def _ulppair_leaf(before: str, after: str) -> LeafComparison:
    return pair_leaf(before, after, [_bf16(_normal(48, 64))])


SCALED = """ENTRY e {
  x = bf16[48,64] parameter(0)
  c = bf16[] constant(0.703125)
  cs = bf16[48,64] broadcast(c), dimensions={}
  m = bf16[48,64] multiply(x, cs)
  t = bf16[48,64] tanh(m)
  ROOT s = bf16[48,64] add(x, t)
}"""


def test_a_narrow_constant_that_is_an_ulp_off_is_wrong() -> None:
    """The declared types hide it: the programs differ in f64, and nothing was folded or merged."""
    leaf = _ulppair_leaf(SCALED, SCALED.replace("0.703125", "0.70703125"))
    assert leaf.verdict is Verdict.WRONG
    assert leaf.evidence is not None
    assert leaf.evidence.wide == "outside"


def test_a_narrow_constant_that_a_compiler_rounded_is_not() -> None:
    """0.7 converted when the program runs, and 0.703125 in its place: rounded by half an ulp."""
    converted = SCALED.replace(
        "c = bf16[] constant(0.703125)", "f = f32[] constant(0.7) c = bf16[] convert(f)"
    )
    assert _ulppair_leaf(converted, SCALED).verdict in (Verdict.IDENTICAL, Verdict.AGREE, Verdict.ROUNDING)


def test_a_broadcast_along_the_wrong_dimension_of_what_constants_make() -> None:
    """Factors between 1 and 1.08: bf16 hides most of the difference."""
    table = """i = bf16[64] iota(), iota_dimension=0
  k = bf16[] constant(0.0013)
  ks = bf16[64] broadcast(k), dimensions={}
  f = bf16[64] multiply(i, ks)
  o = bf16[] constant(1)
  os = bf16[64] broadcast(o), dimensions={}
  b = bf16[64] add(f, os)
  cs = bf16[48,64] broadcast(b), dimensions={1}"""
    before = SCALED.replace("c = bf16[] constant(0.703125)", "").replace(
        "cs = bf16[48,64] broadcast(c), dimensions={}", table
    )
    before = before.replace("48", "64")
    after = before.replace("dimensions={1}", "dimensions={0}")
    assert pair_leaf(before, after, [_bf16(_normal(64, 64))]).verdict is Verdict.WRONG
