"""Forms of modules and computations, names, tables of source positions."""

from __future__ import annotations

import pytest
from support.hlo_text import large_texts_begin_at, program, rejected

from hlotool.ir.attributes import (
    BufferDonor,
    EntryLayout,
    FileLocation,
    FrontendAttributes,
    ParameterAlias,
    RawText,
    StackFrame,
)
from hlotool.parser.reader import parse_module, parse_shape

BODY = "{ ROOT p = f32[] parameter(0) }"


# What a text may be


def test_a_module_with_a_header() -> None:
    module = parse_module(f"HloModule jit_f\n\nENTRY %main.1 (p: f32[]) -> f32[] {BODY}", "here.hlo")
    assert (module.name, module.entry.name, module.path) == ("jit_f", "main.1", "here.hlo")
    assert module.attributes == {}
    assert module.stack_frames is None


@pytest.mark.parametrize("name", ["m", "%m", "m:", "a.b-c_1", "ENTRYx"])
def test_names_of_modules(name: str) -> None:
    assert parse_module(f"HloModule {name} ENTRY e {BODY}").name == name.strip("%:")


def test_computations_without_a_header() -> None:
    module = parse_module(f"f {BODY}  ENTRY g (p: f32[]) -> f32[] {BODY} h {BODY}")
    assert [c.name for c in module.computations] == ["f", "g", "h"]
    assert (module.name, module.entry.name) == ("module_g", "g")


def test_without_entry_the_last_computation_runs() -> None:
    assert parse_module(f"HloModule m f {BODY} g {BODY}").entry.name == "g"


def test_without_root_the_last_instruction_is_returned() -> None:
    module = parse_module("e { a = f32[] parameter(0)  b = f32[] negate(a) }")
    assert module.entry.root.name == "b"


def test_root_may_come_first() -> None:
    module = parse_module("e { ROOT a = f32[] parameter(0)  b = f32[] negate(a) }")
    assert module.entry.root.name == "a"


@pytest.mark.parametrize("signature", ["", "() -> f32[]", "(x: s8[3], y: (f32[], token[])) -> f32[]"])
def test_parameters_of_signatures_mean_nothing(signature: str) -> None:
    assert parse_module(f"HloModule m ENTRY e {signature} {BODY}").entry.root.shape == parse_shape("f32[]")


def test_execution_threads_of_computations() -> None:
    text = f'HloModule m f {BODY}, execution_thread="host"\nENTRY e {BODY}'
    assert [c.execution_thread for c in parse_module(text).computations] == ["host", "main"]


def test_lines() -> None:
    module = parse_module("HloModule m\n\nf {\n  p = f32[]\n   parameter(0)\n}\nENTRY\ne " + BODY)
    assert [c.line for c in module.computations] == [3, 8]
    assert [i.line for i in module.instructions()] == [4, 8]


# A single instruction


def test_a_single_instruction() -> None:
    module = parse_module("x = f32[2] add(f32[2] a, f32[2] %b)")
    assert [(i.name, i.opcode) for i in module.instructions()] == [
        ("a", "parameter"),
        ("b", "parameter"),
        ("x", "add"),
    ]
    assert (module.name, module.is_scheduled) == ("_", True)


def test_a_single_instruction_without_a_name() -> None:
    module = parse_module("f32[2] negate(f32[2])")
    assert [i.name for i in module.instructions()] == ["_0", "_"]


@pytest.mark.parametrize("operand", ["", "a"])
def test_operands_of_a_single_instruction_need_shapes(operand: str) -> None:
    error = rejected(f"x = f32[] negate({operand})")
    assert "cannot become a parameter" in error.message or "takes 1 operand" in error.message


# Names


@pytest.mark.parametrize(
    "name", ["%x", "x", "x.1", "x-y", "_", "__xla_x", "ROOTx", "parameter", "T", "%ENTRY"]
)
def test_names_of_instructions(name: str) -> None:
    instruction = parse_module(program(f"{name} = f32[] parameter(0)")).entry.root
    assert instruction.name == name.removeprefix("%")


