"""Edits leave valid modules that compute the same, or exactly what was asked for."""

from __future__ import annotations

import pytest

from hlotool.ir.builder import array
from hlotool.ir.edit import Names, add_computation, editing, is_ordered
from hlotool.ir.edit_calls import cone, extract, inline, outline, part_for
from hlotool.ir.edit_programs import clone_computation, clone_module, remove_dead_code
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.verifier import verify
from hlotool.parser.reader import parse_module

DIAMOND = """HloModule diamond, is_scheduled=true
ENTRY e {
  x = f32[3] parameter(0)
  a = f32[3] negate(x), metadata={op_name="neg"}
  b = f32[3] exponential(a), control-predecessors={a}
  c = f32[3] sine(a)
  ROOT r = f32[3] add(b, c)
}"""

CALLS = """HloModule calls
sum { p = f32[] parameter(0) q = f32[] parameter(1) ROOT s = f32[] add(p, q) }
fused { p = f32[3] parameter(0) z = f32[] constant(0)
        ROOT t = f32[] reduce(p, z), dimensions={0}, to_apply=sum }
twice { p = f32[3] parameter(0) d = f32[3] add(p, p) f = f32[] fusion(d), kind=kInput, calls=fused
        b = f32[3] broadcast(f), dimensions={} ROOT m = f32[3] multiply(b, d) }
ENTRY e {
  x = f32[3] parameter(0)
  first = f32[3] call(x), to_apply=twice
  before = f32[3] cosine(x)
  second = f32[3] call(first), to_apply=twice, control-predecessors={before}
  after = f32[3] sine(x), control-predecessors={second}
  ROOT r = (f32[3], f32[3], f32[3]) tuple(second, after, before)
}"""


def find(module: Module, name: str) -> Instruction:
    (found,) = (i for i in module.instructions() if i.name == name)
    return found


def lines(computation: Computation) -> list[str]:
    return [f"{i.name}={i.opcode}({','.join(o.name for o in i.operands)})" for i in computation.instructions]


def test_names_follow_xla() -> None:
    names = Names(["add.5", "add", "add.1"])
    assert [names.fresh(n) for n in ("mul.3", "add.5", "add", "mul.3")] == [
        "mul.3",
        "add.2",
        "add.3",
        "mul.1",
    ]


def test_replace_hands_everything_on() -> None:
    module = parse_module(DIAMOND)
    a, b = find(module, "a"), find(module, "b")
    with editing(module.entry) as edit:
        new = edit.add(Instruction("a", "abs", a.shape, (find(module, "x"),)), before=a)
        edit.replace(a, new)
        assert [u.name for u in edit.users(new)] == ["b", "c"]
    assert lines(module.entry) == [
        "x=parameter()",
        "a.1=abs(x)",
        "b=exponential(a.1)",
        "c=sine(a.1)",
        "r=add(b,c)",
    ]
    assert b.control_predecessors == (new,)
    assert new.metadata is not None
    assert new.metadata.op_name == "neg"
    assert verify(module) == []


def test_definitions_move_up_and_nothing_else_moves() -> None:
    module = parse_module(DIAMOND)
    with editing(module.entry) as edit:
        edit.set_operands(find(module, "b"), [find(module, "c")])
    assert [i.name for i in module.entry.instructions] == ["x", "a", "c", "b", "r"]
    assert module.is_scheduled


def test_removal_keeps_the_order_across_the_gap() -> None:
    module = parse_module(
        """HloModule m ENTRY e { x = f32[] parameter(0) a = f32[] negate(x)
        b = f32[] abs(x), control-predecessors={a} ROOT c = f32[] sine(x), control-predecessors={b} }"""
    )
    with editing(module.entry) as edit:
        edit.remove(find(module, "b"))
    assert [p.name for p in find(module, "c").control_predecessors] == ["a"]


def test_what_is_used_stays() -> None:
    module = parse_module(DIAMOND)
    with editing(module.entry) as edit:
        for name in ("a", "r", "x"):
            with pytest.raises(ValueError, match=name):
                edit.remove(find(module, name))


