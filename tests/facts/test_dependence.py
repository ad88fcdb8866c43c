"""What depends on the arguments: through data, through the state of loops, through branches."""

from __future__ import annotations

import pytest

from hlotool.facts.flow import CallGraph, Dependence
from hlotool.parser.reader import parse_module

LOOP = """HloModule m
body {
  s = (s32[], s32[], f32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1
  x = f32[] get-tuple-element(s), index=2
  y = f32[] get-tuple-element(s), index=3
  one = s32[] constant(1)
  next = s32[] add(i, one)
  mixed = f32[] add(y, x)
  twice = f32[] add(y, y)
  ROOT r = (s32[], s32[], f32[], f32[]) tuple(next, n, x, RESULT)
}
cond {
  s = (s32[], s32[], f32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1
  ROOT more = pred[] compare(i, n), direction=LT
}
ENTRY e {
  x = f32[] parameter(0)
  count = s32[] parameter(1)
  five = s32[] constant(5)
  zero = s32[] constant(0)
  half = f32[] constant(0.5)
  init = (s32[], s32[], f32[], f32[]) tuple(zero, LIMIT, x, half)
  w = (s32[], s32[], f32[], f32[]) while(init), condition=cond, body=body
  last = f32[] get-tuple-element(w), index=3
  ROOT doubled = f32[] add(last, last)
}
"""


@pytest.mark.parametrize(
    ("result", "limit", "varying", "steady"),
    [
        # The counter and what is made of constants is the same in every run.
        ("twice", "five", {"mixed"}, True),
        # What an argument flows into is not.
        ("mixed", "five", {"mixed", "twice", "doubled"}, True),
        # Where an argument ends the loop, an iteration is the same if it takes place; the result is not.
        ("twice", "count", {"mixed", "doubled", "more"}, False),
    ],
)
def test_loop(result: str, limit: str, varying: set[str], steady: bool) -> None:
    module = parse_module(LOOP.replace("RESULT", result).replace("LIMIT", limit))
    calls = CallGraph(module)
    dependence = Dependence(calls)
    named = {i.name: i for i in calls.home}
    for name in ("mixed", "twice", "doubled", "next", "more"):
        assert dependence.varies(named[name]) == (name in varying), name
    assert dependence.runs_always_alike(named["next"]) == steady
    assert dependence.runs_always_alike(named["doubled"])


def test_a_branch_that_an_argument_chooses() -> None:
    module = parse_module("""HloModule m
      one { a = f32[] parameter(0) ROOT n = f32[] negate(a) }
      two { a = f32[] parameter(0) ROOT m = f32[] copy(a) }
      ENTRY e { p = pred[] parameter(0) c = f32[] constant(2)
        ROOT r = f32[] conditional(p, c, c), true_computation=one, false_computation=two }""")
    calls = CallGraph(module)
    dependence = Dependence(calls)
    named = {i.name: i for i in calls.home}
    assert not dependence.varies(named["n"])
    assert not dependence.runs_always_alike(named["n"])
    assert dependence.varies(named["r"])


def test_random_numbers_and_devices_are_not_determined() -> None:
    module = parse_module("""HloModule m
      ENTRY e { a = u32[] partition-id() b = u32[] constant(1) c = u32[] add(a, b)
        ROOT d = u32[] add(b, b) }""")
    calls = CallGraph(module)
    varies = {i.name for i in calls.home if Dependence(calls).varies(i)}
    assert varies == {"a", "c"}