@pytest.mark.parametrize(
    "name", ["1x", "true", "inf", "f32", "%f32", "%token", "__x", "replicated", "ä", "x/y"]
)
def test_what_is_no_name(name: str) -> None:
    rejected(program(f"{name} = f32[] parameter(0)"))


def test_a_name_and_its_equals_sign_are_apart() -> None:
    error = rejected(program("x= f32[] parameter(0)"))
    assert error.message == "expected ROOT or a name, found x=: a name needs a blank before its '='"
    parse_module(program("x =f32[] parameter(0)"))


def test_operands_may_come_with_their_shape_and_a_colon() -> None:
    text = program("x = f32[2] parameter(0)", "y = f32[2] add(f32[2]{0} x:, %x)")
    assert [o.name for o in parse_module(text).entry.root.operands] == ["x", "x"]


# Comments


@pytest.mark.parametrize(
    "comment", ["/* } */", "/**/", "/* * / ** */", "// }\n", "//\n", "/* a\n b */", "\t", "\r\n"]
)
def test_comments_stand_everywhere(comment: str) -> None:
    tokens = [
        "HloModule",
        "m",
        "ENTRY",
        "e",
        "{",
        "p ",
        "=",
        "f32",
        "[",
        "2",
        "]",
        "{",
        "0",
        "}",
        "parameter",
    ]
    tokens += ["(", "0", ")", ",", "metadata=", "{", "op_name=", '"x"', "}", "}"]
    module = parse_module(comment + comment.join(tokens) + comment)
    assert module.entry.root.shape == parse_shape("f32[2]{0}")


@pytest.mark.parametrize("comment", ["/*", "/* *", "/*/", "/* \0 */", "// \0"])
def test_what_is_no_comment(comment: str) -> None:
    rejected(f"HloModule m {comment}\n ENTRY e {BODY}")


# Attributes of the module


def test_attributes_of_the_module() -> None:
    attributes = (
        ", is_scheduled=true, alias_passthrough_params=false, replica_count=2, num_partitions=4, "
        "allow_spmd_sharding_propagation_to_output={true,false}, "
        "allow_spmd_sharding_propagation_to_parameters=true, "
        "input_output_alias={ {0}: (0, {}, must-alias), {1}: (0, {1}) }, buffer_donor={ (1, {}) }, "
        "entry_computation_layout={(f32[2]{0})->(f32[2]{0}, f32[2]{0})}, "
        'frontend_attributes={a="b",c={d {e}}}, origin_recovery_table={{"x" {0}} : {"y"}, "f32[] x"}'
    )
    lines = ("p = f32[2] parameter(0)", "ROOT t = (f32[2], f32[2]) tuple(p, p)")
    module = parse_module(program(*lines, header=attributes))
    array, pair = parse_shape("f32[2]{0}"), parse_shape("(f32[2]{0}, f32[2]{0})")
    assert module.attributes == {
        "is_scheduled": True,
        "alias_passthrough_params": False,
        "replica_count": 2,
        "num_partitions": 4,
        "allow_spmd_sharding_propagation_to_output": (True, False),
        "allow_spmd_sharding_propagation_to_parameters": True,
        "input_output_alias": (ParameterAlias((0,), 0, (), "must-alias"), ParameterAlias((1,), 0, (1,))),
        "buffer_donor": (BufferDonor(1, ()),),
        "entry_computation_layout": EntryLayout((array,), pair),
        "frontend_attributes": FrontendAttributes((("a", '"b"'), ("c", "{d {e}}"))),
        "origin_recovery_table": RawText('{{"x" {0}} : {"y"}, "f32[] x"}'),
    }


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        (", flavour=1", 'unexpected module attribute "flavour"; a module takes alias_passthrough_params, '),
        (", replica_count=1, replica_count=1", "the attribute replica_count is given twice"),
        (", input_output_alias={ {0}: (0, {}) }", "input_output_alias: the module has no output {0}"),
        (", input_output_alias={ {}: (0, {}), {}: (0, {}) }", "input_output_alias: two aliases of output {}"),
        (", input_output_alias={ {}: (0, {}, must) }", "must is none of may-alias, must-alias"),
        (", is_scheduled=1", "expected true or false, found 1"),
        (" replica_count=1", "expected ',', ENTRY, FileNames or a name, found replica_count="),
    ],
)
def test_wrong_attributes_of_the_module(attributes: str, message: str) -> None:
    assert message in rejected(program("p = f32[] parameter(0)", header=attributes)).message


