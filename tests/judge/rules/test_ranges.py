"""What is finite on one side only, because a value before it is too large for its type there."""

from __future__ import annotations

import numpy as np
from support.judging import judged_leaf, pair_leaf

from hlotool.judge.verdicts import AGREEING, Verdict

F32 = np.float32

LOG_EXP = """ENTRY e {
  x = f32[4] parameter(0)
  y = f32[4] exponential(x)
  ROOT z = f32[4] log(y)
}"""
NOTHING = "ENTRY e { x = f32[4] parameter(0) ROOT y = f32[4] copy(x) }"


def test_an_overflow_that_a_rewrite_avoids_is_range() -> None:
    leaf = pair_leaf(LOG_EXP, NOTHING, [F32([1, 2, 100, 3])])
    assert leaf.verdict is Verdict.RANGE
    assert leaf.evidence is not None
    assert leaf.evidence.instruction is not None
    assert leaf.evidence.instruction.instruction == "y"
    assert judged_leaf(LOG_EXP, [F32([1, 2, 100, 3])], F32([1, 2, 100, 3])).verdict is Verdict.RANGE


def test_an_overflow_is_avoided_at_the_edge_of_the_range() -> None:
    """The largest numbers, twice or 0.4 times themselves: one rounding more makes them infinite."""
    text = """add {{ a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }}
ENTRY e {{
  x = f32[5,3] parameter(0)
  w = f32[3] parameter(1)
  d = f32[5] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  {}
  z = f32[] constant(0)
  ROOT r = f32[] reduce(p, z), dimensions={{0}}, to_apply=add
}}"""
    twice = """two = f32[] constant(2)
  twos = f32[5] broadcast(two), dimensions={}
  m = f32[5] multiply(d, twos)
  c = f32[] constant(0.2)
  cs = f32[5] broadcast(c), dimensions={}
  p = f32[5] multiply(m, cs)"""
    folded = """c = f32[] constant(0.4)
  cs = f32[5] broadcast(c), dimensions={}
  p = f32[5] multiply(d, cs)"""
    most = float(np.finfo(F32).max)
    x = F32([[1, most, 0], [-most, 0, 1], [most, 0, -most], [0, 1, most], [0, -most, 0]])
    w = F32([0.84720844, -0.54834133, 0.08362368])
    assert pair_leaf(text.format(twice), text.format(folded), [x, w]).verdict is Verdict.RANGE
    lost = text.format(folded.replace("multiply(d, cs)", "subtract(cs, cs)"))
    x[4] = 0  # what is left no longer cancels
    assert pair_leaf(text.format(twice), lost, [x, w]).verdict is Verdict.WRONG


def test_an_infinity_that_rounding_alone_makes_is_no_plain_agreement() -> None:
    """log2(exp2(128)): exp(128 ln 2) is the last finite f32 or infinity, by one ulp of the exponential."""
    text = """ENTRY e {
      x = f32[] parameter(0)
      c = f32[] constant(0.693147182)
      y = f32[] multiply(x, c)
      z = f32[] exponential(y)
      l = f32[] log(z)
      ROOT r = f32[] divide(l, c)
    }"""
    leaf = pair_leaf(text, "ENTRY e { ROOT x = f32[] parameter(0) }", [F32(128)])
    assert leaf.verdict is Verdict.RANGE
    assert leaf.reason.startswith("1 infinite on one side only")
    assert pair_leaf(text, "ENTRY e { ROOT x = f32[] parameter(0) }", [F32(127)]).verdict in AGREEING


def test_an_overflow_in_every_type_that_a_rewrite_avoids_is_range() -> None:
    """exp(x) / exp(x) is infinity over infinity, in f64, too; exp(x - x) is 1."""
    text = LOG_EXP.replace("f32[4] log(y)", "f32[4] divide(y, y)")
    x = F32([1, 2, 1e4, 3])
    assert judged_leaf(text, [x], np.ones(4, F32)).verdict is Verdict.RANGE
    # Elsewhere it has to be right, and what is finite in the reference stays so.
    assert judged_leaf(text, [x], F32([1, 1, 1, 2])).verdict is Verdict.WRONG
    assert judged_leaf(text, [x], F32([1, 1, np.nan, np.nan])).verdict is Verdict.WRONG
