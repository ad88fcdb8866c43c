"""A verdict that stands is reported, whatever becomes of the process that found it."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.msgpack import encode
from support.programs import DOUBLE, SQUARE, SUM, write_module

import hlotool
from hlotool.errors import BackendCrashed, BackendTimeout
from hlotool.interface.cli.main import main
from hlotool.judge.verdicts import AGREEING, Verdict
from hlotool.runs.fleet import batch
from hlotool.runs.options.kept import ReplayOptions
from hlotool.runs.records import ModuleRecord
from hlotool.runs.task import EXPLAINING, FURTHER, Handed, Task, rows_so_far
from hlotool.sources.file_names import Kind
from hlotool.sources.locations import Source
from hlotool.sources.records import DumpModule, Stage

LATE = BackendTimeout("numpy", "no answer within 2 s; the process was killed")
DEAD = BackendCrashed("numpy", "the process died of SIGSEGV")
TASK = Task(
    DumpModule(1, "m", stages=(Stage(Kind.BEFORE_OPTIMIZATIONS, "before", text=Source("m.txt")),)),
    ReplayOptions(),
)


def row(verdict: Verdict = Verdict.AGREE) -> ModuleRecord:
    return ModuleRecord(path="m.txt", name="m", verdict=verdict, seconds=1.0)


def rows(error: BackendTimeout | BackendCrashed, *handed: Handed) -> list[ModuleRecord]:
    return rows_so_far(TASK, error, [encode(one) for one in handed], seconds=5.0)


def test_where_nothing_stands_the_failure_is_all_there_is() -> None:
    [only] = rows(LATE)
    assert (only.verdict, only.unfinished, only.seconds) == (Verdict.TIMEOUT, "", 5.0)


def test_an_explanation_that_is_cut_off_costs_no_verdict() -> None:
    handed = [Handed(0, row(), FURTHER, True), Handed(0, row(Verdict.WRONG), EXPLAINING, True)]
    for error in (LATE, DEAD):
        [only] = rows(error, *handed)
        assert only.verdict is Verdict.WRONG
        assert only.unfinished == f"the explanation: {error.message}"
        assert (only.error, only.seconds) == (None, 5.0)


def test_a_crash_on_further_inputs_is_a_crash_and_no_agreement() -> None:
    handed = Handed(0, row(), FURTHER, True)
    [late] = rows(LATE, handed)
    assert (late.verdict, late.unfinished) == (Verdict.AGREE, f"extra inputs: {LATE.message}")
    [dead] = rows(DEAD, handed)
    assert (dead.verdict, dead.unfinished) == (Verdict.CRASHED, "")


def test_rows_that_are_finished_stay_and_those_that_are_missing_are_named() -> None:
    done, begun = Handed(0, row()), Handed(1, row(Verdict.WRONG), EXPLAINING)
    assert [one.verdict for one in rows(DEAD, done)] == [Verdict.AGREE, Verdict.CRASHED]
    found = rows(LATE, Handed(0, row(Verdict.WRONG), EXPLAINING), done, begun)
    assert [one.verdict for one in found] == [Verdict.AGREE, Verdict.WRONG, Verdict.TIMEOUT]
    assert [one.unfinished for one in found] == ["", f"the explanation: {LATE.message}", ""]
    assert [one.seconds for one in found] == [1.0, 4.0, 0.0]


@pytest.fixture
def dump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HLOTOOL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(batch, "_FUNCTION", "support.planted:cut_short")
    folder = tmp_path / "dump"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("scale", ["never", "4=2"])
def test_the_report_has_the_verdict_and_what_was_not_finished(
    dump: Path, scale: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_module(dump, 0, DOUBLE, SQUARE)
    monkeypatch.setenv("PLANTED", "divergence hang")
    command = ["run", str(dump), "--first-divergence", "--timeout", "3", "--scale", scale]
    assert main(command) == 1
    text = " ".join(capsys.readouterr().out.split())
    assert "wrong" in text
    assert "not finished the explanation: no answer within 3 s; the process was killed" in text
    assert ("scaled 4 → 2" in text) == (scale != "never")
    # There may be more time when it is asked for again.
    monkeypatch.setattr(batch, "_FUNCTION", "hlotool.runs.run:replay_module")
    assert main(command) == 1
    assert "not finished" not in capsys.readouterr().out


def test_agreement_says_that_further_inputs_were_not_finished(
    dump: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_module(dump, 0, DOUBLE, SUM)
    monkeypatch.setenv("PLANTED", "sets hang")
    assert main(["run", str(dump), "--timeout", "3"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "1 of 1 was not finished after the verdict: extra inputs: no answer within 3 s" in text


@pytest.mark.parametrize(("step", "verdict"), [("sets", Verdict.CRASHED), ("divergence", Verdict.IDENTICAL)])
def test_a_process_that_dies(
    dump: Path, step: str, verdict: Verdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_module(dump, 0, DOUBLE, SUM)
    monkeypatch.setenv("PLANTED", f"{step} segfault")
    [only] = hlotool.replay(str(dump), cache=False).rows
    assert only.verdict is verdict
    assert bool(only.unfinished) == (verdict in AGREEING)


def test_a_twin_does_not_wait_for_the_same_end(dump: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(2):
        write_module(dump, number, DOUBLE, SQUARE)
    monkeypatch.setenv("PLANTED", "divergence hang")
    first, twin = hlotool.replay(str(dump), timeout=3.0, cache=False).rows
    assert (
        first.unfinished == twin.unfinished == "the explanation: no answer within 3 s; the process was killed"
    )
    assert twin.twin_of == first.path
