"""Where values come from; expected values are read off the text."""

from __future__ import annotations

import pytest

from hlotool.facts.flow import CallGraph, handed_on
from hlotool.ir.types import ShapeIndex
from hlotool.parser.reader import parse_module

TEXT = """HloModule m
once { o = f32[] parameter(0) ROOT on = f32[] negate(o) }
body {
  s = (s32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  v = f32[] get-tuple-element(s), index=1
  w = f32[] call(v), to_apply=once
  ROOT st = (s32[], f32[]) tuple(i, w)
}
cond { cs = (s32[], f32[]) parameter(0) ROOT more = pred[] custom-call(cs), custom_call_target="f" }
yes { y = f32[] parameter(0) ROOT yn = f32[] sine(y) }
no { n = (f32[], f32[]) parameter(0) ROOT nn = f32[] get-tuple-element(n), index=1 }
later { l = f32[] parameter(0) ROOT ln = f32[] log(l) }
ENTRY e {
  x = f32[] parameter(0)
  a = f32[] call(x), to_apply=once
  k = s32[] constant(0)
  start = (s32[], f32[]) tuple(k, a)
  kept = (s32[], f32[]) opt-barrier(start)
  loop = (s32[], f32[]) while(kept), condition=cond, body=body
  out = f32[] get-tuple-element(loop), index=1
  pair = (f32[], f32[]) tuple(x, out)
  p = pred[] constant(true)
  c = f32[] conditional(p, out, pair), true_computation=yes, false_computation=no
  begun = ((f32[]), f32[], u32[]) async-start(c), calls=later
  waits = ((f32[]), f32[], u32[]) async-update(begun)
  done = f32[] async-done(waits)
  ROOT root = f32[] add(done, x)
}"""


@pytest.mark.parametrize(
    ("name", "index", "expected"),
    [
        ("root", (), []),
        ("x", (), []),
        ("k", (), []),
        ("pair", (), []),
        ("pair", (1,), [("out", ())]),
        ("out", (), [("loop", (1,))]),
        ("kept", (0,), [("start", (0,))]),
        ("loop", (1,), [("st", (1,)), ("kept", (1,))]),
        ("s", (1,), [("st", (1,)), ("kept", (1,))]),
        ("cs", (0,), [("st", (0,)), ("kept", (0,))]),
        ("c", (), [("yn", ()), ("nn", ())]),
        ("y", (), [("out", ())]),
        ("n", (0,), [("pair", (0,))]),
        ("a", (), [("on", ())]),
        ("o", (), [("v", ()), ("x", ())]),
        ("waits", (1,), [("begun", (1,))]),
        ("done", (), [("ln", ())]),
        ("l", (), [("c", ())]),
    ],
)
def test_one_step(name: str, index: ShapeIndex, expected: list[tuple[str, ShapeIndex]]) -> None:
    calls = CallGraph(parse_module(TEXT))
    instruction = next(i for i in calls.home if i.name == name)
    found = [(source.name, part) for source, part in handed_on((instruction, index), calls)]
    assert sorted(found) == sorted(expected)
    if instruction.opcode == "while":
        # The last iteration first: the faults of a loop are in its body.
        assert found == expected
