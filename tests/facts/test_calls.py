"""Who calls whom; expected values are read off the text."""

from __future__ import annotations

import pytest

from hlotool.facts.flow import CallGraph
from hlotool.ir.module import Instruction
from hlotool.parser.reader import parse_module

TEXT = """HloModule m
unused { u = f32[] parameter(0) ROOT un = f32[] negate(u) }
sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
twice { t = f32[] parameter(0) ROOT d = f32[] add(t, t) }
inner { v = f32[] parameter(0) ROOT w = f32[] call(v), to_apply=twice }
ENTRY e {
  x = f32[4] parameter(0)
  z = f32[] constant(0)
  r = f32[] reduce(x, z), dimensions={0}, to_apply=sum
  f = f32[] call(r), to_apply=inner
  p = pred[] constant(true)
  ROOT c = f32[] conditional(p, f, f), true_computation=twice, false_computation=twice
}"""


@pytest.fixture
def calls() -> CallGraph:
    return CallGraph(parse_module(TEXT))


def found(calls: CallGraph, name: str) -> Instruction:
    return next(i for i in calls.home if i.name == name)


def test_what_the_entry_reaches(calls: CallGraph) -> None:
    assert [c.name for c in calls.computations] == ["sum", "twice", "inner", "e"]
    assert all(instruction in home.instructions for instruction, home in calls.home.items())
    assert len(calls.home) == 3 + 2 + 2 + 6


def test_callers(calls: CallGraph) -> None:
    """A conditional that names a computation twice is one caller."""
    callers = {c.name: [i.name for i in callers] for c, callers in calls.callers.items()}
    assert callers == {"sum": ["r"], "twice": ["w", "c"], "inner": ["f"], "e": []}
    only = {c.name: calls.only_caller(c) for c in calls.computations}
    assert only == {"sum": found(calls, "r"), "twice": None, "inner": found(calls, "f"), "e": None}


def test_enclosing_calls_end_where_there_are_several(calls: CallGraph) -> None:
    assert [i.name for i in calls.enclosing(found(calls, "w"))] == ["f"]
    assert list(calls.enclosing(found(calls, "d"))) == []


def test_a_reducer_is_not_run_step_by_step(calls: CallGraph) -> None:
    assert list(calls.enclosing(found(calls, "s"))) == []
    order = [i.name for i in calls.in_order_of_execution()]
    assert order == ["x", "z", "r", "f", "v", "w", "t", "d", "p", "c"]


def test_recursion_is_refused() -> None:
    module = parse_module(TEXT)
    [call] = [i for i in module.entry.instructions if i.name == "f"]
    call.attributes = {"to_apply": module.entry}
    with pytest.raises(ValueError, match="calls itself"):
        CallGraph(module)