def test_shapes_must_fit() -> None:
    module = parse_module(DIAMOND)
    with editing(module.entry) as edit:
        scalar = edit.add(Instruction("s", "parameter", array("f32"), parameter_number=1))
        with pytest.raises(ValueError, match=r"f32\[\] cannot stand for"):
            edit.replace_uses(find(module, "a"), scalar)


def test_strangers_are_refused() -> None:
    module = parse_module(DIAMOND)
    stranger = Instruction("stranger", "constant", array("f32", 3))
    with editing(module.entry) as edit, pytest.raises(ValueError, match="stranger is not in e"):
        edit.set_operands(find(module, "b"), [stranger])


def test_a_cycle_is_an_error() -> None:
    module = parse_module(DIAMOND)
    with pytest.raises(ValueError, match="depends on itself"), editing(module.entry) as edit:
        edit.set_operands(find(module, "a"), [find(module, "b")])


def test_clone_shares_nothing_that_changes() -> None:
    module = parse_module(CALLS)
    text = module.to_text()
    clone = clone_module(module)
    assert clone.module.to_text() == text
    assert set(clone.instructions) == set(module.instructions())
    assert set(clone.module.instructions()).isdisjoint(module.instructions())
    assert {c for i in clone.module.instructions() for c in i.called} <= set(clone.module.computations)
    clone.instructions[find(module, "second")].name = "other"
    clone.module.computations.pop()
    assert module.to_text() == text


def test_a_cloned_computation_has_fusions_of_its_own() -> None:
    module = parse_module(CALLS)
    copy = clone_computation(module, module.computations[2])
    assert copy is module.computations[2]
    assert [c.name for c in module.computations] == ["sum", "fused.1", "twice.1", "fused", "twice", "e"]
    (fusion,) = (i for i in copy.instructions if i.opcode == "fusion")
    assert [c.name for c in fusion.called] == ["fused.1"]
    assert [c.name for i in module.computations[4].instructions for c in i.called] == ["fused"]


def test_callees_stand_before_callers() -> None:
    module = parse_module(CALLS)
    caller = Computation("caller", [call := find(module, "first")], call)
    add_computation(module, caller)
    assert module.computations.index(caller) == 1 + [c.name for c in module.computations].index("twice")


def test_inline() -> None:
    module = parse_module(CALLS)
    with editing(module.entry) as edit:
        for name in ("first", "second"):
            inline(module, edit, find(module, name))
    assert verify(module) == []
    assert lines(module.entry) == [
        "x=parameter()", "d=add(x,x)", "f=fusion(d)", "b=broadcast(f)", "m=multiply(b,d)", "before=cosine(x)",
        "d.1=add(m,m)", "f.1=fusion(d.1)", "b.1=broadcast(f.1)", "m.1=multiply(b.1,d.1)", "after=sine(x)",
        "r=tuple(m.1,after,before)",
    ]  # fmt: skip
    assert [p.name for p in find(module, "d.1").control_predecessors] == ["before"]
    assert [p.name for p in find(module, "after").control_predecessors] == ["m.1", "before"]
    assert remove_dead_code(module) > 0
    assert [c.name for c in module.computations] == ["sum", "fused.2", "fused.1", "e"]


def test_outline_is_the_inverse_of_inline() -> None:
    module = parse_module(DIAMOND)
    text = module.to_text()
    members = [find(module, n) for n in ("c", "b")]
    with editing(module.entry) as edit:
        caller = outline(module, edit, members, "fusion", {"kind": "kLoop"}, body_name="fused")
    assert verify(module) == []
    assert lines(module.entry)[2:] == [
        "b.1=fusion(a)", "b.2=get-tuple-element(b.1)", "c.1=get-tuple-element(b.1)", "r=add(b.2,c.1)",
    ]  # fmt: skip
    assert [p.name for p in caller.control_predecessors] == ["a"]
    assert module.to_text() != text


