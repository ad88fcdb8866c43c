"""What a cancellation left, and what is made of it: judged at the size of the terms, and named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.judging import executed, judged, judged_leaf

from hlotool.ir.arrays import Array
from hlotool.judge.comparison import LeafComparison
from hlotool.judge.verdicts import Verdict
from hlotool.parser.reader import parse_module

F32 = np.float32

#: The gradient of a bias before a normalisation, its momentum, and how Adam moves the bias: of 8 features.
STEP = """add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
ENTRY e {
  g = f32[64,8] parameter(0)
  p = f32[8] parameter(1)
  zero = f32[] constant(0)
  total = f32[8] reduce(g, zero), dimensions={0}, to_apply=add
  count = f32[] constant(0.015625)
  counts = f32[8] broadcast(count), dimensions={}
  mean = f32[8] multiply(total, counts)
  means = f32[64,8] broadcast(mean), dimensions={1}
  centred = f32[64,8] subtract(g, means)
  bias = f32[8] reduce(centred, zero), dimensions={0}, to_apply=add,
    metadata={source_file="step.py" source_line=7}
  tenth = f32[] constant(0.1)
  tenths = f32[8] broadcast(tenth), dimensions={}
  momentum = f32[8] multiply(bias, tenths)
  square = f32[8] multiply(bias, bias)
  root = f32[8] sqrt(square)
  tiny = f32[] constant(1e-12)
  tinies = f32[8] broadcast(tiny), dimensions={}
  size = f32[8] add(root, tinies)
  direction = f32[8] divide(bias, size), metadata={source_file="step.py" source_line=9}
  rate = f32[] constant(0.01)
  rates = f32[8] broadcast(rate), dimensions={}
  move = f32[8] multiply(direction, rates)
  moved = f32[8] subtract(p, move)
  ROOT all = (f32[8], f32[8], f32[8]) tuple(momentum, square, moved)
}
"""


def _normal(*dims: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(dims).astype(F32)


ARGUMENTS = [_normal(64, 8), _normal(8, seed=1)]


def _step(g: Array, p: Array, bias: Array | None = None) -> tuple[Array, ...]:
    """The same in NumPy, with sums in another order, or with another gradient."""
    if bias is None:
        centred = g - (g[::-1].cumsum(0, dtype=F32)[-1] * F32(1 / 64))
        bias = centred[::-1].cumsum(0, dtype=F32)[-1]
    move = bias / (np.sqrt(bias * bias) + F32(1e-12)) * F32(0.01)
    return bias * F32(0.1), bias * bias, p - move


def _judged(actual: tuple[Array, ...], **options: Any) -> tuple[LeafComparison, ...]:
    return judged(STEP, ARGUMENTS, actual, **options).leaves


def test_what_a_cancellation_left_is_rounding() -> None:
    momentum, square, moved = _judged(_step(*ARGUMENTS))
    for leaf in (momentum, square):
        assert leaf.verdict is Verdict.ROUNDING
        assert "cancel to 0 (in f64) in reduce %bias (step.py:7)" in leaf.reason
        assert "8 of 8 elements" in leaf.reason
        assert leaf.evidence is not None
        assert leaf.evidence.cancelled == 8
        assert leaf.evidence.instruction is not None
        assert leaf.evidence.instruction.instruction == "bias"
    assert moved.verdict is Verdict.ROUNDING
    assert "and divide %direction (step.py:9) turns that into ±0.01" in moved.reason
    assert "nothing to judge in" in moved.reason


def test_the_same_of_two_texts() -> None:
    """One reason for a captured result and for a program; f64 is asked about what both mean."""
    other = STEP.replace("multiply(total, counts)", "divide(total, wholes)").replace(
        "  counts =",
        "  whole = f32[] constant(64)\n  wholes = f32[8] broadcast(whole), dimensions={}\n  counts =",
    )
    tested = parse_module(
        other.replace("subtract(g, means)", "add(g, minus)").replace(
            "  centred =", "  minus = f32[64,8] negate(means)\n  centred ="
        )
    )
    leaves = _judged(_step(*ARGUMENTS), tested=tested)
    assert [leaf.verdict for leaf in leaves] == [Verdict.ROUNDING] * 3
    assert all("cancellation: " in leaf.reason for leaf in leaves)


def test_no_gradient_at_all_is_the_exact_one() -> None:
    leaves = _judged(_step(*ARGUMENTS, bias=np.zeros(8, F32)))
    assert [leaf.verdict for leaf in leaves] == [Verdict.ROUNDING] * 3


@pytest.mark.parametrize("share", [1e-5, 1.0])
def test_a_gradient_beyond_the_rounding_of_its_terms_is_wrong(share: float) -> None:
    """A hundred-thousandth of the terms is what rounding never leaves."""
    bias = F32(share) * np.abs(ARGUMENTS[0]).sum(0)
    momentum, square, _ = _judged(_step(*ARGUMENTS, bias=bias))
    assert momentum.verdict is Verdict.WRONG
    assert square.verdict is Verdict.WRONG


def test_a_parameter_that_moves_too_far_is_wrong() -> None:
    g, p = ARGUMENTS
    leaves = _step(g, p)
    far = (*leaves[:2], p + 30 * (leaves[2] - p))
    assert _judged(far)[2].verdict is Verdict.WRONG


def test_a_factor_on_what_is_not_0_shows_in_f64() -> None:
    """Terms cancel to a millionth of them: no digit in f32, ten in f64."""
    before = """ENTRY e {
      a = f32[64] parameter(0)
      b = f32[64] parameter(1)
      c = f32[64] parameter(2)
      large = f32[64] multiply(a, b)
      other = f32[64] add(large, c)
      d = f32[64] subtract(other, large)
      two = f32[] constant(2)
      twos = f32[64] broadcast(two), dimensions={}
      ROOT r = f32[64] multiply(d, twos)
    }"""
    arguments = [_normal(64), _normal(64, seed=1), _normal(64, seed=2) * F32(1e-7)]
    healthy = before.replace("subtract(other, large)", "add(minus, other)").replace(
        "      d =", "      minus = f32[64] negate(large)\n      d ="
    )
    noise = arguments[0] * arguments[1] * _normal(64, seed=3) * F32(2.0**-24)
    moved = executed(before, arguments) + noise
    right = judged_leaf(before, arguments, moved, tested=parse_module(healthy))
    assert right.verdict is Verdict.ROUNDING
    assert "cancellation: terms of" in right.reason
    faulty = before.replace("constant(2)", "constant(2.01)")
    wrong = judged_leaf(before, arguments, executed(faulty, arguments), tested=parse_module(faulty))
    assert wrong.verdict is Verdict.WRONG


#: One third of a gradient is what a cancellation left: the keys' bias of a fused projection.
FUSED = STEP.replace(
    "ROOT all = (f32[8], f32[8], f32[8]) tuple(momentum, square, moved)",
    """
  more = f32[16] parameter(2)
  ROOT all = f32[24] concatenate(more, momentum), dimensions={0}""",
)


def test_a_part_of_an_output() -> None:
    arguments = [*ARGUMENTS, _normal(16, seed=4)]
    actual = np.concatenate([arguments[2], _step(*ARGUMENTS)[0]])
    leaf = judged_leaf(FUSED, arguments, actual)
    assert leaf.verdict is Verdict.ROUNDING
    assert "in reduce %bias (step.py:7)" in leaf.reason
    assert "in 8 of 24 elements" in leaf.reason
    actual[3] *= F32(1.0001)
    assert judged_leaf(FUSED, arguments, actual).verdict is Verdict.WRONG


def test_two_products_that_cancel() -> None:
    """a x + b x, contracted to fma, of opposite numbers: the reason names the cancellation, no long sum."""
    text = """ENTRY e {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      x = f32[] parameter(2)
      m = f32[] multiply(a, x)
      n = f32[] multiply(b, x)
      ROOT s = f32[] add(m, n), metadata={source_file="t.py" source_line=3}
    }"""
    leaf = judged_leaf(text, [F32(1e20), F32(-1e20), F32(1e10)], F32(4.993411e21))
    assert leaf.verdict is Verdict.ROUNDING
    assert "cancellation: terms of 2e+30 cancel to 0 (in f64) in add %s (t.py:3)" in leaf.reason


def test_step_by_step_amplification_is_unstable() -> None:
    """No sum of the logistic map cancels to nothing at once: what it makes of rounding stays unexplained."""
    text = """body {
      state = (s32[], f32[64]) parameter(0)
      n = s32[] get-tuple-element(state), index=0
      x = f32[64] get-tuple-element(state), index=1
      one = s32[] constant(1)
      next = s32[] add(n, one)
      unit = f32[] constant(1)
      units = f32[64] broadcast(unit), dimensions={}
      rest = f32[64] subtract(units, x), metadata={source_file="map.py" source_line=4}
      rate = f32[] constant(3.9)
      rates = f32[64] broadcast(rate), dimensions={}
      scaled = f32[64] multiply(x, rates)
      y = f32[64] multiply(scaled, rest), metadata={source_file="map.py" source_line=4}
      ROOT both = (s32[], f32[64]) tuple(next, y)
    }
    condition {
      state = (s32[], f32[64]) parameter(0)
      n = s32[] get-tuple-element(state), index=0
      limit = s32[] constant(100)
      ROOT goes = pred[] compare(n, limit), direction=LT
    }
    ENTRY e {
      x = f32[64] parameter(0)
      zero = s32[] constant(0)
      start = (s32[], f32[64]) tuple(zero, x)
      loop = (s32[], f32[64]) while(start), condition=condition, body=body
      y = f32[64] get-tuple-element(loop), index=1
      two = f32[64] add(x, x)
      ROOT all = (f32[64], f32[64]) tuple(two, y)
    }"""
    x = np.linspace(0.1, 0.4, 64, dtype=F32)
    two = executed(text, [x])[0]
    found = judged(text, [x], (two, executed(text, [np.nextafter(x, F32(1))])[1]))
    assert found.verdict is Verdict.UNSTABLE
    assert found.reason.startswith(
        "1 of 2 outputs agree; output {1}: too sensitive to judge: rounding alone moves "
    )
    assert "map.py:4" in found.reason, found.reason
    assert "`hlotool prove` may decide it" in found.reason
    assert np.array_equal(two, 2 * x)
