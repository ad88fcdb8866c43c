"""Elements of tuples as operands, `name#index`: how XLA's dumps are written since jaxlib 0.12."""

from __future__ import annotations

import pytest
from support.hlo_text import large_texts_begin_at, program, rejected
from support.xla import JAXLIB, NEWER_TEXT, oracle

from hlotool.ir.module import Module
from hlotool.ir.types import TupleShape
from hlotool.parser.reader import parse_module

X, Y = "x = f32[4] parameter(0)", "y = s32[5] parameter(1)"
Q = "q = (f32[4], s32[5]) tuple(x, y)"
R = "r = ((f32[4], s32[5]), s32[5]) tuple(q, y)"

#: Lines after X, Y, Q, R; all instructions as jaxlib 0.12.0.1 prints them again, in our order.
CASES = {
    "one instruction for all uses": (
        ("w = f32[4] add(q#0, %q#0)", "v = f32[4] negate(f32[4] q#0)"),
        ("q_0 = get-tuple-element(q)", "w = add(q_0, q_0)", "v = negate(q_0)"),
    ),
    "an element of an element": (
        ("w = f32[4] negate(%r#0#0)", "v = s32[5] negate(r#0#1)", "u = s32[5] add(v, r#1)"),
        (
            "r_0 = get-tuple-element(r)",
            "r_0_0 = get-tuple-element(r_0)",
            "w = negate(r_0_0)",
            "r_0_1 = get-tuple-element(r_0)",
            "v = negate(r_0_1)",
            "r_1 = get-tuple-element(r)",
            "u = add(v, r_1)",
        ),
    ),
    "a name that is taken": (
        ("q_0 = f32[4] negate(x)", "w = f32[4] add(q#0, q_0)"),
        ("q_0 = negate(x)", "q_0.1 = get-tuple-element(q)", "w = add(q_0.1, q_0)"),
    ),
    "a name that is taken later": (
        ("w = f32[4] negate(q#0)", "q_0 = f32[4] negate(w)"),
        ("q_0.1 = get-tuple-element(q)", "w = negate(q_0.1)", "q_0 = negate(w)"),
    ),
    "beside an instruction that does the same": (
        ("g = f32[4] get-tuple-element(q), index=0", "w = f32[4] add(q#0, g)"),
        ("g = get-tuple-element(q)", "q_0 = get-tuple-element(q)", "w = add(q_0, g)"),
    ),
    "blanks": (
        ("w = f32[4] add(q #0, %q# 0 )",),
        ("q_0 = get-tuple-element(q)", "w = add(q_0, q_0)"),
    ),
}


def lines(module: Module) -> list[str]:
    """`name = opcode(operands)` of what follows R."""
    listed = [
        f"{i.name} = {i.opcode}({', '.join(o.name for o in i.operands)})" for i in module.entry.instructions
    ]
    return listed[4:]


@pytest.mark.parametrize("first_large", [0, 10**9], ids=["large", "small"])
@pytest.mark.parametrize("case", CASES)
def test_elements(case: str, first_large: int) -> None:
    written, expected = CASES[case]
    with large_texts_begin_at(first_large):
        module = parse_module(program(X, Y, Q, R, *written))
    assert lines(module) == list(expected)
    for instruction in module.entry.instructions:
        if instruction.opcode == "get-tuple-element":
            whole = instruction.operands[0].shape
            assert isinstance(whole, TupleShape)
            assert instruction.shape == whole.elements[instruction.integer("index")]
    assert lines(parse_module(module.to_text())) == list(expected)


@pytest.mark.xla
@pytest.mark.skipif(JAXLIB < NEWER_TEXT, reason="this XLA does not read elements as operands")
@pytest.mark.parametrize("case", CASES)
def test_xla_reads_the_same(case: str) -> None:
    """But for the place of the elements, which it puts right after their tuple, and names that are taken."""
    text = program(X, Y, Q, R, *CASES[case][0])
    theirs = [line.split(" = ")[1] for line in lines(parse_module(oracle().canonical(text)))]
    ours = [line.split(" = ")[1] for line in lines(parse_module(text))]
    assert len(theirs) == len(ours)
    assert sorted(line.partition("(")[0] for line in theirs) == sorted(
        line.partition("(")[0] for line in ours
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("w = f32[4] negate(q#2)", "w: q is (f32[4], s32[5]), which has no element 2"),
        ("w = f32[4] negate(q#-1)", "w: q is (f32[4], s32[5]), which has no element -1"),
        ("w = f32[4] negate(x#0)", "w: x is f32[4], which has no element 0"),
        ("w = f32[4] negate(q#0#0)", "w: q#0 is f32[4], which has no element 0"),
        ("w = f32[4] negate(z#0)", "w: no instruction before this one is called z"),
        ("w = f32[4] negate(q#x)", "expected an integer, found x"),
        ("w = f32[4] add(q#0, q_0)", "w: no instruction before this one is called q_0"),
    ],
)
def test_wrong_elements(line: str, message: str) -> None:
    assert message in rejected(program(X, Y, Q, line)).message
