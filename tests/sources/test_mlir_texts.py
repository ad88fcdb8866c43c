"""Texts of MLIR: which programs they are, alone and in what quotes them, and what of them is no program."""

from __future__ import annotations

import re
import textwrap

import pytest
from support.budget import processor_budget
from support.dumps import Write

from hlotool.errors import DumpError, Unsupported
from hlotool.parser.mlir.reader import parse_mlir
from hlotool.sources.directory import open_dump
from hlotool.sources.mlir import is_mlir
from hlotool.sources.wrapped import wrapped_texts

BODY = "  %0 = stablehlo.abs %a : tensor<2xf32>\n  return %0 : tensor<2xf32>\n}\n"


def function(name: str, before: str = "func.func", body: str = BODY) -> str:
    return f"{before} @{name}(%a: tensor<2xf32>) -> tensor<2xf32> {{\n{body}"


def opcodes(content: str) -> list[list[str]]:
    """Of each program that is found in a text, by our own reader."""
    programs = [one.read().decode() for one in wrapped_texts(content.encode())]
    return [[made.opcode for made in parse_mlir(text).entry.instructions] for text in programs]


CALL = "  %0 = call @shared(%a) : (tensor<2xf32>) -> tensor<2xf32>\n  return %0 : tensor<2xf32>\n}\n"


OLD_BODY = """  %0 = "xla_hlo.abs"(%a) : (tensor<2xf32>) -> tensor<2xf32>
  "std.return"(%0) : (tensor<2xf32>) -> ()
}
"""
INDENTED = textwrap.indent(function("f"), "    ")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (function("f"), [["parameter", "abs"]]),
        (function("f") + function("g"), [["parameter", "abs"]] * 2),
        (f"{function('f')}// -----\n{function('g')}", [["parameter", "abs"]] * 2),
        (f"{function('f')}//--- second.mlir\n{function('g')}", [["parameter", "abs"]] * 2),
        # What another one calls is no program for itself; what a comment names is no call.
        (
            function("f", body=CALL) + function("shared") + f"// @f, @g\n{function('g')}",
            [["parameter", "call"], ["parameter", "abs"]],
        ),
        (function("f") + function("main"), [["parameter", "abs"]]),
        (function("f") + function("g", "func.func private"), [["parameter", "abs"]]),
        (function("f", "func.func private") + function("g", "func.func private"), [["parameter", "abs"]] * 2),
        (f"module {{\n{function('f')}{function('g')}}}\n", [["parameter", "abs"]] * 2),
        (f'sdy.mesh @mesh = <["x"=2]>\n{function("f")}', [["parameter", "abs"]]),
        (f"some text\n```\n{function('f')}```\n", [["parameter", "abs"]]),
        # A function as in 2020.
        (function("f", "func", OLD_BODY), [["parameter", "abs"]]),
        # Raw strings of R and Rust, the latter in the comments of its documentation.
        (f'src <- r"(\n{function("f")})"\n', [["parameter", "abs"]]),
        (re.sub("^", "//! ", f'let m = br#"\n{function("f")}"#;', flags=re.M), [["parameter", "abs"]]),
        # What a session of R prints again and again, first without what it returns.
        (
            "f\n"
            + re.sub("^", "#> ", function("main", body="  \n}") + "f in:\n" + function("main"), flags=re.M),
            [["parameter", "abs"]],
        ),
        (
            function("main") + function("main", body=CALL) + function("shared"),
            [["parameter", "abs"], ["parameter", "call"]],
        ),
        # A module in a module, behind the prompt of a console.
        (f">>> print(m)\nmodule @outer {{\n  module @inner {{\n{INDENTED}  }}\n}}\n", [["parameter", "abs"]]),
    ],
)
def test_programs(content: str, expected: list[list[str]]) -> None:
    assert opcodes(content) == expected


