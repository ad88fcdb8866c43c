"""A suite on backends that are wrong, die, or raise: each fault is named, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from support.plug_ins import install

import hlotool
from hlotool.backends.numpy import NumpyBackend
from hlotool.errors import ExitCode, UsageError
from hlotool.interface.cli.main import main
from hlotool.interface.report.lab_records import TrialRecord
from hlotool.ir.module import Module
from hlotool.lab.conformance import running
from hlotool.lab.conformance.running import tried
from hlotool.lab.conformance.suite import (
    SuiteTask,
    cells_of,
    run_suite,
    smallest_failures,
    with_reasons,
)
from hlotool.lab.conformance.trials import Trial, trials
from hlotool.system.cache import Journal
from hlotool.system.executor import Executor

#: A backend that does what the reference does, and something else where `spoils` says so.
SPOILING = """
from dataclasses import replace

import numpy as np

from hlotool.backends.registry import get_backend
from hlotool.ir.edit_programs import clone_module


class Backend:
    name, version = "{name}", "1"

    def compile(self, module):
        copy = clone_module(module).module
        for instruction in copy.instructions():
            self.spoil(instruction)
        return get_backend("numpy").compile(copy)

    def spoil(self, instruction):
        {spoil}


create = Backend
"""

#: `subtract` of 16-bit integers adds, `maximum` of f64 is a minimum.
WRONG = """kind = str(getattr(instruction.shape, "element_type", ""))
        if instruction.opcode == "subtract" and kind in ("s16", "u16"):
            instruction.opcode = "add"
        if instruction.opcode == "maximum" and kind == "f64":
            instruction.opcode = "minimum"
"""

DYING = """if instruction.opcode == "negate" and "s8" in str(instruction.shape):
            import os
            os.abort()
        if instruction.opcode == "not":
            raise ArithmeticError("no such gate")
