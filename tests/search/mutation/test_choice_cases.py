"""Proofs by what masks decide; beside each stands what looks alike and is another one."""

from __future__ import annotations

import numpy as np
import pytest
from support.proof_cases import check_case

from hlotool.parse.reader import parse_module
from hlotool.search.mutation.laws import LAWS
from hlotool.search.mutation.reading import compared_at, result_symbols
from hlotool.search.mutation.split import splits

# 1/x without a division by 0: which number takes the place of 0 does not matter.
SAFE = """HloModule safe
ENTRY e {{
  x = f32[4] parameter(0)
  zero = f32[] constant(0)
  zeros = f32[4] broadcast(zero), dimensions={{}}
  p = pred[4] compare(x, zeros), direction=EQ
  one = f32[] constant({number})
  ones = f32[4] broadcast(one), dimensions={{}}
  s = f32[4] select(p, ones, x)
  q = f32[4] divide(zeros, s)
  other = pred[4] compare(x, zeros), direction=LT
  ROOT r = f32[4] select({mask}, zeros, q)
}}"""

# exp of what is finite is no NaN; of all numbers it may be.
FINITE = """HloModule finite
ENTRY e {{
  x = f32[4] parameter(0)
  p = pred[4] {mask}
  e = f32[4] exponential(x)
  zero = f32[] constant(0)
  zeros = f32[4] broadcast(zero), dimensions={{}}
  s = f32[4] select(p, e, zeros)
  n = pred[4] compare(s, s), direction=NE
  lost = f32[4] select(n, zeros, s)
  ROOT r = f32[4] copy({result})
}}"""

# Half of a number where it is even, which needs no rounding.
EVEN = """HloModule even
ENTRY e {{
  n = s32[] parameter(0)
  two = s32[] constant(2)
  zero = s32[] constant(0)
  one = s32[] constant(1)
  rest = s32[] remainder(n, two)
  even = pred[] compare(rest, zero), direction={even}
  half = s32[] divide(n, two)
  odd = pred[] compare(rest, zero), direction=NE
  below = s32[] subtract(half, one)
  floor = s32[] select(odd, below, half)
  three = s32[] multiply(n, two)
  ROOT r = s32[] select(even, {half}, three)
}}"""

# The smaller of two integers: of equal ones either.
TIE = """HloModule tie
ENTRY e {{
  a = s32[3] parameter(0)
  b = s32[3] parameter(1)
  p = pred[3] compare(a, b), direction={direction}
  c = s32[3] {other}
  ROOT r = s32[3] select(p, a, c)
}}"""

# |n| in two ways, and what is 0 where n is: at 0 the choice makes no difference, at 1 it does.
AT_ZERO = """HloModule at_zero
ENTRY e {{
  n = s32[3] parameter(0)
  c = s32[] constant({number})
  k = s32[3] broadcast(c), dimensions={{}}
  p = pred[3] compare(n, k), direction={direction}
  m = s32[3] negate(n)
  a = s32[3] select(p, m, n)
  o = s32[] constant(1)
  u = s32[3] broadcast(o), dimensions={{}}
  b = s32[3] and(a, u)
  d = s32[3] negate(b)
  q = s32[3] select(p, d, b)
  ROOT r = s32[3] add(q, a)
}}"""

# What is known of a number where a mask holds is not known elsewhere: both sides are one number here.
CASE_ONLY = """HloModule case_only
ENTRY e {{
  y = s8[2] parameter(0)
  c = s8[] constant(-3)
  k = s8[2] broadcast(c), dimensions={{}}
  p = pred[2] compare(y, k), direction=LE
  v = s8[2] select(p, y, y)
  m = s8[2] negate(v)
  d = s8[] constant({number})
  n = s8[2] broadcast(d), dimensions={{}}
  q = pred[2] compare(m, n), direction=NE
  ROOT r = s8[2] select(q, m, k)
}}"""

# A quotient of the smaller by the larger of two numbers, and what it is where they are equal.
SMALLER = """HloModule smaller
ENTRY e {{
  a = f32[4] parameter(0)
  b = f32[4] parameter(1)
  same = pred[4] compare(a, b), direction=EQ
  p = pred[4] compare(a, b), direction={direction}
  q = f32[4] divide(a, b)
  u = f32[4] divide(b, a)
  s = f32[4] select(p, q, u)
  one = f32[] constant(1)
  ones = f32[4] broadcast(one), dimensions={{}}
  d = f32[4] add({alike}, ones)
  ROOT r = f32[4] select(same, ones, d)
}}"""

