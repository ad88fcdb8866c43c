"""From a part of a result to the user's own line."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlotool
from hlotool.findings.provenance import source_of_output

HEAD = "HloModule m\n\n"

TABLES = """HloModule m

FileNames
1 "train.py"
2 "layers.py"

FunctionNames
1 "main"
2 "dense"

FileLocations
1 {file_name_id=1 function_name_id=1 line=10 end_line=10 column=1 end_column=2}
2 {file_name_id=2 function_name_id=2 line=33 end_line=34 column=5 end_column=9}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}

"""

FUSED = """fused {
  p = f32[2] parameter(0)
  ROOT n = f32[2] negate(p), metadata={op_name="jit(f)/neg" source_file="model.py" source_line=5}
}

"""


def test_a_tuple_leads_to_the_element() -> None:
    module = hlotool.parse(
        HEAD + "ENTRY e {\n  x = f32[2] parameter(0)\n  a = f32[2] negate(x)\n  b = f32[2] abs(x)\n"
        "  inner = (f32[2], f32[2]) tuple(a, b)\n  ROOT r = ((f32[2], f32[2]), f32[2]) tuple(inner, x)\n}\n"
    )
    found = source_of_output(module, (0, 1))
    assert (found.instruction, found.opcode, found.line) == ("b", "abs", 6)
    assert source_of_output(module, (1,)).opcode == "parameter"


def test_what_only_passes_a_value_on_is_looked_through() -> None:
    module = hlotool.parse(
        HEAD
        + "ENTRY e {\n  x = f32[2] parameter(0)\n  a = f32[2] negate(x)\n  t = (f32[2], f32[2]) tuple(x, a)\n"
        "  g = f32[2] get-tuple-element(t), index=1\n  ROOT c = f32[2] copy(g)\n}\n"
    )
    assert source_of_output(module, ()).instruction == "a"


def test_a_call_leads_into_the_callee() -> None:
    module = hlotool.parse(
        HEAD + FUSED + "ENTRY e {\n  x = f32[2] parameter(0)\n  ROOT c = f32[2] call(x), to_apply=fused\n}\n"
    )
    assert source_of_output(module, ()).instruction == "n"


def test_a_fusion_without_metadata_borrows_that_of_its_root() -> None:
    module = hlotool.parse(
        HEAD + FUSED + "ENTRY e {\n  x = f32[2] parameter(0)\n"
        "  ROOT c = f32[2] fusion(x), kind=kLoop, calls=fused\n}\n"
    )
    found = source_of_output(module, ())
    assert (found.instruction, found.opcode) == ("c", "fusion")
    assert (found.op_name, found.file, found.file_line) == ("jit(f)/neg", "model.py", 5)


def test_stack_frames() -> None:
    module = hlotool.parse(
        TABLES + "ENTRY e {\n  x = f32[2] parameter(0)\n"
        '  ROOT n = f32[2] negate(x), metadata={op_name="jit(f)/neg" stack_frame_id=2}\n}\n'
    )
    found = source_of_output(module, ())
    assert (found.file, found.file_line, found.function) == ("layers.py", 33, "dense")


@pytest.mark.parametrize("metadata", ["", ', metadata={op_name="jit(f)/neg" stack_frame_id=99}'])
def test_without_a_position_there_is_none(metadata: str) -> None:
    module = hlotool.parse(
        HEAD + f"ENTRY e {{\n  x = f32[2] parameter(0)\n  ROOT n = f32[2] negate(x){metadata}\n}}\n"
    )
    found = source_of_output(module, ())
    assert (found.file, found.file_line, found.function) == ("", 0, "")


def test_the_lines_of_a_real_program(corpus: Path) -> None:
    path = corpus / "jax" / "cumulative" / "module_0000.jit_cumulative.before_optimizations.txt"
    module = hlotool.load(path)
    sources = [source_of_output(module, (i,)) for i in range(5)]
    assert all(source.file.endswith("jax_windows.py") for source in sources)
    assert len({source.file_line for source in sources}) > 1