"""

#: Opcodes around the two that are wrong; `map` applies them.
AROUND = "add,subtract,maximum,minimum,compare,map"


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HLOTOOL_CACHE", str(tmp_path / "cache"))


def cells(result: hlotool.Result[Any], status: str) -> set[tuple[str, str]]:
    return {(cell.opcode, cell.element_type) for cell in result.rows if cell.status == status}


@pytest.mark.usefixtures("own_cache")
def test_a_backend_that_is_wrong_in_two_operations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "spoilt", SPOILING.format(name="spoilt", spoil=WRONG), monkeypatch)
    result = hlotool.conformance(backend="spoilt", only=AROUND, cases=20, jobs=2, timeout=600)
    by_themselves = {(t.opcode, t.element_type) for t in result.failures if not t.because}
    assert by_themselves == {("subtract", "s16"), ("subtract", "u16"), ("maximum", "f64")}
    assert {trial.opcode for trial in result.failures if trial.because} == {"map"}
    assert not cells(result, "crashed") | cells(result, "refused")
    assert result.exit_code == ExitCode.MISMATCH


@pytest.mark.usefixtures("own_cache")
def test_a_process_that_dies_costs_one_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "dying", SPOILING.format(name="dying", spoil=DYING), monkeypatch)
    result = hlotool.conformance(backend="dying", only=["negate", "not"], cases=2, jobs=1, timeout=600)
    crashed = [trial for trial in result.failures if trial.status == "crashed"]
    died = [trial for trial in crashed if trial.opcode == "negate"]
    assert {trial.element_type for trial in died} == {"s8"}
    assert all("SIGABRT" in trial.message for trial in died)
    others = [cell for cell in result.rows if cell.opcode == "negate" and cell.element_type != "s8"]
    assert {cell.status for cell in others} == {"passed"}
    raised = [trial.message for trial in crashed if trial.opcode == "not"]
    assert len(raised) == sum(cell.crashed for cell in result.rows if cell.opcode == "not") > 1
    assert set(raised) == {"ArithmeticError: no such gate"}
    assert result.exit_code == ExitCode.BACKEND_FAILED


class Company(NumpyBackend):
    """Wrong where a module has two results, or more."""

    def compile(self, module: Module) -> Any:
        executable = super().compile(module)
        return Spoilt(executable) if module.entry.root.opcode == "tuple" else executable


class Spoilt:
    def __init__(self, executable: Any) -> None:
        self._executable = executable

    def run(self, arguments: Sequence[Any], probe: Any = None) -> Any:
        first, *others = self._executable.run(arguments)
        return (np.zeros_like(first), *others)


def test_what_is_wrong_in_company_alone() -> None:
    found = list(tried(chosen("add", 3), Company()))
    assert [record.status for record in found].count("failed") == 1
    (wrong,) = (record for record in found if record.status == "failed")
    assert wrong.in_company


def chosen(opcode: str, count: int) -> list[Trial]:
    return [trial for trial in trials(opcode, frozenset({"f32", "s32"}), 0, 0) if not trial.rule][:count]


class Here(Executor):
    """Runs everything in this process, and counts."""

    def __init__(self) -> None:
        self.notes = []
        self.calls: list[SuiteTask] = []

    def run(self, function: str, arguments: Any) -> Any:
        import msgspec

        from hlotool.lab.conformance.suite import examine
        from hlotool.system.executor import Done

        for index, task in enumerate(arguments):
            self.calls.append(task)
            yield Done(index, msgspec.msgpack.encode(examine(task)), 0.0)


def test_an_interrupted_suite_goes_on(tmp_path: Path) -> None:
    tasks = [SuiteTask("numpy", opcode, ("s8",), 1) for opcode in ("and", "or", "xor")]
    journal, found = Journal(tmp_path / "journal"), []

    def interrupted(task: SuiteTask, records: Sequence[TrialRecord]) -> None:
        found.append(task.opcode)
        if len(found) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_suite(tasks, Here(), journal, True, interrupted)
    again, names = Here(), []
    run_suite(tasks, again, journal, True, lambda task, records: names.extend(r.opcode for r in records))
    assert [task.opcode for task in again.calls] == ["xor"]
    assert set(names) == {"and", "or", "xor"}
    anew = Here()
    run_suite(tasks, anew, journal, False, lambda task, records: None)
    assert len(anew.calls) == 3


def test_a_fault_of_our_own_is_no_crash_of_the_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("in the judge")

    monkeypatch.setattr(running, "judged", broken)
    with pytest.raises(RuntimeError, match=r"(?s)hlotool itself failed at the trials of and:.*in the judge"):
        run_suite([SuiteTask("numpy", "and", ("s8",), 1)], Here(), None, False, lambda task, records: None)


def record(name: str, status: Any, elements: int, **others: Any) -> TrialRecord:
    return TrialRecord(
        name=name, opcode="add", element_type="f32", title="", status=status, elements=elements, **others
    )


def test_cells_and_their_smallest_failures() -> None:
    records = [
        record("a", "passed", 1),
        record("b", "allowed", 1, freedoms=["rounding"], ulps=3),
        record("c", "crashed", 1),
        record("d", "failed", 9),
        record("e", "failed", 5),
        record("f", "failed", 2, in_company=True),
    ]
    (cell,) = cells_of(records)
    assert (cell.status, cell.passed, cell.allowed, cell.crashed, cell.failed) == ("failed", 1, 1, 1, 3)
    assert (cell.freedoms, cell.ulps, cell.compared) == ({"rounding": 1}, 3, 5)
    assert [trial.name for trial in smallest_failures(records)] == ["e"]
    assert [trial.name for trial in smallest_failures(records[:3])] == ["c"]


def test_what_holds_a_wrong_operation_is_wrong_because_of_it() -> None:
    own = record("own", "failed", 9)
    records = [
        own,
        record("other", "failed", 1, holds=["multiply f32"]),
        replace(record("map", "failed", 4, holds=["add f32", "negate f32"]), opcode="map"),
    ]
    found = with_reasons(records)
    assert [trial.because for trial in found] == [[], [], ["add f32"]]
    assert [trial.name for trial in smallest_failures(found)] == ["other", "map"]
    assert with_reasons([own]) == [own]


def test_halves_are_all() -> None:
    task = SuiteTask("numpy", "and", (), 4)
    halves = list(task.halves())
    quarters = [quarter for half in halves for quarter in half.halves()]
    names = [trial.name for trial in task.trials()]
    for parts in (halves, quarters):
        assert [trial.name for part in parts for trial in part.trials()] == names
    assert list(SuiteTask("numpy", "and", (), 0, first=0, last=1).halves()) == []


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"only": "ad"}, "there is no opcode 'ad'"),
        ({"types": "f31"}, "there is no element type 'f31'"),
        ({"backend": "nump"}, "no backend 'nump'"),
    ],
)
def test_what_there_is_not(given: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        hlotool.conformance(**{"backend": "numpy", **given})


@pytest.mark.usefixtures("own_cache")
def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its table names what is wrong, writes the smallest program, and the line to type next shows it."""
    install(tmp_path, "spoilt", SPOILING.format(name="spoilt", spoil=WRONG), monkeypatch)
    monkeypatch.chdir(tmp_path)
    options = ["--backend", "spoilt", "--only", "subtract", "--types", "s16,s32", "--cases", "3"]
    code = main(["conformance", *options, "--out", "failures", "--html", "table.html", "--json"])
    assert code == ExitCode.MISMATCH
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "hlotool.conformance/1"
    assert {c["element_type"]: c["status"] for c in found["cells"]} == {"s16": "failed", "s32": "passed"}
    page = Path("table.html").read_text(encoding="utf-8")
    assert '<td class="failed" title="subtract s16:' in page
    assert '<td class="passed" title="subtract s32:' in page
    assert main(["conformance", *options, "--out", "failures", "--quiet"]) == ExitCode.MISMATCH
    (next_line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("next: ")]
    program = "failures/subtract-s16"
    assert next_line == f"next: hlotool run {program}.hlo --inputs {program}.npz --test spoilt"
    assert main(next_line.split()[2:]) == ExitCode.MISMATCH
    assert "✗ wrong" in capsys.readouterr().out


@pytest.mark.usefixtures("own_cache")
def test_nothing_that_could_be_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refusing = "from hlotool.errors import Unsupported; raise Unsupported('not today')"
    install(tmp_path, "idle", SPOILING.format(name="idle", spoil=refusing), monkeypatch)
    result = hlotool.conformance(backend="idle", only="not", cases=1)
    assert result.exit_code == ExitCode.NOTHING_COMPARED
    assert {trial.message for trial in result.record.refusals} == {"not today"}
    assert "refused" in str(result)
