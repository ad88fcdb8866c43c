"""Proofs by what masks, loops and reducers decide; beside each stands what looks alike and is another one.

That they are the same, or not, follows from the semantics of HLO; what is proved is also run on all sets.
"""

from __future__ import annotations

import numpy as np
import pytest

from hlotool.backends.numpy import NumpyBackend
from hlotool.directed.plan import directed_sets
from hlotool.errors import HlotoolError
from hlotool.ir.module import Module
from hlotool.parse.reader import parse_module
from hlotool.search.mutation.laws import LAWS
from hlotool.search.mutation.reading import compared_at, result_symbols
from hlotool.search.mutation.split import splits
from hlotool.search.mutation.zero_signs import sign_of_zero_is_read
from hlotool.values.generate import generate_inputs
from hlotool.values.npz import arrays_in

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

# One limit after the other.
LIMITS = """HloModule limits
ENTRY e {{
  x = f32[4] parameter(0)
  l = f32[] constant({low})
  h = f32[] constant({high})
  y = f32[4] clamp(l, x, h)
  two = f32[] constant(2)
  twos = f32[4] broadcast(two), dimensions={{}}
  minus = f32[] constant(-3)
  low = f32[4] broadcast(minus), dimensions={{}}
  m = f32[4] maximum({value}, low)
  ROOT r = f32[4] minimum(twos, m)
}}"""

# NaN as an integer is 0.
WHOLE = """HloModule whole
ENTRY e {{
  x = f32[4] parameter(0)
  n = pred[4] compare(x, x), direction=NE
  z = f32[] constant({number})
  zeros = f32[4] broadcast(z), dimensions={{}}
  s = f32[4] select(n, zeros, x)
  ROOT r = s32[4] convert({value})
}}"""

# Parts of a softmax: no more than 1 each; sums of them are below any large limit.
SOFTMAX = """HloModule softmax
add {{ p = f32[] parameter(0) q = f32[] parameter(1) ROOT s = f32[] add(p, q) }}
max {{ p = f32[] parameter(0) q = f32[] parameter(1) ROOT s = f32[] maximum(p, q) }}
ENTRY e {{
  x = f32[6] parameter(0)
  y = f32[6] parameter(1)
  low = f32[] constant(-inf)
  zero = f32[] constant(0)
  m = f32[] reduce({maximum_of}, low), dimensions={{0}}, to_apply=max
  b = f32[6] broadcast(m), dimensions={{}}
  d = f32[6] subtract(x, b)
  e = f32[6] exponential(d)
  t = f32[] reduce(e, zero), dimensions={{0}}, to_apply=add
  l = f32[] constant(-6e4)
  h = f32[] constant(6e4)
  c = f32[] clamp(l, t, h)
  ROOT r = f32[] copy({result})
}}"""

# Shares of a whole, none of which is more than 1, and what is no share of it.
SHARES = """HloModule shares
add {{ p = f32[] parameter(0) q = f32[] parameter(1) ROOT s = f32[] add(p, q) }}
ENTRY e {{
  x = f32[6] parameter(0)
  y = f32[6] parameter(1)
  a = f32[6] {sign}(x)
  b = f32[6] {sign}(y)
  zero = f32[] constant(0)
  t = f32[] reduce(a, zero), dimensions={{0}}, to_apply=add
  w = f32[6] broadcast(t), dimensions={{}}
  s = f32[6] divide({part}, w)
  least = f32[] constant(-6e4)
  most = f32[] constant(6e4)
  l = f32[6] broadcast(least), dimensions={{}}
  h = f32[6] broadcast(most), dimensions={{}}
  c = f32[6] clamp(l, s, h)
  ROOT r = f32[6] copy({result})
}}"""

