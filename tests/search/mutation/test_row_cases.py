"""Proofs about rows that are read, written, sorted or chosen; beside each stands what is another one."""

from __future__ import annotations

import pytest
from support.proof_cases import check_case

# One number is added at several places, in whatever order.
SCATTER = """HloModule scatter
add {{ p = f32[] parameter(0) q = f32[] parameter(1) ROOT r = f32[] add(p, q) }}
ENTRY e {{
  x = f32[4] parameter(0)
  i = s32[3,1] parameter(1)
  k = s32[3,1] reverse(i), dimensions={{0}}
  two = f32[] constant(2)
  u = f32[3] {updates}
  ROOT r = f32[4] scatter(x, {indices}, u), update_window_dims={{}}, inserted_window_dims={{0}},
    scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=add
}}"""

# A gather clamps by itself.
GATHER = """HloModule gather
ENTRY e {{
  x = f32[5] parameter(0)
  i = s32[3,1] parameter(1)
  low = s32[] constant(-3)
  high = s32[] constant({high})
  c = s32[3,1] clamp(low, i, high)
  ROOT r = f32[3] gather(x, {indices}), offset_dims={{}}, collapsed_slice_dims={{0}}, start_index_map={{0}},
    index_vector_dim=1, slice_sizes={{1}}
}}"""

# Keys with their places are never equal; what a comparator does not look at may differ where keys are.
SORT = """HloModule sort
before {{
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  i = s32[] parameter(2)
  j = s32[] parameter(3)
  e = pred[] compare(a, b), direction=EQ
  l = pred[] compare(a, b), direction=LT
  k = pred[] compare(i, j), direction=LT
  ROOT r = pred[] {order}
}}
ENTRY e {{
  x = s32[4] parameter(0)
  i = s32[4] iota(), iota_dimension=0
  y = s32[4] reverse(x), dimensions={{0}}
  j = s32[4] reverse(i), dimensions={{0}}
  s = (s32[4], s32[4]) sort({rows}), dimensions={{0}}, is_stable=true, to_apply=before
  ROOT r = s32[4] get-tuple-element(s), index=1
}}"""

# The place of the largest number: of equal ones the first, whichever comparison finds it.
ARGMAX = """HloModule argmax
larger {{
  a = f32[] parameter(0)
  i = s32[] parameter(1)
  b = f32[] parameter(2)
  j = s32[] parameter(3)
  g = pred[] compare(a, b), direction={direction}
  n = pred[] compare(a, a), direction=NE
  o = pred[] or(g, n)
  e = pred[] compare(a, b), direction=EQ
  l = pred[] compare(i, j), direction=LT
  f = pred[] and(e, l)
  p = pred[] or(o, f)
  v = f32[] select(o, a, b)
  k = s32[] select(p, i, j)
  ROOT t = (f32[], s32[]) tuple(v, k)
}}
ENTRY e {{
  x = f32[6] parameter(0)
  i = s32[6] iota(), iota_dimension=0
  d = s32[6] reverse(i), dimensions={{0}}
  low = f32[] constant(-inf)
  zero = s32[] constant(0)
  m = (f32[], s32[]) reduce(x, {places}, low, zero), dimensions={{0}}, to_apply=larger
  ROOT r = s32[] get-tuple-element(m), index=1
}}"""

# A row that is read if its number is in range.
DYNAMIC = """HloModule dynamic
ENTRY e {{
  x = s32[5] parameter(0)
  n = s32[] parameter(1)
  i = s32[5] iota(), iota_dimension=0
  f = s32[] constant(5)
  k = s32[5] broadcast(f), dimensions={{}}
  m = s32[5] add(i, k)
  w = s32[5] remainder(m, k)
  g = s32[5] gather(x, {index}), offset_dims={{}}, collapsed_slice_dims={{0}}, start_index_map={{0}},
    index_vector_dim=1, slice_sizes={{1}}
  ROOT r = s32[<=5] set-dimension-size(g, n), dimensions={{0}}
}}"""

# A row that is taken where its number is in range, and NaN elsewhere: how the index wraps does not matter.
FILL = """HloModule fill
every {{ p = pred[] parameter(0) q = pred[] parameter(1) ROOT r = pred[] and(p, q) }}
ENTRY e {{
  x = f32[6,3] parameter(0)
  i = s32[4,1] parameter(1)
  z = s32[] constant({least})
  zeros = s32[4,1] broadcast(z), dimensions={{}}
  five = s32[] constant({most})
  fives = s32[4,1] broadcast(five), dimensions={{}}
  a = pred[4,1] compare(i, zeros), direction=GE
  b = pred[4,1] compare(i, fives), direction=LE
  c = pred[4,1] and(a, b)
  t = pred[] constant(true)
  d = pred[4] reduce(c, t), dimensions={{1}}, to_apply=every
  m = pred[4,3] broadcast(d), dimensions={{0}}
  six = s32[] constant(6)
  sixes = s32[4,1] broadcast(six), dimensions={{}}
  s = s32[4,1] add(i, sixes)
  w = s32[4,1] remainder(s, sixes)
  g = f32[4,3] gather(x, {index}), offset_dims={{1}}, collapsed_slice_dims={{0}}, start_index_map={{0}},
    index_vector_dim=1, slice_sizes={{1,3}}
  h = f32[] constant(nan)
  nans = f32[4,3] broadcast(h), dimensions={{}}
  ROOT r = f32[4,3] select(m, g, nans)
}}"""

CASES = [
    (FILL.format(least=0, most=5, index="i"), FILL.format(least=0, most=5, index="w"), True),
    (FILL.format(least=0, most=6, index="i"), FILL.format(least=0, most=6, index="w"), False),
    (FILL.format(least=-1, most=5, index="i"), FILL.format(least=-1, most=5, index="w"), False),
    (
        SORT.format(order="select(e, k, l)", rows="x, i"),
        SORT.format(order="select(e, k, l)", rows="y, j"),
        True,
    ),
    (SORT.format(order="copy(l)", rows="x, i"), SORT.format(order="copy(l)", rows="y, j"), False),
    (ARGMAX.format(direction="GT", places="i"), ARGMAX.format(direction="GE", places="i"), True),
    (ARGMAX.format(direction="GT", places="d"), ARGMAX.format(direction="GE", places="d"), False),
    (DYNAMIC.format(index="i"), DYNAMIC.format(index="w"), True),
    (DYNAMIC.format(index="i"), DYNAMIC.format(index="m"), False),
    (
        SCATTER.format(updates="broadcast(two), dimensions={}", indices="i"),
        SCATTER.format(updates="broadcast(two), dimensions={}", indices="k"),
        True,
    ),
    (
        SCATTER.format(updates="parameter(2)", indices="i"),
        SCATTER.format(updates="parameter(2)", indices="k"),
        False,
    ),
    (GATHER.format(high=6, indices="i"), GATHER.format(high=6, indices="c"), True),
    (GATHER.format(high=3, indices="i"), GATHER.format(high=3, indices="c"), False),
]


@pytest.mark.parametrize(("one", "other", "equal"), CASES, ids=[str(n) for n in range(len(CASES))])
def test_proofs(one: str, other: str, equal: bool) -> None:
    check_case(one, other, equal)
