"""Orders and relations in a program."""

from __future__ import annotations

import pytest

from hlotool.ir.builder import Builder, array
from hlotool.ir.module import Module
from hlotool.ir.walk import (
    Context,
    branches,
    call_order,
    call_sites,
    contexts,
    post_order,
    reachable,
    sort_topologically,
    users,
)
from hlotool.parser.reader import parse_module

PROGRAM = """
HloModule m
helper { a = f32[] parameter(0) ROOT b = f32[] negate(a) }
sum {
  a = f32[] parameter(0) b = f32[] parameter(1) c = f32[] call(a), to_apply=helper
  ROOT d = f32[] add(c, b)
}
fused {
  a = f32[4] parameter(0) z = f32[] constant(0)
  ROOT b = f32[] reduce(a, z), dimensions={0}, to_apply=sum
}
body { a = f32[4] parameter(0) ROOT b = f32[4] negate(a) }
cond { a = f32[4] parameter(0) z = f32[] constant(0) s = f32[] reduce(a, z), dimensions={0}, to_apply=sum
  ROOT c = pred[] compare(s, z), direction=LT }
unused { ROOT a = f32[] parameter(0) }
ENTRY e {
  x = f32[4] parameter(0)
  w = f32[4] while(x), condition=cond, body=body
  f = f32[] fusion(w), kind=kLoop, calls=fused
  p = pred[] constant(true)
  c = f32[4] conditional(p, x, w), false_computation=body, true_computation=body
  ROOT r = (f32[4], f32[], f32[4]) tuple(w, f, c)
}
"""


@pytest.fixture(scope="module")
def module() -> Module:
    return parse_module(PROGRAM)


def test_users_come_once_each(module: Module) -> None:
    found = {i.name: [u.name for u in readers] for i, readers in users(module.entry).items()}
    assert found["x"] == ["w", "c"]
    assert found["w"] == ["f", "c", "r"]
    assert found["r"] == []
    b = Builder("e")
    x = b.parameter(0, array("f32", 2))
    y = b.op("add", x, x)
    assert users(b.build()) == {x: [y], y: []}


def test_post_order_has_operands_first(module: Module) -> None:
    order = [i.name for i in post_order([module.entry.root])]
    assert order[-1] == "r"
    assert sorted(order) == ["c", "f", "p", "r", "w", "x"]
    assert order.index("x") < order.index("w") < order.index("f")


def test_post_order_finds_cycles() -> None:
    b = Builder("e")
    x = b.op("negate", b.parameter(0, array("f32", 2)))
    y = b.op("negate", x)
    x.operands = (y,)
    with pytest.raises(ValueError, match="depends on itself"):
        post_order([y])


def test_sorting_moves_only_what_must_move() -> None:
    b = Builder("e")
    x = b.parameter(0, array("f32", 2))
    a, c = b.op("negate", x), b.op("abs", x)
    last = b.op("add", a, c)
    computation = b.build(last)
    c.control_predecessors = (a,)
    computation.instructions = [last, c, x, a]
    sort_topologically(computation)
    assert computation.instructions == [x, a, c, last]


def test_branches_by_index(module: Module) -> None:
    conditional = next(i for i in module.instructions() if i.opcode == "conditional")
    assert [c.name for c in branches(conditional)] == ["body", "body"]


def test_reachable_has_callees_first(module: Module) -> None:
    names = [c.name for c in reachable(module.entry)]
    assert sorted(names) == ["body", "cond", "e", "fused", "helper", "sum"]
    assert names[-1] == "e"
    assert names.index("helper") < names.index("sum") < min(names.index("fused"), names.index("cond"))
    assert "unused" in [c.name for c in call_order(module)]


def test_recursion_is_an_error() -> None:
    b = Builder("f")
    computation = b.build(b.parameter(0, array("f32", 2)))
    b.op("call", computation.root, to_apply=computation)
    with pytest.raises(ValueError, match="f calls itself"):
        reachable(computation)


def test_call_sites(module: Module) -> None:
    sites = {
        c.name: [(s.caller.name, s.instruction.name) for s in found]
        for c, found in call_sites(module).items()
    }
    assert sites["sum"] == [("fused", "b"), ("cond", "s")]
    assert sites["body"] == [("e", "w"), ("e", "c")]
    assert sites["e"] == sites["unused"] == []


def test_contexts(module: Module) -> None:
    found = {c.name: seen for c, seen in contexts(module).items()}
    assert found["e"] == found["body"] == found["cond"] == {Context.CONTROL_FLOW}
    assert found["fused"] == {Context.FUSED}
    assert found["sum"] == found["helper"] == {Context.FUSED, Context.EMBEDDED}
    assert found["unused"] == set()
