"""Progress of searches and counts on stderr: one live line on a terminal, lines elsewhere."""

from __future__ import annotations

import io
import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.budget import HUNG

import hlotool
from hlotool.interface.report.live import LiveLine
from hlotool.interface.report.progress import Beside, Heartbeat
from hlotool.interface.report.step_progress import counts_for, steps_for

#: What a terminal obeys.
CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")


def frames(stream: io.StringIO) -> list[str]:
    """What stood on the line, one after the other."""
    return [text for part in stream.getvalue().split("\r") if (text := CODES.sub("", part).rstrip())]


def test_a_search_says_what_is_left_as_git_bisect_does() -> None:
    stream = Terminal()
    with steps_for(stream, verbose=False) as steps:
        steps.phase("jit_step")
        steps.left(7)
        time.sleep(0.25)  # drawn ten times a second
        steps.step("0008 algsimp", "identical", 0.1, False)
        time.sleep(0.25)
    shown = frames(stream)
    assert any("7 left, about 3 steps jit_step" in frame for frame in shown)
    assert any("1 step jit_step: 0008 algsimp identical" in frame for frame in shown)
    assert stream.getvalue().count("\n") == 1  # of its end


def test_in_a_log_each_step_has_a_line() -> None:
    stream = io.StringIO()
    with steps_for(stream, verbose=False) as steps:
        steps.phase("jit_step", 3)
        steps.step("before", "identical", 0.1, False)
        steps.left(1)
        steps.step("0008 algsimp", "wrong", 0.1, True)
    assert stream.getvalue().splitlines() == [
        "jit_step",
        "  step 1  before  identical  0.10 s",
        "  step 2  1 left, about 1 step  0008 algsimp  wrong  known",
    ]


def test_a_count_has_a_bar_and_names_what_is_wrong() -> None:
    stream = Terminal()
    with counts_for(stream, 3, "opcodes", verbose=False) as done:
        done("add", "")
        done("power", "power: 2 failed")
        done("power", "")  # further cases of the same one
        time.sleep(0.25)
    assert "power: 2 failed" in CODES.sub("", stream.getvalue())
    assert any("2/3" in frame for frame in frames(stream))


def test_time_goes_on_while_nothing_is_told() -> None:
    stream = Terminal()
    with LiveLine(stream, text="reading"):
        time.sleep(1.2)
    assert {frame.split()[1] for frame in frames(stream) if "reading" in frame} >= {"0:00:00", "0:00:01"}


@pytest.mark.parametrize("width", [40, 80, 120])
def test_what_is_cut_is_the_text_and_not_the_bar(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    stream = Terminal()
    with LiveLine(stream, 10) as line:
        for text, left in (("short", ""), ("a_long_name_" * 20, "about 4 min 05 s left"), ("[red]", "")):
            line.show(text, left, more=1)
            time.sleep(0.15)
    bars = [re.search(r"[━╸╺]+ +\d+/10", frame) for frame in frames(stream)]
    assert len({found.span() for found in bars if found}) == 1
    assert all(len(frame) <= width for frame in frames(stream))
    assert width == 40 or any("[red]" in frame for frame in frames(stream))


def test_beside_a_program_there_is_a_line_now_and_then() -> None:
    for stream, pause in ((Terminal(), Beside.PAUSE), (io.StringIO(), Heartbeat.PAUSE)):
        now = [0.0]
        beside = Beside(stream, lambda now=now: now[0])
        beside(1, 0)
        now[0] = pause
        beside(12, 1)
        beside(13, 1)
        assert stream.getvalue() == "hlotool: 12 programs judged, 1 wrong\n"


def on_terminal(line: list[str], folder: Path) -> str:
    """What a command writes to a terminal of 80 columns."""
    try:
        own, other = pty.openpty()
    except OSError as error:  # a container without /dev/pts
        pytest.skip(f"there are no pseudo terminals: {error}")
    environment = os.environ | {"COLUMNS": "80", "HLOTOOL_CACHE": str(folder / "cache")}
    command = [sys.executable, "-m", "hlotool", *line]
    shown = ""
    with subprocess.Popen(command, cwd=folder, stdout=other, stderr=other, env=environment) as process:
        os.close(other)
        end = time.monotonic() + HUNG
        while time.monotonic() < end and select.select([own], [], [], HUNG)[0]:
            try:
                shown += os.read(own, 1 << 16).decode("utf-8", "replace")
            except OSError:  # nothing has it open any more
                break
        process.kill()
    os.close(own)
    return shown


@pytest.mark.parametrize(
    ("line", "first", "then"),
    [
        ("run dump --no-further-sets", "reading the programs", "2/2"),
        # What is left is drawn ten times a second, and a fast machine is done by then.
        ("bisect dump --try-on none", "reading the programs", "pass fusion"),
        ("prove dump", "0/2", "2 pairs of programs"),
        ("check dump", "checking the programs", "recompilation"),
        (
            "reduce dump/module_0026.jit_train_step.before_optimizations.txt --check false",
            "reading the programs",
            "instructions",
        ),
        ("exec -- true", "reading what the program compiled", "exit status 0"),
    ],
)
def test_no_command_keeps_silent_on_a_terminal(line: str, first: str, then: str, tmp_path: Path) -> None:
    hlotool.demo(out=tmp_path / "demo")
    shown = CODES.sub("", on_terminal(line.split(), tmp_path / "demo"))
    assert first in shown
    assert then in shown
    assert "\n  step 1  " not in shown
