"""What is known fails no more, and a baseline hides nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support import run_records as samples

from hlotool import update_baseline
from hlotool.checks.records import Finding, Severity
from hlotool.errors import ExitCode, UsageError
from hlotool.interface.report.baseline import baseline_of, compared_with, read_baseline, updated
from hlotool.interface.report.causes import causes_of_check, causes_of_run
from hlotool.interface.report.console import plain_text
from hlotool.interface.report.exports import sarif_of
from hlotool.interface.report.next_command import command_after_run
from hlotool.interface.report.outcomes import outcomes_of
from hlotool.interface.report.records import CheckRecord, RunRecord, exit_code_of
from hlotool.interface.report.terminal import RunReport
from hlotool.judge.records import EvidenceRecord
from hlotool.judge.verdicts import Verdict
from hlotool.runs.options.kept import RunOptions
from hlotool.runs.records import ModuleRecord


def run_of(*rows: ModuleRecord, **options: Any) -> RunRecord:
    run = samples.run(rows, options=RunOptions(**options))
    causes = causes_of_run(rows, lambda _: "", run.options.fail_on)
    code = exit_code_of(rows, fail_on=run.options.fail_on)
    return msgspec.structs.replace(run, causes=causes, exit_code=int(code))


def judged(record: RunRecord, *known: ModuleRecord) -> RunRecord:
    return compared_with(record, baseline_of(run_of(*known)), "old.json")


def wrong(name: str = "module_0003.jit_g", **fields: Any) -> ModuleRecord:
    return msgspec.structs.replace(samples.differing(name), **fields)


def test_what_is_known_does_not_fail() -> None:
    record = judged(run_of(samples.agreeing("a"), wrong()), wrong())
    assert record.exit_code == ExitCode.AGREE
    assert record.baseline is not None
    assert (record.baseline.known, record.baseline.new) == ([1], [])
    assert command_after_run(record, verbose=False) == ""
    text = plain_text(RunReport(record))
    assert "baseline old.json: 1 known, 0 new" in text


def test_it_is_known_elsewhere_too() -> None:
    """In another folder, under another number, on another version of the backend."""
    moved = wrong("host7/module_0123.jit_g", path="/tmp/x/y.txt", tested="numpy 9.9")
    assert judged(run_of(moved), wrong()).exit_code == ExitCode.AGREE


def changed_leaf(**fields: Any) -> Callable[[ModuleRecord], ModuleRecord]:
    def change(row: ModuleRecord) -> ModuleRecord:
        leaves = [
            msgspec.structs.replace(leaf, **fields) if leaf.verdict is Verdict.WRONG else leaf
            for leaf in row.leaves
        ]
        return msgspec.structs.replace(row, leaves=leaves)

    return change


def another_leaf(row: ModuleRecord) -> ModuleRecord:
    leaves = [*row.leaves, samples.differing_leaf([7])]
    return msgspec.structs.replace(row, leaves=leaves)


def another_source(row: ModuleRecord) -> ModuleRecord:
    source = msgspec.structs.replace(samples.SOURCE, file_line=89)
    return changed_leaf(source=source)(row)


@pytest.mark.parametrize(
    "change",
    [
        lambda row: msgspec.structs.replace(row, verdict=Verdict.STRUCTURAL),
        lambda row: msgspec.structs.replace(row, name="module_0003.jit_h"),
        lambda row: msgspec.structs.replace(row, stage_tested="another"),
        lambda row: msgspec.structs.replace(row, tested="xla 0.10.2"),
        changed_leaf(nan_mismatches=0),
        changed_leaf(shape="f32[3]"),
        changed_leaf(evidence=EvidenceRecord(seed=0, pattern="shift")),
        another_leaf,
        another_source,
    ],
    ids=["verdict", "module", "stage", "backend", "fault", "shape", "pattern", "leaf", "source"],
)
def test_a_new_fault_in_a_known_module_is_new(change: Callable[[ModuleRecord], ModuleRecord]) -> None:
    record = judged(run_of(change(wrong())), wrong())
    assert record.exit_code == ExitCode.MISMATCH
    assert record.baseline is not None
    assert len(record.baseline.new) == 1


def test_one_more_of_a_known_kind_is_new() -> None:
    record = judged(run_of(wrong(), wrong("module_0004.jit_g")), wrong())
    assert record.exit_code == ExitCode.MISMATCH
    assert record.baseline is not None
    assert (record.baseline.known, record.baseline.new) == ([0], ["module_0004.jit_g: wrong"])
    assert "module_0004" in command_after_run(record, verbose=False)


def test_the_same_programs_on_one_more_host_are_not_new() -> None:
    twin = wrong("host2/module_0003.jit_g", twin_of="host1/x.txt")
    assert judged(run_of(wrong(), twin, twin), wrong()).exit_code == ExitCode.AGREE
    assert judged(run_of(twin), samples.crashed("c")).exit_code == ExitCode.MISMATCH
    assert baseline_of(run_of(wrong(), twin)).known == baseline_of(run_of(wrong())).known
    # Programs that are not the same count, whatever stands beside them.
    record = judged(run_of(wrong(), twin, wrong("host3/module_0003.jit_g")), wrong())
    assert record.exit_code == ExitCode.MISMATCH


def test_a_new_crash_beside_a_known_fault() -> None:
    record = judged(run_of(wrong(), samples.crashed("c")), wrong())
    assert record.exit_code == ExitCode.BACKEND_FAILED


def test_what_is_gone_is_named_and_what_was_not_looked_at_apart() -> None:
    record = judged(run_of(samples.agreeing("module_0009.jit_g")), wrong(), samples.crashed("c"))
    assert record.baseline is not None
    assert record.baseline.fixed == ["module_0003.jit_g: wrong"]
    assert record.baseline.absent == ["c: crashed"]
    text = plain_text(RunReport(record))
    assert "fixed: module_0003.jit_g: wrong" in text
    assert "not looked at: c: crashed" in text


def test_an_interrupted_run_is_not_fine() -> None:
    stopped = msgspec.structs.replace(run_of(wrong()), interrupted=True, exit_code=int(ExitCode.INTERRUPTED))
    assert judged(stopped, wrong()).exit_code == ExitCode.INTERRUPTED


def test_values_that_are_not_wanted_fail_where_they_are_new() -> None:
    row = msgspec.convert(
        msgspec.to_builtins(samples.agreeing("a"))
        | {"special_values": [{"index": [], "total": 4, "nan": 1}]},
        ModuleRecord,
    )
    record = run_of(row, fail_on=("nan",))
    assert judged(record, wrong()).exit_code == ExitCode.MISMATCH
    assert compared_with(record, baseline_of(record), "f").exit_code == ExitCode.AGREE


def checked(*findings: Finding, fail_on: str = "warning") -> CheckRecord:
    causes = causes_of_check(findings, lambda _: "")
    known: dict[str, Any] = {"versions": {}, "paths": ["d"], "exit_code": 1 if findings else 0}
    return CheckRecord(findings=list(findings), causes=causes, fail_on=fail_on, **known)


def test_findings_of_check() -> None:
    def finding(name: str, severity: Severity = Severity.WARNING) -> Finding:
        return Finding(rule=name, severity=severity, message="odd", module="m", instruction="x.3")

    old = baseline_of(checked(finding("one")))
    assert compared_with(checked(finding("one")), old, "f").exit_code == ExitCode.AGREE
    assert compared_with(checked(finding("one"), finding("two")), old, "f").exit_code == ExitCode.MISMATCH
    # A note beside it is new, and does not count.
    note = finding("two", Severity.NOTE)
    assert compared_with(checked(finding("one"), note), old, "f").exit_code == ExitCode.AGREE


def test_an_update_keeps_what_was_not_looked_at_and_forgets_what_is_gone() -> None:
    old = baseline_of(run_of(wrong(), samples.crashed("c")))
    new = updated(old, [run_of(samples.agreeing("module_0009.jit_g"), samples.timed_out("t"))], "f")
    assert sorted(known.name for known in new.known) == ["c", "t"]
    assert (new.added, new.removed) == (["t: timeout"], ["module_0003.jit_g: wrong"])


def test_files(tmp_path: Path) -> None:
    record, known = tmp_path / "now.json", tmp_path / "known.json"
    record.write_bytes(msgspec.json.encode(run_of(wrong())))
    result = update_baseline(known, record)
    assert [row.name for row in result.rows] == ["module_0003.jit_g"]
    assert str(result).endswith("known.json: 1 known finding")
    assert read_baseline(str(known)).known == read_baseline(str(record)).known
    with pytest.raises(UsageError, match="is no record with findings"):
        update_baseline(known, known)
    for text in ("", "[]", "{}", '{"schema": "hlotool.run/1"}', '{"schema": "x"}'):
        record.write_text(text, encoding="utf-8")
        with pytest.raises(UsageError, match="no baseline, and no record of --json"):
            read_baseline(str(record))


def test_other_reports_say_it() -> None:
    record = judged(run_of(wrong(), samples.crashed("c")), wrong())
    [first, second] = sarif_of(record)["runs"][0]["results"]
    assert (first["baselineState"], second["baselineState"]) == ("unchanged", "new")
    assert [outcome.is_known for outcome in outcomes_of(record)] == [True, False]
