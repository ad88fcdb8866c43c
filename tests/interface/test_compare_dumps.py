"""`hlotool compare`: functions of two dumps."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest

import hlotool
from hlotool.errors import ExitCode, UsageError
from hlotool.interface.cli.main import main

BEFORE = """HloModule jit_{name}, entry_computation_layout={{(f32[64]{{0}})->f32[]}}
add {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }}
ENTRY main {{
  x = f32[64]{{0}} parameter(0)
  zero = f32[] constant({start})
  y = f32[64]{{0}} {opcode}(x, x)
  ROOT r = f32[] reduce(y, zero), dimensions={{0}}, to_apply=add
}}
"""


def dump(folder: Path, *programs: tuple[str, str, str, str]) -> str:
    """Modules by name: opcode before, opcode after, and what their sums begin with after."""
    folder.mkdir()
    for number, (name, before, after, start) in enumerate(programs):
        title = folder / f"module_{number:04d}.jit_{name}"
        first = BEFORE.format(name=name, opcode=before, start="0")
        Path(f"{title}.before_optimizations.txt").write_text(first)
        last = BEFORE.format(name=name, opcode=after, start=start)
        Path(f"{title}.cpu_after_optimizations.txt").write_text(last)
    return str(folder)


def test_what_is_said_of_functions(tmp_path: Path) -> None:
    """Numbers in the second dump are others, and one function has another name there."""
    left = dump(
        tmp_path / "old",
        ("same", "multiply", "multiply", "0"),
        ("broken", "add", "add", "0"),
        ("changed", "subtract", "subtract", "0"),
        ("renamed", "maximum", "maximum", "0"),
        ("gone", "minimum", "minimum", "0"),
    )
    right = dump(
        tmp_path / "new",
        ("called_otherwise", "maximum", "maximum", "0"),
        ("changed", "divide", "divide", "0"),
        ("broken", "add", "add", "7"),
        ("same", "multiply", "multiply", "0"),
    )
    found = hlotool.compare_dumps([left, right], jobs=1)
    said = {row.function: row.conclusion for row in found}
    assert said == {
        "same": "identical",
        "broken": "second wrong",
        "changed": "other program",
        "renamed": "identical",
    }
    assert [title.rpartition(".")[2] for title in found.record.only_left] == ["jit_gone"]
    assert found.record.only_right == []
    assert found.exit_code == ExitCode.MISMATCH


def test_legal_programs_differ(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    left = dump(tmp_path / "old", ("sum", "multiply", "multiply", "0"))
    right = dump(tmp_path / "new", ("sum", "multiply", "multiply", "0"))
    powers = """ENTRY main {{
  x = f32[64]{{0}} parameter(0)
  square = f32[64]{{0}} multiply(x, x)
  cube = f32[64]{{0}} multiply(square, x)
  ROOT r = f32[64]{{0}} multiply({})
}}
"""
    header = "HloModule jit_sum, entry_computation_layout={(f32[64]{0})->f32[64]{0}}\n"
    for folder in (left, right):
        for path in Path(folder).iterdir():
            is_new = folder == right and "after" in path.name
            path.write_text(header + powers.format("square, square" if is_new else "cube, x"))
    [row] = hlotool.compare_dumps([left, right], jobs=1)
    assert row.conclusion == "both correct"
    assert row.left_row is not None
    assert row.left_row.verdict.value == "identical"
    assert main(["compare", left, right]) == ExitCode.AGREE
    assert "✓ both correct  sum" in capsys.readouterr().out


def test_the_next_line_searches_the_wrong_side(
    tmp_path: Path, corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("jax/model_fn", "planted/model_fn_opcode"):
        shutil.copytree(corpus / name, tmp_path / name.replace("/", "_"))
    left, right = str(tmp_path / "jax_model_fn"), str(tmp_path / "planted_model_fn_opcode")
    assert main(["compare", left, right]) == ExitCode.MISMATCH
    shown = capsys.readouterr().out
    assert "✗ second wrong  model_fn" in shown
    last = shown.splitlines()[-1]
    assert last.startswith(f"next: hlotool bisect {right} --only")
    assert main([*shlex.split(last)[2:], "--no-repro"]) == ExitCode.MISMATCH


def test_two_dumps_or_two_backends(tmp_path: Path) -> None:
    left = dump(tmp_path / "old", ("f", "multiply", "multiply", "0"))
    right = dump(tmp_path / "new", ("g", "add", "add", "0"))
    with pytest.raises(UsageError, match="two dumps, or one program and two backends"):
        hlotool.compare_dumps([left])
    with pytest.raises(UsageError, match="two dumps, or one program and two backends"):
        hlotool.compare_dumps([left, right], tests=("numpy", "numpy"))
    with pytest.raises(UsageError, match="matches"):
        hlotool.compare_dumps([left, right], only="nothing_like_it")


@pytest.mark.xla
def test_one_program_on_two_backends(tmp_path: Path) -> None:
    path = tmp_path / "f.hlo"
    path.write_text(BEFORE.format(name="f", opcode="multiply", start="0"))
    [row] = hlotool.compare_dumps(path, tests=("xla", "xla:opt=0"), jobs=1)
    assert row.conclusion in ("identical", "both correct")
    assert row.left_row is not None
    assert row.left_row.tested.startswith("jaxlib")
