"""Attributes of instructions in every form, against the opcode table."""

from __future__ import annotations

from typing import Any

import pytest
from support.hlo_text import COMPUTATIONS, instruction, program, rejected

from hlotool.ir.attributes import (
    BackendConfig,
    ConvolutionDimensions,
    FrontendAttributes,
    OperandAlias,
    PaddingDim,
    RawText,
    ResultAccuracy,
    SliceDim,
    Statistics,
    Window,
    WindowDim,
)
from hlotool.ir.module import Computation
from hlotool.parser.reader import parse_module, parse_shape

X = "x = f32[2] parameter(0)"
Y = "y = f32[] parameter(1)"


def attribute(line: str, name: str) -> Any:
    """The attribute `name` of an instruction that may refer to x, y and COMPUTATIONS."""
    return instruction(X, Y, line, computations=COMPUTATIONS).attributes[name]


def refusal(line: str) -> str:
    """Why such a line is refused."""
    return rejected(program(X, Y, line, computations=COMPUTATIONS)).message


CALL = 'f32[] custom-call(x), custom_call_target="a"'
PAIR = parse_shape("(f32[2]{0})")


@pytest.mark.parametrize(
    ("call", "written", "expected"),
    [
        ("f32[2,2] broadcast(x)", "dimensions={1}", (1,)),
        ("f32[2] broadcast(y)", "dimensions={}", ()),
        ("f32[2] iota()", "iota_dimension=0", 0),
        ("f32[2] iota()", "iota_dimension=18446744073709551615", -1),
        ("f32[2] sort(x), dimensions={0}, to_apply=less", "is_stable=true", True),
        ("pred[2] compare(x, x), direction=GE", "type=TOTALORDER", "TOTALORDER"),
        ("f32[] dot(x, x)", "operand_precision={highest, default}", ("highest", "default")),
        ("f32[] dot(x, x)", "operand_precision={HIGHEST, Default}", ("highest", "default")),
        ("f32[] dot(x, x)", "algorithm=DOT_F32_F32_F32", "dot_f32_f32_f32"),
        ("f32[] dot(x, x)", "algorithm=dot_f32_f32_f32", "dot_f32_f32_f32"),
        ("f32[4] pad(x, y)", "padding=-1_2_1", (PaddingDim(-1, 2, 1),)),
        ("f32[4,4] pad(x, y)", "padding=0_1x2_3", (PaddingDim(0, 1), PaddingDim(2, 3))),
        ("f32[1] slice(x)", "slice={[0:1]}", (SliceDim(0, 1),)),
        ("f32[1,1] slice(x)", "slice={[0:2:3], [ 1 : 2 ]}", (SliceDim(0, 2, 3), SliceDim(1, 2))),
        ("f32[] custom-call()", 'custom_call_target="a\\"b"', 'a"b'),
        ("f32[] custom-call()", "custom_call_target='a'", "a"),
        ("token[] outfeed(x, after-all())", "outfeed_shape=(f32[2]{0})", PAIR),
        (CALL, "operand_layout_constraints={f32[2]{0}}", (parse_shape("f32[2]{0}"),)),
        (CALL, "output_to_operand_aliasing={{1}: (0, {2})}", (OperandAlias((1,), 0, (2,)),)),
        ("f32[] parameter(2)", "parameter_replication={true}", (True,)),
        ("f32[2] collective-permute(x)", "source_target_pairs={{0,1},{1,0}}", ((0, 1), (1, 0))),
        ("f32[2] collective-permute(x)", "source_target_pairs={}", ()),
        ("f32[2] batch-norm-inference(x, x, x, x, x), feature_index=0", "epsilon=1e-3", 1e-3),
        ("f32[] tan(y)", "result_accuracy={mode=highest}", ResultAccuracy("highest")),
        ("f32[] tan(y)", "result_accuracy={mode=HIGHEST}", ResultAccuracy("highest")),
        (
            "f32[] tan(y)",
            "result_accuracy={tolerance={atol=0.5,rtol=1e-3,ulps=4}}",
            ResultAccuracy(None, 0.5, 1e-3, 4),
        ),
        ("f32[] tan(y)", "statistics={visualizing_index=1,a=-1.5}", Statistics(1, (("a", -1.5),))),
        ("f32[] tan(y)", "statistics={}", Statistics(0, ())),
    ],
)
def test_values(call: str, written: str, expected: Any) -> None:
    name, _, _ = written.partition("=")
    assert attribute(f"z = {call}, {written}", name) == expected


# Windows and dimension labels


def windowed(text: str) -> Any:
    """The window of a reduce-window."""
    line = f"z = f32[2,2] reduce-window(w, y), window={text}, to_apply=add"
    lines = ("w = f32[4,4] parameter(0)", Y, line)
    return instruction(*lines, computations=COMPUTATIONS).attributes["window"]


