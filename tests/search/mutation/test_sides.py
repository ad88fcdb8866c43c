"""What is known of a number on one side of a mask is not known on the other one, nor on both."""

from __future__ import annotations

import pytest
from support.proof_cases import check_case

_START = """HloModule sides
ENTRY e {
  x = s32[4] parameter(0)
  b = s32[4] parameter(1)
  five = s32[4] constant({5, 5, 5, 5})
  one = s32[4] constant({1, 1, 1, 1})
  four = s32[4] constant({4, 4, 4, 4})
  always = pred[4] constant({1, 1, 1, 1})
  never = pred[4] constant({0, 0, 0, 0})
  p = pred[4] compare(x, five), direction=LT
"""


def program(body: str) -> str:
    return _START + body + "\n}"


@pytest.mark.parametrize(
    "body",
    [
        # x - 5 is negative on the one side only, whichever is looked at last.
        """s = s32[4] select(p, b, x) z = s32[4] add(s, one) y = s32[4] add(x, one) w = s32[4] select(p, y, z)
        v = s32[4] subtract(w, one) ROOT r = pred[4] compare(v, five), direction=GE""",
        """s = s32[4] select(p, x, b) z = s32[4] add(s, one) y = s32[4] add(x, one) w = s32[4] select(p, z, y)
        v = s32[4] subtract(w, one) ROOT r = pred[4] compare(v, five), direction=GE""",
        """s = s32[4] select(p, b, x) z = s32[4] add(s, one) t = s32[4] select(p, x, b) y = s32[4] add(t, one)
        w = s32[4] select(p, y, z) v = s32[4] subtract(w, one)
        ROOT r = pred[4] compare(v, five), direction=GE""",
    ],
)
def test_a_number_that_is_both_sides_of_a_choice(body: str) -> None:
    check_case(program(body), program("ROOT r = pred[4] copy(always)"), False)
    check_case(program(body), program("ROOT r = pred[4] compare(x, five), direction=GE"), True)


def test_a_predicate_on_one_side() -> None:
    """Where x is less than 5, it is not greater than 4; where it is not, it is."""
    text = (
        "s = s32[4] select(p, x, b) below = pred[4] compare(s, four), direction=LT "
        "above = pred[4] compare(x, four), direction=GT ROOT r = pred[4] select(p, below, {other})"
    )
    check_case(program(text.format(other="above")), program(text.format(other="never")), False)
    check_case(program(text.format(other="never")), program(
        "l = pred[4] compare(x, four), direction=LT ROOT r = pred[4] and(p, l)"
    ), True)  # fmt: skip


def test_a_choice_within_a_choice() -> None:
    """Where the outer mask does not hold, nothing of what is known beneath it rules a case out."""
    text = (
        "s = s32[4] select(p, x, b) m = pred[4] compare(s, four), direction={direction} "
        "inner = s32[4] select(m, b, x) ROOT r = s32[4] select(p, inner, b)"
    )
    one, other = (program(text.format(direction=direction)) for direction in ("EQ", "GE"))
    check_case(one, other, True)
    check_case(one, program(text.format(direction="LE")), False)


@pytest.mark.parametrize(("parameter", "equal"), [(0, True), (1, False)])
def test_branches_that_return_one_number(parameter: int, equal: bool) -> None:
    """Where the branch is taken, the number is less than 5; where the other one is, it is not."""
    text = """HloModule branches
low {{ t = (s32[], s32[]) parameter(0) x = s32[] get-tuple-element(t), index=0 o = s32[] constant(1)
  ROOT r = s32[] add(x, o) }}
high {{ t = (s32[], s32[]) parameter(0) x = s32[] get-tuple-element(t), index={index} o = s32[] constant(1)
  ROOT r = s32[] add(x, o) }}
ENTRY e {{
  x = s32[] parameter(0)
  y = s32[] parameter(1)
  f = s32[] constant(5)
  o = s32[] constant(1)
  p = pred[] compare(x, f), direction=LT
  t = (s32[], s32[]) tuple(x, y)
  c = s32[] conditional(p, t, t), true_computation=low, false_computation=high
  v = s32[] subtract(c, o)
  ROOT r = s32[] copy({result})
}}"""
    check_case(text.format(index=parameter, result="v"), text.format(index=parameter, result="x"), equal)
