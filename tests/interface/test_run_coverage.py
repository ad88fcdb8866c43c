"""`hlotool run` says what the inputs exercised, and fails on NaN and infinity where that is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.shell import Shell

SOURCE = """def f(x):
    y = x * 2
    return jnp.where(y > 0, y, 0)
"""
TEXT = """HloModule jit_f
ENTRY e {{
  x = f32[4] parameter(0)
  z = f32[] constant(0)
  zs = f32[4] broadcast(z), dimensions={{}}
  c = f32[] constant({factor})
  cs = f32[4] broadcast(c), dimensions={{}}
  y = f32[4] multiply(x, cs), metadata={{source_file="{file}" source_line=2}}
  p = pred[4] compare(y, zs), direction=GT, metadata={{source_file="{file}" source_line=3}}
  ROOT r = f32[4] select(p, y, zs), metadata={{source_file="{file}" source_line=3}}
}}
"""
NAN = "ROOT r = f32[4] subtract(y, y)"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    monkeypatch.setenv("HLOTOOL_CACHE", str(tmp_path / "cache"))
    return Shell("run", "run-1.json", capsys)


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    """A dump of a program whose source is on disk."""
    source = tmp_path / "model.py"
    source.write_text(SOURCE)
    return dumped(tmp_path / "dump", TEXT.format(file=source, factor=2))


def dumped(folder: Path, text: str) -> Path:
    folder.mkdir()
    for stage in ("before_optimizations", "cpu_after_optimizations"):
        (folder / f"module_0001.jit_f.{stage}.txt").write_text(text)
    return folder


def test_the_last_lines_name_what_never_happened(dump: Path, run: Shell) -> None:
    assert run(dump, "--no-further-sets") == 0
    # Four random numbers have both signs and are not 0.
    assert "reference numpy" in run.out
    assert "inputs reached 1 of 2 cases (branches, ties, signs)\n" in run.out
    never = next(line for line in run.out.splitlines() if line.startswith("not exercised by the inputs"))
    assert never.endswith("model.py:3 comparison: equal")


def test_the_source_is_annotated(dump: Path, run: Shell) -> None:
    assert run(dump, "--coverage", "--no-further-sets") == 0
    lines = run.out.splitlines()
    start = next(n for n, line in enumerate(lines) if line.endswith("model.py"))
    assert [line.rstrip() for line in lines[start + 1 : start + 4]] == [
        "             2 │     y = x * 2",
        "~    1/2     3 │     return jnp.where(y > 0, y, 0)",
        "                 never comparison: equal",
    ]


def test_the_record_lists_decisions(dump: Path, run: Shell) -> None:
    coverage = run.json(dump, "--coverage", "--no-further-sets")["modules"][0]["coverage"]
    assert (coverage["covered"], coverage["decisions"]) == (1, 2)
    assert [decision["kind"] for decision in coverage["listing"]] == ["comparison", "selection"]
    assert [decision["never"] for decision in coverage["never"]] == [["equal"]]


def test_a_program_without_its_source(tmp_path: Path, run: Shell) -> None:
    folder = dumped(tmp_path / "dump", TEXT.format(file="elsewhere.py", factor=2))
    assert run(folder, "--coverage", "--no-further-sets") == 0
    assert "elsewhere.py\n~    1/2     3 │" in run.out


def test_nan_is_a_finding_where_that_is_asked_for(tmp_path: Path, run: Shell) -> None:
    text = TEXT.format(file="model.py", factor="inf").partition("ROOT")[0] + NAN + "\n}\n"
    folder = dumped(tmp_path / "dump", text)
    # x · inf - x · inf is NaN for every x but 0, where it is so, too.
    assert run(folder) == 0
    assert "~ identical, all NaN" in run.out
    assert "1 identical · 1 with an output that is all NaN" in run.out
    assert run(folder, "--fail-on", "inf") == 0
    assert run(folder, "--fail-on", "nan,inf") == 1
    assert run.out.rstrip().splitlines()[-1].endswith("--fail-on nan,inf --verbose")
    assert run(folder, "--quiet") == 0
    assert "all NaN" in run.out


def test_only_some_kinds_can_be_failed_on(dump: Path, run: Shell) -> None:
    assert run(dump, "--fail-on", "zero") == 2
    assert "write nan, inf, unstable, unsupported or not-compared" in run.error
