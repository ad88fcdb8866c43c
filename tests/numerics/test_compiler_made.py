"""Which values a compiler may have rounded anew."""

from __future__ import annotations

from hlotool.numerics.compiler_made import uncertain_values
from hlotool.parse.reader import parse_module

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


def test_a_constant_that_both_versions_have_was_not_touched() -> None:
    """Whatever its dimensions are."""
    assert _names(BEFORE, AFTER) == {"b", "p", "ps", "f", "t", "d"}
    assert _names(AFTER, BEFORE) == set()
