"""From a part of a result to the user's own line."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlotool
from hlotool.facts.dataflow import source_of, source_of_output
from hlotool.parser.proto.module import parse_module_proto, write_module_proto
from hlotool.system.records import SourceRecord

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


#: optax called by a training step, as real dumps have it: the innermost frame is not the user's.
LIBRARY_TABLES = """HloModule m

FileNames
1 "/home/me/train.py"
2 "/usr/lib/python3.12/functools.py"
3 "/venv/lib/python3.12/site-packages/optax/_src/transform.py"

FunctionNames
1 "step"
2 "wrapper"
3 "scale"

FileLocations
1 {file_name_id=1 function_name_id=1 line=10 end_line=10 column=1 end_column=2}
2 {file_name_id=2 function_name_id=2 line=7 end_line=7 column=5 end_column=9}
3 {file_name_id=3 function_name_id=3 line=33 end_line=34 column=5 end_column=9}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}
3 {file_location_id=3 parent_frame_id=3}
4 {file_location_id=3 parent_frame_id=1}
5 {file_location_id=3 parent_frame_id=6}

"""
OPTAX = "/venv/lib/python3.12/site-packages/optax/_src/transform.py:33"


def sourced(metadata: str, head: str = HEAD) -> SourceRecord:
    """The source of a program of one operation."""
    text = (
        f"ENTRY e {{\n  x = f32[2] parameter(0)\n  ROOT a = f32[2] negate(x), metadata={{{metadata}}}\n}}\n"
    )
    return source_of_output(hlotool.parse(head + text), ())


@pytest.mark.parametrize(
    ("frame", "place", "function"),
    [
        (3, "/home/me/train.py:10", "step"),
        # No caller is known, or rows go in a circle: the operation's path says more than the library.
        (4, "jit(step)/neg", ""),
        (5, "jit(step)/neg", ""),
    ],
)
def test_a_library_is_not_the_users_line(frame: int, place: str, function: str) -> None:
    found = sourced(f'op_name="jit(step)/neg" stack_frame_id={frame}', LIBRARY_TABLES)
    assert (found.place, found.function, found.library) == (place, function, OPTAX)
    # A program that went through a proto has the same tables, with parents numbered otherwise.
    module = hlotool.parse(
        LIBRARY_TABLES + "ENTRY e {\n  x = f32[2] parameter(0)\n  ROOT a = f32[2] negate(x)\n}\n"
    )
    assert parse_module_proto(write_module_proto(module), "m.pb").stack_frames == module.stack_frames


@pytest.mark.parametrize(
    ("file", "is_installed"),
    [
        ("site-packages/tensorflow/python/framework/ops.py", True),
        ("/usr/lib/python3/dist-packages/flax/linen/linear.py", True),
        (r"C:\\Python312\\Lib\\site-packages\\keras\\src\\ops\\nn.py", True),
        ("/usr/lib/python3.11/contextlib.py", True),
        ("<frozen importlib._bootstrap>", True),
        ("/home/me/site-packages.py", False),
        ("/home/me/lib/layers.py", False),
        ("<ipython-input-3-0a1b>", False),
        ("", False),
    ],
)
def test_what_is_installed(file: str, is_installed: bool) -> None:
    found = sourced(f'op_name="net/dense/MatMul" source_file="{file}" source_line=4')
    if is_installed:
        assert (found.file, found.place, found.library) == (
            "",
            "net/dense/MatMul",
            file.replace(r"\\", "\\") + ":4",
        )
    else:
        assert (found.file, found.library) == (file, "")


def test_a_library_line_is_better_than_nothing() -> None:
    assert sourced('source_file="site-packages/ops.py" source_line=4').place == "site-packages/ops.py:4"


def test_an_operation_says_more_than_the_line_of_the_fusion_around_it() -> None:
    fused = FUSED.replace("model.py", "site-packages/ops.py")
    call = (
        'fusion(x), kind=kLoop, calls=fused, metadata={op_name="jit(f)/add" source_file="a.py" source_line=3}'
    )
    module = hlotool.parse(
        HEAD + fused + f"ENTRY e {{\n  x = f32[2] parameter(0)\n  ROOT f = f32[2] {call}\n}}\n"
    )
    inner = module.computations[0].root
    assert source_of(module, [module.entry.root, inner]).place == "jit(f)/neg"
    assert source_of(module, [module.entry.root]).place == "a.py:3"
