"""Which values a compiler may have rounded anew."""

from __future__ import annotations

from hlotool.facts.compiler_made import uncertain_values
from hlotool.parser.reader import parse_module

BEFORE = """ENTRY e {
  x = f32[4] parameter(0)
  a = f32[] constant(0.1)
  b = f32[] constant(0.7)
  p = f32[] multiply(a, b)
  ps = f32[4] broadcast(p), dimensions={}
  n = s32[4] iota(), iota_dimension=0
  f = f32[4] convert(n)
  t = f32[4] sine(f)
  d = f32[4] divide(x, ps)
  m = f32[4] multiply(d, x)
  ROOT r = f32[4] add(m, t)
}"""
AFTER = """ENTRY e {
  x = f32[4] parameter(0)
  a = f32[2] constant({0.1, 0.1})
  ROOT r = f32[4] multiply(x, x)
}"""


def _names(text: str, other: str | None = None) -> set[str]:
    found = uncertain_values(parse_module(text), None if other is None else parse_module(other))
    return {instruction.name for instruction in found}


def test_constants_what_follows_from_them_and_quotients_by_them() -> None:
    assert _names(BEFORE) == {"a", "b", "p", "ps", "f", "t", "d"}


CALL = """uniform {
  bits = f32[4] parameter(0)
  low = f32[] parameter(1)
  high = f32[] parameter(2)
  width = f32[] subtract(high, low)
  widths = f32[4] broadcast(width), dimensions={}
  lows = f32[4] broadcast(low), dimensions={}
  scaled = f32[4] multiply(bits, widths)
  ROOT r = f32[4] add(scaled, lows)
}
ENTRY e {
  x = f32[4] parameter(0)
  a = f32[] constant(-0.99999994)
  b = f32[] constant(1)
  ROOT r = f32[4] call(x, a, b), to_apply=uniform
}"""
INLINED = """ENTRY e {
  x = f32[4] parameter(0)
  a = f32[] constant(-0.99999994)
  b = f32[] constant(1)
  width = f32[] constant(2)
  widths = f32[4] broadcast(width), dimensions={}
  lows = f32[4] broadcast(a), dimensions={}
  scaled = f32[4] multiply(x, widths)
  ROOT r = f32[4] add(scaled, lows)
}"""


def test_constants_that_calls_hand_on() -> None:
    """The width of a uniform distribution, 2 - 2^-24, is 2 in f32."""
    assert _names(CALL, INLINED) == {"width", "widths"}
    assert _names(CALL, CALL) == set()


def test_a_parameter_of_calls_with_a_value_is_none() -> None:
    text = CALL.replace("call(x, a, b)", "call(x, c, b)").replace(
        "  a =", "  n = f32[] constant(0)\n  c = f32[] reduce(x, n), dimensions={0}, to_apply=add\n  a ="
    )
    text = "add { p = f32[] parameter(0) q = f32[] parameter(1) ROOT s = f32[] add(p, q) }\n" + text
    assert _names(text, INLINED) == {"n"}


def test_a_constant_that_both_versions_have_was_not_touched() -> None:
    """Whatever its dimensions are."""
    assert _names(BEFORE, AFTER) == {"b", "p", "ps", "f", "t", "d"}
    assert _names(AFTER, BEFORE) == set()


def test_what_a_function_makes_of_constants_that_it_is_called_with() -> None:
    """As JAX writes a uniform distribution: the compiler inlines the call and folds the difference."""
    text = """f {
  x = f32[4] parameter(0)
  low = f32[] parameter(1)
  high = f32[] parameter(2)
  range = f32[] subtract(high, low)
  ranges = f32[4] broadcast(range), dimensions={}
  ROOT y = f32[4] multiply(x, ranges)
}
ENTRY e {
  x = f32[4] parameter(0)
  low = f32[] constant(-0.99999994)
  high = f32[] constant(1)
  a = f32[4] call(x, low, high), to_apply=f
  MORE
  ROOT y = f32[4] negate(b)
}"""
    always = text.replace("MORE", "b = f32[4] copy(a)")
    folded = (
        "ENTRY e { x = f32[4] parameter(0) c = f32[] constant(2) cs = f32[4] broadcast(c), dimensions={} \
  low = f32[] constant(-0.99999994) high = f32[] constant(1) ROOT y = f32[4] multiply(x, cs) }"
    )
    assert _names(always, folded) >= {"range", "ranges"}
    sometimes = text.replace("MORE", "r = f32[] slice(x), slice={} b = f32[4] call(a, r, high), to_apply=f")
    sometimes = sometimes.replace(
        "r = f32[] slice(x), slice={}", "h = f32[1] slice(x), slice={[0:1]} r = f32[] reshape(h)"
    )
    assert not _names(sometimes, folded) & {"range", "ranges"}