# Infinity is no limit.
UNLIMITED = """HloModule unlimited
ENTRY e {{
  x = f32[4] parameter(0)
  end = f32[] constant({end})
  w = f32[4] broadcast(end), dimensions={{}}
  m = f32[4] maximum(x, w)
  ROOT r = f32[4] copy({result})
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

# A sum that wraps in its own type is no sum in a wider one.
WIDENED = """HloModule widened
ENTRY e {{
  x = s8[4] parameter(0)
  n = s8[] constant({number})
  w = s8[4] broadcast(n), dimensions={{}}
  y = s8[4] {opcode}(x, w)
  z = {kind}[4] convert(y)
  u = {kind}[4] convert(x)
  m = {kind}[] constant({number})
  v = {kind}[4] broadcast(m), dimensions={{}}
  o = {kind}[4] {opcode}(u, v)
  {rest}
}}"""
_BACK = "a = s32[4] subtract({z}, v) ROOT r = s32[4] copy(a)"
_BITS = "a = s16[4] convert({z}) ROOT r = s16[4] copy(a)"
_FEW = "p = s32[4] multiply({z}, {z}) a = s8[4] convert(p) ROOT r = s8[4] copy(a)"
_FEWER = (
    "p = s32[4] multiply({z}, {z}) k = s16[4] convert(p) f = s32[4] convert(k) a = s8[4] convert(f) "
    "ROOT r = s8[4] copy(a)"
)

# Random numbers: bits that are made floats from 1 to 2.
RANDOM = """HloModule random
ENTRY e {{
  x = u32[4] parameter(0)
  nine = u32[] constant({shift})
  n = u32[4] broadcast(nine), dimensions={{}}
  s = u32[4] shift-right-logical(x, n)
  exponent = u32[] constant(1065353216)
  o = u32[4] broadcast(exponent), dimensions={{}}
  b = u32[4] or(s, o)
  f = f32[4] bitcast-convert(b)
  l = f32[] constant(-6e4)
  h = f32[] constant(6e4)
  c = f32[4] clamp(l, f, h)
  ROOT r = f32[4] copy({result})
}}"""

# Whether some are true, of which one is there twice; and how many are.
SOME = """HloModule some
f {{ p = {kind}[] parameter(0) q = {kind}[] parameter(1) ROOT s = {kind}[] {opcode}(p, q) }}
ENTRY e {{
  x = {kind}[4] parameter(0)
  z = {kind}[] constant(0)
  t = {kind}[1] slice(x), slice={{[2:3]}}
  y = {kind}[5] concatenate(x, t), dimensions={{0}}
  ROOT r = {kind}[] reduce({values}, z), dimensions={{0}}, to_apply=f
}}"""

# What no device sends is 0.
ALONE = """HloModule alone
ENTRY e {{
  x = f32[4] parameter(0)
  y = f32[4] collective-permute(x), source_target_pairs={{{pairs}}}
  l = f32[] constant(-6e4)
  h = f32[] constant(6e4)
  c = f32[4] clamp(l, y, h)
  ROOT r = f32[4] copy({result})
}}"""

CASES = [
    (FILL.format(least=0, most=5, index="i"), FILL.format(least=0, most=5, index="w"), True),
    (FILL.format(least=0, most=6, index="i"), FILL.format(least=0, most=6, index="w"), False),
    (FILL.format(least=-1, most=5, index="i"), FILL.format(least=-1, most=5, index="w"), False),
    (CASE_ONLY.format(number=5), CASE_ONLY.format(number=6), False),
    (ROWS.format(size=5, trips=5, index="i"), ROWS.format(size=5, trips=5, index="w"), True),
    (ROWS.format(size=5, trips=6, index="i"), ROWS.format(size=5, trips=6, index="w"), False),
    (TWINS.format(start=0, direction="LT"), TWINS.format(start=0, direction="LE"), True),
    (TWINS.format(start=1, direction="LT"), TWINS.format(start=1, direction="LE"), False),
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
    (LOOP.format(counter="j", most=20), LOOP.format(counter="w", most=20), True),
    (LOOP.format(counter="j", most=40000), LOOP.format(counter="w", most=40000), False),
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
    (SMALLER.format(direction="LT", alike="s"), SMALLER.format(direction="LE", alike="s"), True),
    (SMALLER.format(direction="LT", alike="s"), SMALLER.format(direction="GE", alike="s"), False),
    (SMALLER.format(direction="LT", alike="s"), SMALLER.format(direction="LT", alike="u"), False),
    (
        LARGER.format(first="multiply(x, x)", direction="GT"),
        LARGER.format(first="multiply(x, x)", direction="GE"),
        True,
    ),
    (LARGER.format(first="copy(x)", direction="GT"), LARGER.format(first="copy(x)", direction="GE"), False),
    (
        LIMITS.format(low="-6e4", high="6e4", value="x"),
        LIMITS.format(low="-6e4", high="6e4", value="y"),
        True,
    ),
    (
        LIMITS.format(low="-6e4", high="1.5", value="x"),
        LIMITS.format(low="-6e4", high="1.5", value="y"),
        False,
    ),
    (LIMITS.format(low="-2", high="6e4", value="x"), LIMITS.format(low="-2", high="6e4", value="y"), False),
    (WHOLE.format(number=0, value="x"), WHOLE.format(number=0, value="s"), True),
    (WHOLE.format(number=1, value="x"), WHOLE.format(number=1, value="s"), False),
    (SOFTMAX.format(maximum_of="x", result="t"), SOFTMAX.format(maximum_of="x", result="c"), True),
    (SOFTMAX.format(maximum_of="y", result="t"), SOFTMAX.format(maximum_of="y", result="c"), False),
    *(
        (
            SHARES.format(sign=sign, part=part, result="s"),
            SHARES.format(sign=sign, part=part, result="c"),
            equal,
        )
        for sign, part, equal in (("abs", "a", True), ("abs", "b", False), ("negate", "a", False))
    ),
    (UNLIMITED.format(end="-inf", result="x"), UNLIMITED.format(end="-inf", result="m"), True),
    (UNLIMITED.format(end="inf", result="x"), UNLIMITED.format(end="inf", result="m"), False),
    (NOWHERE.format(number=1, result="s"), NOWHERE.format(number=1, result="t"), True),
    (NOWHERE.format(number="-0", result="s"), NOWHERE.format(number="-0", result="t"), False),
    *(
        (
            WIDENED.format(number=100, opcode=opcode, kind="s32", rest=one),
            WIDENED.format(number=100, opcode=opcode, kind="s32", rest=other),
            equal,
        )
        for opcode in ("add", "multiply")
        for one, other, equal in (
            (_BACK.format(z="z"), _BACK.format(z="o"), False),
            (_BITS.format(z="z"), _BITS.format(z="o"), False),
            (_FEW.format(z="o"), _FEWER.format(z="o"), True),
        )
    ),
    (RANDOM.format(shift=9, result="f"), RANDOM.format(shift=9, result="c"), True),
    (RANDOM.format(shift=1, result="f"), RANDOM.format(shift=1, result="c"), False),
    *(
        (
            SOME.format(kind=kind, opcode=opcode, values="x"),
            SOME.format(kind=kind, opcode=opcode, values="y"),
            equal,
        )
        for kind, opcode, equal in (("pred", "or", True), ("u8", "and", True), ("u8", "xor", False))
    ),
    (ALONE.format(pairs="", result="y"), ALONE.format(pairs="", result="c"), True),
    (ALONE.format(pairs="{0,0}", result="y"), ALONE.format(pairs="{0,0}", result="c"), False),
]


@pytest.mark.parametrize(("one", "other", "equal"), CASES, ids=[str(n) for n in range(len(CASES))])
def test_proofs(one: str, other: str, equal: bool) -> None:
    left, right = parse_module(one), parse_module(other)
    symbols = [result_symbols(module, LAWS) for module in (left, right)]
    assert all(map(np.array_equal, *symbols)) is equal
    if equal:
        plain = generate_inputs(left, 0).values
        for values in [plain, *(one.values for one in directed_sets(left, plain, 0))][:60]:
            assert results(left, values) == results(right, values)


def results(module: Module, values: tuple[object, ...]) -> list[bytes] | None:
    try:
        return [a.tobytes() for a in arrays_in(NumpyBackend().compile(module).run(values))]
    except HlotoolError:
        return None


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


@pytest.mark.parametrize(
    ("body", "is_read"),
    [
        ("ROOT r = f32[2] add(y, x)", False),
        ("ROOT r = f32[2] divide(y, x)", False),
        ("ROOT r = f32[2] divide(x, y)", True),
        ("e = f32[2] exponential(y) o = f32[2] add(e, e) ROOT r = f32[2] rsqrt(o)", False),
        ("e = f32[2] sine(y) o = f32[2] add(e, e) ROOT r = f32[2] rsqrt(o)", True),
        ("a = f32[2] abs(y) ROOT r = f32[2] divide(x, a)", False),
        ("two = f32[2] constant({2, 2}) s = f32[2] add(y, two) ROOT r = f32[2] divide(x, s)", False),
        ("two = f32[2] constant({2, 0}) s = f32[2] add(y, two) ROOT r = f32[2] divide(x, s)", True),
        ("n = s32[2] convert(y) f = f32[2] convert(n) ROOT r = f32[2] divide(x, f)", False),
        ("one = f32[2] constant({1, 1}) m = f32[2] maximum(y, one) ROOT r = f32[2] divide(x, m)", False),
        ("ROOT r = u32[2] bitcast-convert(y)", True),
        ("ROOT r = pred[2] compare(y, x), direction=LT", False),
        ("ROOT r = pred[2] compare(y, x), direction=LT, type=TOTALORDER", True),
        (
            "z = f32[2] constant({0, 0}) q = pred[2] compare(y, z), direction=EQ "
            "c = f32[2] select(q, z, y) ROOT r = pred[2] compare(c, x), direction=LT, type=TOTALORDER",
            False,
        ),
        (
            "z = f32[2] constant({0, 0}) q = pred[2] compare(y, z), direction=LT "
            "c = f32[2] select(q, z, y) ROOT r = pred[2] compare(c, x), direction=LT, type=TOTALORDER",
            True,
        ),
        ("ROOT r = f32[2] fusion(y, x), kind=kLoop, calls=quotient", False),
        ("ROOT r = f32[2] fusion(x, y), kind=kLoop, calls=quotient", True),
    ],
)
def test_who_reads_the_sign_of_a_zero(body: str, is_read: bool) -> None:
    """1 / -0 is -inf; a number that is at least 1 is no zero."""
    module = parse_module(
        "HloModule m\n"
        "quotient { p = f32[2] parameter(0) q = f32[2] parameter(1) ROOT d = f32[2] divide(p, q) }\n"
        f"ENTRY e {{ x = f32[2] parameter(0) y = f32[2] negate(x) {body} }}"
    )
    assert sign_of_zero_is_read(module, lambda instruction: instruction.name == "y") is is_read
