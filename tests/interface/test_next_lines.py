"""Lines that say `next:` and that tests saw: each option of each command is executed. Comes last of all."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from support.next_lines import Printed, execute, recorded

from hlotool.errors import ExitCode
from hlotool.interface.cli.main import main


def options(printed: Printed) -> set[tuple[str, str]]:
    """What a line has others execute: its command, with each of the options that it gives."""
    words = shlex.split(printed.command)
    given = (word.partition("=")[0] for word in words if word.startswith("--"))
    return {(words[1], ""), *((words[1], option) for option in given)}


def chosen(lines: list[Printed]) -> list[Printed]:
    """A few lines that have all that any of them has: those first that add most."""
    missing, found = set[tuple[str, str]]().union(*map(options, lines)), []
    while missing:
        found.append(max(lines, key=lambda line: len(options(line) & missing)))
        missing -= options(found[-1])
    return found


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


def test_each_option_of_each_command(printed: list[Printed], tmp_path: Path) -> None:
    """Those that take minutes, with more time or memory or of the documents, are left to `--next-lines`."""
    slow = ("--timeout", "--memory-limit")
    quick = [
        line
        for line in printed
        if "/docs/" not in line.test and not any(word in line.command for word in slow)
    ]
    few = chosen(quick)
    assert {command for line in few for command, _ in options(line)} >= {"run", "bisect"}
    ends = execute(few, tmp_path / "cache")
    assert ends.failures == []


def test_few_lines_have_all_options() -> None:
    commands = ("run a", "run a --seed 1", "bisect a --only=x", "run b --seed 2 --verbose", "bisect b")
    lines = [Printed(f"hlotool {command}", "", "", "") for command in commands]
    assert chosen(lines) == [lines[3], lines[2]]
