"""Programs as FileCheck tests. That LLVM's FileCheck accepts them was tried with its Python port."""

from __future__ import annotations

import re

import hlotool
from hlotool.ir.filecheck import filecheck_test
from hlotool.rewrite.passes.base import Context
from hlotool.rewrite.passes.fuse import Fuse

PROGRAM = """HloModule m
ENTRY %e (x: f32[2]) -> f32[2] {
  %x = f32[2]{0} parameter(0)
  %y.1 = f32[2]{0} negate(%x)
  ROOT %z = f32[2]{0} multiply(%y.1, %y.1), metadata={op_name="z"}
}
"""


def checked(test: str) -> list[str]:
    return re.findall(r"^// CHECK.*$", test, re.MULTILINE)


def test_names_are_bound_and_asked_for() -> None:
    module = hlotool.parse(PROGRAM)
    test = filecheck_test(module.to_text(), module, "dce")
    assert test.startswith("// RUN: hlotool opt %s --passes 'dce' | FileCheck %s\n\nHloModule m")
    assert checked(test) == [
        "// CHECK-LABEL: ENTRY",
        "// CHECK-NEXT: [[X:%[^ ]+]] = f32[2]{0} parameter(0)",
        "// CHECK-NEXT: [[Y_1:%[^ ]+]] = f32[2]{0} negate([[X]])",
        "// CHECK-NEXT: ROOT [[Z:%[^ ]+]] = f32[2]{0} multiply([[Y_1]], [[Y_1]])",
    ]


def test_the_file_is_a_program_too() -> None:
    module = hlotool.parse(PROGRAM)
    assert hlotool.parse(filecheck_test(PROGRAM, module, "")).to_text() == module.to_text()


def test_computations_are_called_by_what_they_were_bound_to() -> None:
    module = hlotool.parse(PROGRAM)
    Fuse().run(module, Context("fuse"))
    lines = checked(filecheck_test(PROGRAM, module, "fuse"))
    (name,) = re.findall(r"^// CHECK: \[\[(\w+):", lines[0])
    assert lines[-1].endswith(f"calls=[[{name}]]")


def test_brackets_of_the_program_are_no_brackets_of_filecheck() -> None:
    text = """HloModule m
ENTRY %e () -> s32[1,1] {
  ROOT %c = s32[1,1]{1,0} constant({{7}})
}
"""
    (_, line) = checked(filecheck_test(text, hlotool.parse(text), ""))
    assert r"constant({{\{\{}} 7 } })" in line or r"constant({ {7} })" in line