def test_windows() -> None:
    assert windowed("{size=2x3}") == Window((WindowDim(2), WindowDim(3)))
    text = "{size=2x3 stride=1x2 pad=0_1x-1_2 lhs_dilate=1x2 rhs_dilate=3x1 rhs_reversal=0x1}"
    assert windowed(text) == Window((WindowDim(2, 1, 0, 1, 1, 3), WindowDim(3, 2, -1, 2, 2, 1, True)))
    assert windowed("{ stride=2x2 size=1x1 }") == Window((WindowDim(1, 2), WindowDim(1, 2)))
    assert windowed("{}") == Window(())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{size=2x2 size=2x2}", "the window says size= twice"),
        ("{size=2x2 stride=2}", "the window has 2 sizes and 1 for stride="),
        ("{size=2x2 pad=0_0_0x1_1_1}", "the padding of a window has two numbers for each dimension"),
        ("{size=2x2 girth=1}", "found girth="),
    ],
)
def test_wrong_windows(text: str, message: str) -> None:
    assert message in refusal(f"z = f32[2,2] reduce-window(x, y), window={text}, to_apply=add")


def labelled(text: str) -> Any:
    """The dimension labels of a convolution."""
    return instruction(X, f"z = f32[] convolution(x, x), dim_labels={text}").attributes["dim_labels"]


def test_dimension_labels() -> None:
    expected = ConvolutionDimensions(0, 3, (1, 2), 2, 3, (0, 1), 0, 3, (1, 2))
    assert labelled("b01f_01io->b01f") == expected
    assert labelled("bf_io->bf") == ConvolutionDimensions(0, 1, (), 0, 1, (), 0, 1, ())
    with_unused = ConvolutionDimensions(0, 3, (2, 1), 1, 2, (0, 3), 0, 1, (2, 3), (4,), (), (4, 5))
    assert labelled("b10f?_0io1->bf01??") == with_unused


@pytest.mark.parametrize(
    "text", ["b0f_0io->b0", "b0f_0io->b1f", "bb0f_0io->b0f", "b0f_01io->b0f", "b0f0_0io->b0f", "0_0->0"]
)
def test_wrong_dimension_labels(text: str) -> None:
    rejected(program(X, f"z = f32[] convolution(x, x), dim_labels={text}"))


# Computations


def test_computations_by_name() -> None:
    called = attribute("z = f32[] reduce(x, y), dimensions={0}, to_apply=%add", "to_apply")
    assert isinstance(called, Computation)
    assert called.name == "add"
    line = "z = f32[2] conditional(i, x, x), branch_computations={negated, %negated}"
    branches = instruction("i = s32[] parameter(1)", X, line, computations=COMPUTATIONS)
    assert [c.name for c in branches.called] == ["negated", "negated"]


def test_computations_without_a_name() -> None:
    body = "{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }"
    module = parse_module(program(X, Y, f"z = f32[] reduce(x, y), dimensions={{0}}, to_apply={body}"))
    (called,) = module.entry.root.called
    assert [c.name for c in module.computations] == ["_", "main"]
    assert called is module.computations[0]
    assert called.root.opcode == "add"


def test_computations_without_a_name_get_one_that_is_free() -> None:
    one = "{ a = f32[2] parameter(0) }"
    line = f"z = f32[2] conditional(i, x, x), branch_computations={{{one}, {one}}}"
    text = program("i = s32[] parameter(1)", X, line, computations=f"_ {one}\n_.1 {one}")
    names = [c.name for c in parse_module(text).computations]
    assert names == ["_", "_.1", "_.2", "_.3", "main"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("z = f32[] call(), to_apply=nowhere", "z: no computation before this one is called nowhere"),
        ("z = f32[] call(), to_apply=main", "z: no computation before this one is called main"),
        ("z = f32[] call(), to_apply={}", "expected ROOT or a name, found '}'"),
        ("z = f32[] call(), to_apply={a = f32[] add(x, y)}", "a: no instruction before this one is called x"),
    ],
)
def test_wrong_computations(line: str, message: str) -> None:
    assert message in refusal(line)


# Control predecessors


def test_control_predecessors() -> None:
    module = parse_module(program(X, Y, "z = f32[2] negate(x), control-predecessors={x, %y, x}"))
    root = module.entry.root
    assert [i.name for i in root.control_predecessors] == ["x", "y"]
    assert root.attributes == {}
    assert "is called z" in refusal("z = f32[2] negate(x), control-predecessors={z}")
    assert "found '}'" in refusal("z = f32[2] negate(x), control-predecessors={}")


# Text that is carried along


