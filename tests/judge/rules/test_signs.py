"""Signs of zeros and of NaN that another legal execution leaves otherwise, and those that none does."""

from __future__ import annotations

import numpy as np
import pytest
from support.judging import executed, judged_leaf

from hlotool.judge.verdicts import Verdict

F32 = np.float32

OF_ONE_TERM = {
    "dot": """ENTRY e {
  x = f32[6,1] parameter(0)
  y = f32[1] parameter(1)
  d = f32[6] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT a = f32[6] atan2(d, d)
}""",
    "reduce": """add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
ENTRY e {
  x = f32[6,1] parameter(0)
  y = f32[1] parameter(1)
  ys = f32[6,1] broadcast(y), dimensions={1}
  p = f32[6,1] multiply(x, ys)
  zero = f32[] constant(0)
  d = f32[6] reduce(p, zero), dimensions={1}, to_apply=add
  ROOT a = f32[6] atan2(d, d)
}""",
    "add": """ENTRY e {
  x = f32[6,1] parameter(0)
  y = f32[1] parameter(1)
  ys = f32[6,1] broadcast(y), dimensions={1}
  p = f32[6,1] multiply(x, ys)
  zero = f32[] constant(0)
  zeros = f32[6,1] broadcast(zero), dimensions={}
  s = f32[6,1] add(p, zeros)
  d = f32[6] reshape(s)
  ROOT a = f32[6] atan2(d, d)
}""",
}


@pytest.mark.parametrize("text", OF_ONE_TERM.values(), ids=OF_ONE_TERM)
def test_a_zero_need_not_be_added_to_a_zero(text: str) -> None:
    """-0 + 0 is 0, but no compiler has to add that 0: the angle of (-0, -0) is -π."""
    x, zero = np.array([[-3], [-1], [2], [-2], [1], [5]], F32), np.zeros(1, F32)
    expected = executed(text, [x, zero])
    kept = np.where(x[:, 0] < 0, F32(-np.pi), F32(0))
    assert not expected.any()
    assert judged_leaf(text, [x, zero], kept).verdict is not Verdict.WRONG
    # What no sign of a zero makes of it is as wrong as ever, and so are signs where nothing is zero.
    assert judged_leaf(text, [x, zero], kept + F32(1)).verdict is Verdict.WRONG
    assert judged_leaf(text, [x, zero + 1], kept).verdict is Verdict.WRONG


def test_zeros_of_longer_sums_have_one_sign() -> None:
    """Their code begins with 0, and adds all terms to that."""
    text = OF_ONE_TERM["dot"].replace("[6,1]", "[6,2]").replace("[1]", "[2]")
    x, zeros = -np.ones((6, 2), F32), np.zeros(2, F32)
    assert judged_leaf(text, [x, zeros], np.full(6, -np.pi, F32)).verdict is Verdict.WRONG


SORTED_ROOTS = """before {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=LT, type=TOTALORDER
}
ENTRY e {
  x = f32[4] parameter(0)
  r = f32[4] sqrt(x)
  ROOT s = f32[4] sort(r), dimensions={0}, is_stable=true, to_apply=before
}"""


def test_a_nan_that_an_operation_makes_has_no_sign_to_speak_of() -> None:
    """In a total order it comes before all numbers, or behind them."""
    x = np.array([9, -1, 4, 1], F32)
    first, last = np.array([np.nan, 1, 2, 3], F32), np.array([1, 2, 3, np.nan], F32)
    for actual in (first, last):
        assert judged_leaf(SORTED_ROOTS, [x], actual).verdict is not Verdict.WRONG
    middle = np.array([1, 2, np.nan, 3], F32)
    assert judged_leaf(SORTED_ROOTS, [x], middle).verdict is Verdict.WRONG
    given = SORTED_ROOTS.replace("sqrt(x)", "copy(x)")
    # A NaN of the arguments has the sign that it has.
    y = np.array([9, -np.nan, 4, 1], F32)
    expected = executed(given, [y])
    assert judged_leaf(given, [y], np.roll(expected, 1)).verdict is Verdict.WRONG
