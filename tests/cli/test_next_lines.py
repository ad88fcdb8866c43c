"""Every `next:` line that commands printed while the tests ran is a command that works. Comes last of all."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from support.next_lines import Printed, recorded

from hlotool.cli.main import main
from hlotool.errors import ExitCode

#: Longest that a line may take: what it repeats with ten times the time limit is programs that never end.
_SECONDS = 240


def shape(printed: Printed) -> tuple[str, ...]:
    """What tells one kind of line from another: the command, and the options that it gives."""
    words = shlex.split(printed.command)
    return (words[1], *sorted({word.partition("=")[0] for word in words if word.startswith("--")}))


def failure(printed: Printed, cache: Path) -> str:
    """Why a line is no use; empty where it is, whatever it says about the program."""
    program, *arguments = shlex.split(printed.command)
    assert program == "hlotool", printed
    ended = subprocess.run(
        [sys.executable, "-m", "hlotool", *arguments],
        cwd=printed.folder,
        env=os.environ | {"HLOTOOL_CACHE": str(cache), "PYTHONPATH": printed.pythonpath},
        capture_output=True,
        encoding="utf-8",
        timeout=_SECONDS,
    )
    told = ended.stdout[-500:] + ended.stderr[-500:]
    is_broken = "Traceback" in told or "internal error" in told
    if ended.returncode == ExitCode.USAGE or is_broken:
        return f"{printed.test}: {printed.command}: exit {ended.returncode}: {told}"
    return ""


@pytest.fixture
def printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> list[Printed]:
    """What all tests before this one saw; where it runs alone, what a difference and an extraction print."""
    monkeypatch.chdir(tmp_path)
    text = "HloModule m\nENTRY e {{\n  x = f32[2] parameter(0)\n  ROOT y = f32[2] {}(x, x)\n}}\n"
    for stage, opcode in (("before_optimizations", "add"), ("cpu_after_optimizations", "multiply")):
        Path(f"module_0000.m.{stage}.txt").write_text(text.format(opcode))
    assert main(["run", "."]) == ExitCode.MISMATCH
    assert (
        main(["extract", "module_0000.m.before_optimizations.txt", "y", "-o", "a cut.hlo"]) == ExitCode.AGREE
    )
    capsys.readouterr()
    return recorded()


def _execute(lines: Iterable[Printed], cache: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        failures = [why for why in pool.map(partial(failure, cache=cache), lines) if why]
    assert not failures, "\n".join(failures)


def test_one_line_of_each_kind(printed: list[Printed], tmp_path: Path) -> None:
    """Those of the documents, which take minutes, are left to the test of all."""
    quick = {
        shape(line): line for line in printed if "--timeout" not in line.command and "/docs/" not in line.test
    }
    assert {command for command, *_ in quick} >= {"run", "bisect"}
    _execute(quick.values(), tmp_path / "cache")


@pytest.mark.slow
@pytest.mark.next_lines
def test_every_line(printed: list[Printed], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Those that the tests of the same session printed: `pytest -m 'not slow or next_lines'`."""
    _execute(printed, tmp_path / "cache")
    with capsys.disabled():
        print(f"\n{len(printed)} lines of {len({line.test for line in printed})} tests were executed")
