"""The graph looks through calls, fusions and tuples; flattening gives each call a computation of its own."""

from __future__ import annotations

import pytest

from hlotool.facts.alignment.similarity import Graph
from hlotool.ir import edit_programs
from hlotool.ir.edit_programs import flatten_calls
from hlotool.ir.module import Instruction, Module
from hlotool.parser.reader import parse_module

TEXT = """HloModule m
double {
  v = f32[4] parameter(0)
  ROOT d = f32[4] add(v, v)
}
cond {
  s = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT less = pred[] compare(i, n), direction=LT
}
body {
  st = (s32[], f32[4]) parameter(0)
  i2 = s32[] get-tuple-element(st), index=0
  one = s32[] constant(1)
  next = s32[] add(i2, one)
  x2 = f32[4] get-tuple-element(st), index=1
  y2 = f32[4] call(x2), to_apply=double
  ROOT su = (s32[], f32[4]) tuple(next, y2)
}
pair {
  p = f32[4] parameter(0)
  q = f32[4] negate(p)
  r = f32[4] abs(q)
  ROOT both = (f32[4], f32[4]) tuple(q, r)
}
ENTRY e {
  x = f32[4] parameter(0)
  f = (f32[4], f32[4]) fusion(x), kind=kLoop, calls=pair
  a = f32[4] get-tuple-element(f), index=1
  zero = s32[] constant(0)
  init = (s32[], f32[4]) tuple(zero, a)
  w = (s32[], f32[4]) while(init), condition=cond, body=body
  out = f32[4] get-tuple-element(w), index=1
  ROOT again = f32[4] call(out), to_apply=double
}"""


def by_name(module: Module) -> dict[str, Instruction]:
    return {i.name: i for i in module.instructions()}


def test_an_element_of_a_fusion_is_what_the_fusion_computes() -> None:
    module = parse_module(TEXT)
    graph, found = Graph(module), by_name(module)
    assert graph.resolve(found["a"]) is found["r"]
    assert graph.resolve(found["p"]) is found["x"]
    assert graph.operands[found["q"]] == (found["x"],)
    assert [use.user for use in graph.users[found["r"]]] == [found["init"]]


def test_a_loop_is_not_looked_through() -> None:
    module = parse_module(TEXT)
    graph, found = Graph(module), by_name(module)
    assert not graph.is_transparent(found["out"])
    assert not graph.is_transparent(found["x2"])
    assert [call.name for call in graph.enclosing(found["next"])] == ["w"]


def test_a_computation_with_two_callers_is_looked_through_once_it_is_flattened() -> None:
    module = parse_module(TEXT)
    graph, found = Graph(module), by_name(module)
    assert not graph.is_transparent(found["again"])
    flat = flatten_calls(module)
    graph = Graph(flat.module)
    calls = [i for i in flat.module.instructions() if i.opcode == "call"]
    resolved = [graph.resolve(call) for call in calls]
    assert [node.opcode for node in resolved] == ["add", "add"]
    assert resolved[0] is not resolved[1]
    assert {flat.originals[node] for node in resolved} == {found["d"]}
    assert [c.name for c in graph.enclosing(resolved[0])] == ["y2", "w"]


def test_calls_that_call_too_often_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edit_programs, "MOST_INSTRUCTIONS", 20)
    with pytest.raises(ValueError, match="more than 20 instructions when every call is counted"):
        flatten_calls(parse_module(TEXT))
