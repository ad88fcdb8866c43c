"""Progress on stderr."""

from __future__ import annotations

import io
import re

import msgspec
import pytest
from support import run_records as samples

from hlotool.interface.report.progress import ProgressLines, Silence, progress_for
from hlotool.judge.verdicts import Verdict
from hlotool.runs.options.kept import ReplayOptions
from hlotool.runs.task import Task
from hlotool.sources.records import DumpModule


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def task(name: str) -> Task:
    return Task(DumpModule(0, name), ReplayOptions())


def show(stream: io.StringIO, **wishes: bool) -> str:
    with progress_for(
        stream, [task("jit_f"), task("g")], **({"quiet": False, "verbose": False} | wishes)
    ) as progress:
        progress.started(task("jit_f"))
        progress.started(task("a_very_long_name_of_a_function_that_does_not_fit"))
        progress.finished(task("jit_f"), [samples.agreeing("jit_f"), samples.alone("jit_f")])
    return stream.getvalue()


def test_a_terminal_shows_a_bar_with_counts_and_what_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    shown = show(Terminal())
    assert "1/2" in shown
    assert "module_0000.a_very_long_name_of_a_function_that_does_not_fit" in shown
    assert "left" in shown


def test_programs_that_were_judged_before_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those beside a running program are, too: the counts are of the whole."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    stream = Terminal()
    with progress_for(stream, [task("jit_f")], quiet=False, verbose=False, done=8) as progress:
        progress.finished(task("jit_f"), [samples.agreeing("jit_f")])
    assert "9/9" in stream.getvalue()
    stream = io.StringIO()
    with progress_for(stream, [task("jit_f")], quiet=False, verbose=True, done=8) as progress:
        progress.finished(task("jit_f"), [samples.agreeing("jit_f")])
    assert stream.getvalue().startswith("9/9  ")


def test_what_is_wrong_appears_above_the_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    stream = Terminal()
    wrong = msgspec.structs.replace(samples.agreeing("jit_f"), verdict=Verdict.WRONG, reason="all of it")
    with progress_for(stream, [task("jit_f")], quiet=False, verbose=False) as progress:
        progress.finished(task("jit_f"), [wrong])
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stream.getvalue())
    assert "wrong  module_0000.jit_f  all of it" in plain


def test_what_is_wrong_is_named_at_once_in_a_log() -> None:
    stream = io.StringIO()
    wrong = msgspec.structs.replace(samples.agreeing("jit_f"), verdict=Verdict.WRONG, reason="all of it")
    tasks = [task("jit_f"), task("twin"), task("g")]
    with progress_for(stream, tasks, quiet=False, verbose=False) as progress:
        progress.started(tasks[0])
        progress.finished(tasks[0], [samples.agreeing("jit_f"), wrong])
        assert stream.getvalue() == "hlotool: ✗ wrong  module_0000.jit_f  all of it\n"
        progress.finished(tasks[1], [wrong])  # it is the same program
        progress.started(tasks[2])
        progress.finished(tasks[2], [wrong])  # the report follows
    assert stream.getvalue().count("wrong") == 1


def test_without_a_terminal_there_is_silence_at_first() -> None:
    assert show(io.StringIO()) == ""
    assert isinstance(progress_for(Terminal(), [task("f")], quiet=True, verbose=False), Silence)


def test_lines_when_asked_for() -> None:
    assert show(io.StringIO(), verbose=True) == "1/2  ✓ agree, · not compared  module_0000.jit_f  0.42 s\n"
    assert isinstance(progress_for(io.StringIO(), [task("f")], quiet=False, verbose=True), ProgressLines)