# Tables of source positions

TABLES = """
FileNames
1 "a.py"
2 'b\\'.py'
FunctionNames
1 "f"
FileLocations
1 {file_name_id=2 function_name_id=1 line=3 end_line=3 column=-1 end_column=5}
2 { file_name_id=1, function_name_id=1, line=3, end_line=3, column=4, end_column=5 }
StackFrames
1 {file_location_id=1 parent_frame_id=1}
"""


def test_tables_of_source_positions() -> None:
    tables = parse_module(program("p = f32[] parameter(0)", header=TABLES)).stack_frames
    assert tables is not None
    assert tables.file_names == {1: "a.py", 2: "b'.py"}
    assert tables.function_names == {1: "f"}
    assert tables.file_locations == {1: FileLocation(2, 1, 3, 3, -1, 5), 2: FileLocation(1, 1, 3, 3, 4, 5)}
    assert tables.stack_frames == {1: StackFrame(1, 1)}


@pytest.mark.parametrize(
    ("written", "instead"),
    [
        ("FunctionNames\n", ""),
        ("parent_frame_id=1", "parent=1"),
        (" parent_frame_id=1", ""),
        ("line=3 ", "line=3 line=3 "),
        ('1 "f"', "1 f"),
        ("line=3 ", "line=99999999999999999999 "),
    ],
)
def test_wrong_tables(written: str, instead: str) -> None:
    assert written in TABLES
    rejected(program("p = f32[] parameter(0)", header=TABLES.replace(written, instead, 1)))


def test_tables_of_large_texts_with_blanks_before_a_title() -> None:
    header = TABLES.replace("2 'b\\'.py'\n", "").replace("{ ", "{").replace(", ", " ").replace(" }", "}")
    text = program("  %p = f32[] parameter(0)", header=header)
    with large_texts_begin_at(0):
        expected, found = (
            parse_module(t).stack_frames for t in (text, text.replace("FunctionNames", "  FunctionNames"))
        )
    assert expected is not None
    assert found == expected


# Rules that concern whole computations


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"HloModule m f {BODY} f {BODY}", "two computations are called f"),
        (f"HloModule m ENTRY f {BODY} ENTRY g {BODY}", "two ENTRY computations: f is one already"),
        (f"HloModule m f (p: f32[]) -> f32[2] {BODY}", "the signature says f32[2], the root p is f32[]"),
        ("HloModule m f { p = f32[] parameter(1) }", "there is no parameter 0, but one after it"),
        ("HloModule m f { }", "expected ROOT or a name, found '}'"),
        ("HloModule m", "expected ',', ENTRY, FileNames or a name, found the end of the text"),
        ("", "expected '(', ENTRY, HloModule, ROOT, a name or a shape, found the end of the text"),
        (f"HloModule m f {BODY}, sharding={{replicated}}", "a computation takes execution_thread"),
        (f"f (p: f32[]) -> f32[] {BODY}", "expected '=' or '{', found '('"),
        (f"HloModule m f {BODY} x = f32[] parameter(0)", "found"),
        (f"HloModule true f {BODY}", "expected a name, found the reserved word true"),
    ],
)
def test_wrong_computations(text: str, message: str) -> None:
    assert message in rejected(text).message