@pytest.mark.parametrize(
    "content",
    [
        "Call `func.func` and then `module {`.",
        "# CHECK: module @m {\n# CHECK:  func.func @f(%[[A:.+]]: tensor<2xf32>) {\n# CHECK:  return %[[A]]\n",
        f'text = f"""\nmodule {{{{\n{function("f").replace("{", "{{")}"""\n',
        'start = "module @m {\\n  func.func @main("\n',
        '"""\nmodule {\nfunc.func @main(%a: #{t()}) -> #{t()} {\n  return %a : #{t()}\n}\n}\n"""\n',
        'sprintf("func.func @main(%a: %s) -> %s {\\n  return %a : %s\\n}\\n", t, t, t)\n',
    ],
)
def test_mentions_patterns_and_templates_are_no_programs(content: str) -> None:
    assert wrapped_texts(content.encode()) == ()


def test_lines_keep_their_numbers() -> None:
    text = function("f") + "\n" + function("g", body=BODY.replace("stablehlo.abs", "foo.bar"))
    _, second = (one.read().decode() for one in wrapped_texts(text.encode()))
    with pytest.raises(Unsupported, match="is no operation of HLO") as raised:
        parse_mlir(second)
    assert raised.value.location.line == text.split("\n").index("  %0 = foo.bar %a : tensor<2xf32>") + 1


def test_functions_of_a_file_are_modules_with_their_names(write: Write) -> None:
    path = write(("a.mlir", function("f") + function("g"))) / "a.mlir"
    assert [(module.name, module.title.rpartition("#")[2]) for module in open_dump(path).modules] == [
        ("f", "1"),
        ("g", "2"),
    ]


@pytest.mark.parametrize(
    "content",
    [
        "import os\n\nvalues = {}\nfirst = values[0]\nsecond = values[first]\n",
        '#include "a.h"\nvoid f() {\n  out = values[i];\n  s8 = u8[3] if x else y;\n}\n',
        "module A\nstep = positions[1, i] - positions[2, i]\nend\n",
        'var names = map[int32]string{\n\t0: "A",\n}\n',
        "# Notes\n\nThe step is\n\n    %f = f32[4]{0} fusion(f32[4]{0} %x), kind=kLoop, calls=%c\n",
        'fmt.Printf("HloModule proto:\\n%s\\n", text)\n',
        'self.assertIn("HloModule jit_f", content)\n',
        "HloModule\n  └── HloComputation\n",
        "if kind == TokKind::HloModule ||\n   kind == TokKind::Entry {\n  x (y) -> z {\n",
    ],
)
def test_sources_without_programs_are_no_broken_hlo(write: Write, content: str) -> None:
    path = write(("file.txt", content)) / "file.txt"
    with pytest.raises(DumpError, match="not HLO"):
        open_dump(path)


def test_functions_amid_other_lines_without_a_fence() -> None:
    calling = function("main", body=BODY.replace("stablehlo.abs %a :", "call @g(%a) : (tensor<2xf32>) ->"))
    called = function("g").replace("func.func", "func.func private")
    text = f"# If it works\n\n    Output\n{calling}and\n{called}\n# errors\n\n    x Got 1 and 2.\n"
    [one] = wrapped_texts(text.encode())
    module = parse_mlir(one.read().decode())
    assert [i.opcode for i in module.instructions()].count("call") == 1
    assert "errors" not in one.read().decode()


@pytest.mark.parametrize("behind", [">>> f.compile()", "# Then the graph:\nnode {", "by the time"])
def test_what_follows_a_program_is_none_of_it(behind: str) -> None:
    module = f"module @m {{\n{function('main')}}}\n"
    assert opcodes(f"# Use\n\n```\n{module}\n{behind}\n```\n") == [["parameter", "abs"]]
    resources = "{-#\n  dialect_resources: {}\n#-}\n"
    [one] = wrapped_texts(f"```\n{module}\n{resources}```\n".encode())
    assert "dialect_resources" in one.content.decode()


def test_a_generic_operation_may_come_first() -> None:
    text = '"shape.Dim"() {sym_name = "S0"} : () -> ()\n' + function("f")
    assert is_mlir(text.encode())
    assert not is_mlir(b'"name" (quoted) of func.func')


def test_many_functions_take_no_long_time() -> None:
    text = "".join(function(f"f{n}") for n in range(300))
    with processor_budget(3):
        assert len(wrapped_texts(text.encode())) == 300
