"""Proofs by limits that floats keep anyway; beside each stands what is another one."""

from __future__ import annotations

import pytest
from support.proof_cases import check_case

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
    (RANDOM.format(shift=9, result="f"), RANDOM.format(shift=9, result="c"), True),
    (RANDOM.format(shift=1, result="f"), RANDOM.format(shift=1, result="c"), False),
    (ALONE.format(pairs="", result="y"), ALONE.format(pairs="", result="c"), True),
    (ALONE.format(pairs="{0,0}", result="y"), ALONE.format(pairs="{0,0}", result="c"), False),
]


@pytest.mark.parametrize(("one", "other", "equal"), CASES, ids=[str(n) for n in range(len(CASES))])
def test_proofs(one: str, other: str, equal: bool) -> None:
    check_case(one, other, equal)
