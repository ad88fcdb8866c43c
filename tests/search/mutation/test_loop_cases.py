"""Proofs by what is true of every iteration of a loop; beside each stands what is another one."""

from __future__ import annotations

import pytest
from support.proof_cases import check_case

# A counter to 20 beside another condition needs but a few bits.
LOOP = """HloModule loop
body {{
  s = (s32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[] get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  n = s16[] convert(j)
  w = s32[] convert(n)
  y = f32[] add(x, x)
  ROOT t = (s32[], f32[]) tuple({counter}, y)
}}
cond {{
  s = (s32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[] get-tuple-element(s), index=1
  most = s32[] constant({most})
  a = pred[] compare(i, most), direction=LT
  limit = f32[] constant(100)
  b = pred[] compare(x, limit), direction=LT
  ROOT p = pred[] and(a, b)
}}
ENTRY e {{
  x = f32[] parameter(0)
  zero = s32[] constant(0)
  s = (s32[], f32[]) tuple(zero, x)
  w = (s32[], f32[]) while(s), condition=cond, body=body
  ROOT r = s32[] get-tuple-element(w), index=0
}}"""

# Reads and writes a row where the counter says: never at 5, where the loop has ended.
ROWS = """HloModule rows
body {{
  s = (s32[], s32[{size}], s32[{size}]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = s32[{size}] get-tuple-element(s), index=1
  y = s32[{size}] get-tuple-element(s), index=2
  n = s32[] constant(5)
  m = s32[] add(i, n)
  w = s32[] remainder(m, n)
  e = s32[1] dynamic-slice(x, {index}), dynamic_slice_sizes={{1}}
  z = s32[{size}] dynamic-update-slice(y, e, i)
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT t = (s32[], s32[{size}], s32[{size}]) tuple(j, x, z)
}}
less {{ p = s32[] parameter(0) q = s32[] parameter(1) ROOT r = pred[] compare(p, q), direction=LT }}
cond {{
  s = (s32[], s32[{size}], s32[{size}]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant({trips})
  ROOT p = pred[] fusion(i, n), kind=kLoop, calls=less
}}
run {{
  s = (s32[], s32[{size}], s32[{size}]) parameter(0)
  ROOT w = (s32[], s32[{size}], s32[{size}]) while(s), condition=cond, body=body
}}
ENTRY e {{
  x = s32[{size}] parameter(0)
  y = s32[{size}] parameter(1)
  zero = s32[] constant(0)
  s = (s32[], s32[{size}], s32[{size}]) tuple(zero, x, y)
  w = (s32[], s32[{size}], s32[{size}]) call(s), to_apply=run
  ROOT r = s32[{size}] get-tuple-element(w), index=2
}}"""

# Two counters of one loop: alike where they start alike.
TWINS = """HloModule twins
body {{
  s = (s32[], s32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  k = s32[] get-tuple-element(s), index=1
  x = f32[] get-tuple-element(s), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  l = s32[] add(k, one)
  y = f32[] add(x, x)
  ROOT t = (s32[], s32[], f32[]) tuple(j, l, y)
}}
cond {{
  s = (s32[], s32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  k = s32[] get-tuple-element(s), index=1
  n = s32[] constant(5)
  a = pred[] compare(i, n), direction=LT
  b = pred[] compare(k, n), direction={direction}
  ROOT p = pred[] and(a, b)
}}
ENTRY e {{
  x = f32[] parameter(0)
  zero = s32[] constant(0)
  other = s32[] constant({start})
  s = (s32[], s32[], f32[]) tuple(zero, other, x)
  w = (s32[], s32[], f32[]) while(s), condition=cond, body=body
  ROOT r = f32[] get-tuple-element(w), index=2
}}"""

CASES = [
    (ROWS.format(size=5, trips=5, index="i"), ROWS.format(size=5, trips=5, index="w"), True),
    (ROWS.format(size=5, trips=6, index="i"), ROWS.format(size=5, trips=6, index="w"), False),
    (TWINS.format(start=0, direction="LT"), TWINS.format(start=0, direction="LE"), True),
    (TWINS.format(start=1, direction="LT"), TWINS.format(start=1, direction="LE"), False),
    (LOOP.format(counter="j", most=20), LOOP.format(counter="w", most=20), True),
    (LOOP.format(counter="j", most=40000), LOOP.format(counter="w", most=40000), False),
]


@pytest.mark.parametrize(("one", "other", "equal"), CASES, ids=[str(n) for n in range(len(CASES))])
def test_proofs(one: str, other: str, equal: bool) -> None:
    check_case(one, other, equal)