# The larger of two numbers, which one may not be told from the other by the sign of a zero.
LARGER = """HloModule larger
ENTRY e {{
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  a = f32[4] {first}
  b = f32[4] multiply(y, y)
  p = pred[4] compare(a, b), direction={direction}
  s = f32[4] select(p, a, b)
  one = f32[] constant(1)
  ones = f32[4] broadcast(one), dimensions={{}}
  ROOT r = f32[4] divide(ones, s)
}}"""

# A number that is 0 nowhere, as in a division that is safe.
NOWHERE = """HloModule nowhere
ENTRY e {{
  x = f32[4] parameter(0)
  zero = f32[] constant(0)
  zeros = f32[4] broadcast(zero), dimensions={{}}
  number = f32[] constant({number})
  n = f32[4] broadcast(number), dimensions={{}}
  p = pred[4] compare(x, zeros), direction=EQ
  s = f32[4] select(p, n, x)
  q = pred[4] compare(s, zeros), direction=EQ
  t = f32[4] select(q, zeros, s)
  d = f32[4] divide(n, {result})
  ROOT r = f32[4] copy(d)
}}"""

CASES = [
    (CASE_ONLY.format(number=5), CASE_ONLY.format(number=6), False),
    (SAFE.format(number=1, mask="p"), SAFE.format(number=2, mask="p"), True),
    (SAFE.format(number=1, mask="other"), SAFE.format(number=-1, mask="other"), False),
    (
        FINITE.format(mask="is-finite(x)", result="s"),
        FINITE.format(mask="is-finite(x)", result="lost"),
        True,
    ),
    (
        FINITE.format(mask="compare(x, x), direction=NE", result="s"),
        FINITE.format(mask="compare(x, x), direction=NE", result="lost"),
        False,
    ),
    (EVEN.format(even="EQ", half="half"), EVEN.format(even="EQ", half="floor"), True),
    (EVEN.format(even="GE", half="half"), EVEN.format(even="GE", half="floor"), False),
    (TIE.format(direction="LT", other="copy(b)"), TIE.format(direction="LE", other="copy(b)"), True),
    (TIE.format(direction="LT", other="add(b, b)"), TIE.format(direction="LE", other="add(b, b)"), False),
    (SMALLER.format(direction="LT", alike="s"), SMALLER.format(direction="LE", alike="s"), True),
    (SMALLER.format(direction="LT", alike="s"), SMALLER.format(direction="GE", alike="s"), False),
    (SMALLER.format(direction="LT", alike="s"), SMALLER.format(direction="LT", alike="u"), False),
    (
        LARGER.format(first="multiply(x, x)", direction="GT"),
        LARGER.format(first="multiply(x, x)", direction="GE"),
        True,
    ),
    (LARGER.format(first="copy(x)", direction="GT"), LARGER.format(first="copy(x)", direction="GE"), False),
    (NOWHERE.format(number=1, result="s"), NOWHERE.format(number=1, result="t"), True),
    (NOWHERE.format(number="-0", result="s"), NOWHERE.format(number="-0", result="t"), False),
]


@pytest.mark.parametrize(("one", "other", "equal"), CASES, ids=[str(n) for n in range(len(CASES))])
def test_proofs(one: str, other: str, equal: bool) -> None:
    check_case(one, other, equal)


@pytest.mark.parametrize(("number", "equal"), [(0, True), (1, False)])
def test_a_tie_at_which_both_ways_lead_to_the_same(number: int, equal: bool) -> None:
    """0 is its own negative, and so is what is made of it."""
    right, other = (
        parse_module(AT_ZERO.format(number=number, direction=direction)) for direction in ("LT", "LE")
    )
    comparison = next(i for i in right.instructions() if i.opcode == "compare")
    found = [
        all(map(np.array_equal, *(result_symbols(module, LAWS, split) for module in (right, other))))
        for split in splits(compared_at(right, LAWS, comparison))
    ]
    assert found == [equal]
