"""Of each kind of `next:` line that tests saw one is executed, and works. Comes last of all."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from support.next_lines import Printed, execute, recorded

from hlotool.cli.main import main
from hlotool.errors import ExitCode


def shape(printed: Printed) -> tuple[str, ...]:
    """What tells one kind of line from another: the command, and the options that it gives."""
    words = shlex.split(printed.command)
    return (words[1], *sorted({word.partition("=")[0] for word in words if word.startswith("--")}))


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


def test_one_line_of_each_kind(printed: list[Printed], tmp_path: Path) -> None:
    """Those of the documents, which take minutes, are left to `--next-lines`."""
    quick = {
        shape(line): line for line in printed if "--timeout" not in line.command and "/docs/" not in line.test
    }
    assert {command for command, *_ in quick} >= {"run", "bisect"}
    ends = execute(quick.values(), tmp_path / "cache")
    assert ends.failures == []
