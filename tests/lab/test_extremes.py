"""What is NaN or infinite on one side only is no question where numbers overflow on the way."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hlotool.judge.verdicts import Verdict
from hlotool.lab.fuzz.extremes import overflow_decides
from hlotool.parser.reader import parse_module

QUOTIENT = """ENTRY e {
  x = f32[2] parameter(0)
  y = f32[2] exponential(x)
  ROOT r = f32[2] divide(y, y)
}"""
LARGEST = """larger { a = f32[] parameter(0) b = f32[] parameter(1) ROOT m = f32[] maximum(a, b) }
ENTRY e {
  x = f32[2] parameter(0)
  low = f32[] constant(-inf)
  ROOT r = f32[] reduce(x, low), dimensions={0}, to_apply=larger
}"""
LOOP = """again { t = (f32[2], s32[]) parameter(0) i = s32[] get-tuple-element(t), index=1
  n = s32[] constant(3) ROOT c = pred[] compare(i, n), direction=LT }
body { t = (f32[2], s32[]) parameter(0) x = f32[2] get-tuple-element(t), index=0
  i = s32[] get-tuple-element(t), index=1 one = s32[] constant(1) j = s32[] add(i, one)
  y = f32[2] multiply(x, x) ROOT r = (f32[2], s32[]) tuple(y, j) }
ENTRY e {
  x = f32[2] parameter(0)
  zero = s32[] constant(0)
  t = (f32[2], s32[]) tuple(x, zero)
  w = (f32[2], s32[]) while(t), condition=again, body=body
  y = f32[2] get-tuple-element(w), index=0
  ROOT r = f32[2] tanh(y)
}"""


def row(*leaves: tuple[Verdict, int, int]) -> Any:
    """A comparison, as far as it is looked at."""
    names = ("verdict", "nan_mismatches", "inf_mismatches")
    return SimpleNamespace(leaves=[SimpleNamespace(**dict(zip(names, leaf))) for leaf in leaves])


NAN = row((Verdict.WRONG, 1, 0), (Verdict.AGREE, 0, 0))


@pytest.mark.parametrize(
    ("text", "x", "decides"),
    [
        (QUOTIENT, [1, 100], True),  # the exponential is infinite
        (QUOTIENT, [1, 50], True),  # 5e21, whose square is
        (QUOTIENT, [1, 40], False),
        (LARGEST, [1, 2], False),  # -inf is named by the program
        (LARGEST, [1, np.inf], True),
        (LOOP, [1, 1e4], True),  # in the body, where the end is finite again
        (LOOP, [1, 2], False),
    ],
)
def test_it_decides_where_a_number_is_too_large(text: str, x: list[float], decides: bool) -> None:
    assert overflow_decides(NAN, parse_module(text), [np.array(x, np.float32)]) is decides


def test_finite_numbers_that_differ_are_a_question_all_the_same() -> None:
    large = [np.array([1, 100], np.float32)]
    module = parse_module(QUOTIENT)
    assert overflow_decides(row((Verdict.WRONG, 0, 2)), module, large)
    assert not overflow_decides(row((Verdict.WRONG, 0, 0)), module, large)
    assert not overflow_decides(row((Verdict.WRONG, 1, 0), (Verdict.WRONG, 0, 0)), module, large)
    assert not overflow_decides(row((Verdict.AGREE, 0, 0)), module, large)