@pytest.mark.parametrize(
    ("written", "config"),
    [
        ('"a\\"b\\n"', BackendConfig('a"b\n', quoted=True)),
        ("''", BackendConfig("", quoted=True)),
        ('{"a": {"b": [1, "}"]}}', BackendConfig('{"a": {"b": [1, "}"]}}')),
        ("{}", BackendConfig("{}")),
        ("{a = 1 : i32, b = {c = @d}}", BackendConfig("{a = 1 : i32, b = {c = @d}}")),
        ('{"//": "/*", /* x */ "a\\\\": 1}', BackendConfig('{"//": "/*", /* x */ "a\\\\": 1}')),
    ],
)
def test_backend_configs(written: str, config: BackendConfig) -> None:
    assert attribute(f"z = f32[2] negate(x), backend_config={written}", "backend_config") == config


def test_frontend_attributes() -> None:
    written = '{a="1",b.c={x = "}" {y}},d=\'2\',a="3"}'
    found = attribute(f"z = f32[2] negate(x), frontend_attributes={written}", "frontend_attributes")
    assert found == FrontendAttributes((("a", '"3"'), ("b.c", '{x = "}" {y}}'), ("d", '"2"')))
    empty = attribute("z = f32[2] negate(x), frontend_attributes={}", "frontend_attributes")
    assert empty == FrontendAttributes(())


@pytest.mark.parametrize(
    ("line", "name", "text"),
    [
        ('z = f32[2] negate(x), origin={{"a" {0}}}', "origin", '{{"a" {0}}}'),
        ('z = f32[2] negate(x), origin={({"a"},\n ({"b"  {1}}))}', "origin", '{({"a"}, ({"b" {1}}))}'),
        ("z = f32[2] negate(x), origin={[synthetic_call]}", "origin", "{[synthetic_call]}"),
        (
            'z = f32[2] domain(x), domain={kind="sharding", entry={maximal device=0}, exit={replicated}}',
            "domain",
            '{kind="sharding", entry={maximal device=0}, exit={replicated}}',
        ),
    ],
)
def test_raw_text(line: str, name: str, text: str) -> None:
    assert attribute(line, name) == RawText(text)


# Which attributes an opcode takes


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("f32[] tan(y), colour=1", 'z: unexpected attribute "colour"; tan takes result_accuracy; every '),
        (
            "f32[] compare(y, y), direction=LT, k=1",
            'unexpected attribute "k"; compare takes direction, order, type',
        ),
        ("f32[] compare(y, y)", "z: the attribute direction of compare is missing"),
        ("f32[2] fusion(x), calls=negated", "z: the attribute kind of fusion is missing"),
        ("f32[] dot(x, x), algorithm=unset, algorithm=unset", "z: the attribute algorithm is given twice"),
        ("f32[] compare(y, y), direction=NEAR", "z: NEAR is not a value of direction, which is one of EQ,"),
        ("f32[] dot(x, x), operand_precision={high,low}", "z: low is not a value of operand_precision"),
        ("f32[2] transpose(x), dimensions=0", "expected '{', found 0"),
        ("f32[2] transpose(x), dimensions={a}", "expected '}' or an integer, found a"),
        ("f32[2] iota(), iota_dimension={0}", "expected an integer, found '{'"),
        ("f32[2] iota(), iota_dimension=9999999999999999999999", "does not fit in 64 bits"),
        ("f32[2] batch-norm-inference(x, x, x, x, x), epsilon=1e999", "out of range for a double"),
        ("f32[] custom-call(), literal=token[] 1", "token[] has no literals"),
        ('f32[2] domain(x), domain={kind="sharding"}', "a domain says kind="),
        ("f32[] tan(y) sharding={replicated}", "expected ',', '}', ROOT or a name, found sharding="),
        ("f32[] tan(y), sharding = {}", "found sharding: there is no blank before the '=' of sharding="),
        ("f32[] tan(y), result_accuracy={mode=low}", "low is none of default, highest"),
        ("f32[2] gather(x, x), slice_sizes={{1}}", "slice_sizes of gather is a list of numbers"),
    ],
)
def test_wrong_attributes(call: str, message: str) -> None:
    assert message in refusal(f"z = {call}")


def test_obsolete_attributes_are_carried_unless_the_reader_is_strict() -> None:
    text = program(
        X,
        'z = f32[2] all-reduce(x), replica_groups={}, to_apply=add, all_reduce_id=3, barrier="x"',
        computations=COMPUTATIONS,
    )
    attributes = parse_module(text).entry.root.attributes
    assert (attributes["all_reduce_id"], attributes["barrier"]) == (RawText("3"), RawText('"x"'))
    assert 'unexpected attribute "all_reduce_id"' in rejected(text, strict=True).message