def test_outline_refuses_a_way_out_and_back_in() -> None:
    module = parse_module(DIAMOND)
    members = [find(module, n) for n in ("a", "r")]
    with pytest.raises(ValueError, match="depends on itself"), editing(module.entry) as edit:
        outline(module, edit, members, "fusion", {"kind": "kLoop"})


def test_dead_code() -> None:
    module = parse_module(
        """HloModule dead
        unused { ROOT c = f32[] constant(1) }
        fused { p = f32[] parameter(0) q = f32[] parameter(1) n = f32[] negate(p) ROOT s = f32[] sine(q) }
        ENTRY e { x = f32[] parameter(0) y = f32[] parameter(1)
          a = f32[] abs(x) b = f32[] exponential(a) d = f32[] rng(x, y), distribution=rng_uniform
          m = f32[] cosine(x)
          ROOT f = f32[] fusion(m, y), kind=kLoop, calls=fused }"""
    )
    assert remove_dead_code(module) == 6
    assert [c.name for c in module.computations] == ["fused", "e"]
    assert lines(module.entry) == ["x=parameter()", "y=parameter()", "d=rng(x,y)", "f=fusion(y)"]
    assert lines(module.computations[0]) == ["q=parameter()", "s=sine(q)"]
    assert verify(module) == []
    assert remove_dead_code(module) == 0


def test_extract() -> None:
    module = parse_module(CALLS)
    m = find(module, "m")
    cut = extract(module, cone([m], boundary=[find(module, "d")]), [m])
    assert verify(cut.module) == []
    assert [i.name for i in cut.inputs] == ["d"]
    assert lines(cut.module.entry) == [
        "param_0=parameter()", "f=fusion(param_0)", "b=broadcast(f)", "m=multiply(b,param_0)",
    ]  # fmt: skip
    assert cut.copies[m] is cut.module.entry.root
    assert set(cut.module.instructions()).isdisjoint(module.instructions())
    assert verify(module) == []


def test_extract_several_results_and_what_is_handed_through() -> None:
    module = parse_module(DIAMOND)
    x, b, c = (find(module, n) for n in "xbc")
    cut = extract(module, cone([b, c]), [c, x, b], "part")
    assert str(cut.module.entry.root.shape) == "(f32[3], f32[3], f32[3])"
    assert cut.inputs == (x,)
    assert cut.module.name == "part"
    assert cut.module.is_scheduled
    assert verify(cut.module) == []


def test_the_part_for_one_value_takes_all_arguments_and_shares_instructions() -> None:
    module = parse_module(
        """HloModule m
        f { p = f32[] parameter(0) ROOT n = f32[] negate(p) }
        ENTRY e { x = f32[] parameter(0) y = f32[] parameter(1) a = f32[] call(x), to_apply=f
        b = f32[] sine(y) c = f32[] add(a, a) ROOT r = (f32[], f32[]) tuple(b, c) }"""
    )
    part = part_for(module, find(module, "c"))
    assert verify(part) == []
    assert part.entry.instructions == [find(module, name) for name in "xyac"]
    assert [c.name for c in part.computations] == ["f", "e"]
    assert [i.name for i in module.entry.instructions] == list("xyabcr")


def test_cone_stops_at_its_height_but_takes_constants_along() -> None:
    module = parse_module(
        """HloModule m ENTRY e { x = f32[] parameter(0) two = f32[] constant(2)
        a = f32[] add(x, two) b = f32[] multiply(a, two) ROOT c = f32[] sine(b) }"""
    )
    assert [i.name for i in cone([find(module, "c")], height=1)] == ["two", "b", "c"]
    assert [i.name for i in cone([find(module, "c")])] == ["two", "a", "b", "c"]


def test_order() -> None:
    module = parse_module(DIAMOND)
    assert is_ordered(module.entry)
    module.entry.instructions.reverse()
    assert not is_ordered(module.entry)
