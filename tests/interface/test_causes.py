"""Rows of one cause are counted together, and of two causes apart."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest
from support import run_records as samples

from hlotool.checks.records import Finding, Severity
from hlotool.interface.report.causes import causes_of_check, causes_of_run
from hlotool.interface.report.console import plain_text
from hlotool.interface.report.next_command import command_after_row
from hlotool.interface.report.terminal import RunReport
from hlotool.judge.records import DivergenceRecord, EvidenceRecord
from hlotool.judge.verdicts import Verdict
from hlotool.runs.records import LeafRecord, ModuleRecord
from hlotool.system.records import SourceRecord


def located(
    name: str,
    opcode: str = "multiply",
    line: int = 12,
    folder: str = "/home/a",
    pattern: str = "",
    share: int = 1,
) -> ModuleRecord:
    source = SourceRecord(
        instruction=f"{opcode}.{len(name)}", opcode=opcode, file=f"{folder}/train.py", file_line=line
    )
    found = DivergenceRecord(
        finding="wrong", source=source, text="", expected_source=source, expected_text=""
    )
    leaf = LeafRecord(
        index=[],
        shape="f32[8]",
        verdict=Verdict.WRONG,
        total=8,
        mismatched=share,
        evidence=EvidenceRecord(seed=0, beyond=share, pattern=pattern),
    )
    return samples.module(name, Verdict.WRONG, leaves=[leaf], divergence=found, path=f"{name}/m.txt")


def causes(*rows: ModuleRecord) -> list[Any]:
    run = samples.run(rows)
    return causes_of_run(rows, lambda row: command_after_row(run, row))


def test_rows_with_one_located_cause_are_counted_together() -> None:
    rows = [located("host0/a"), samples.agreeing("b"), located("host1/c", share=8), located("host1/d")]
    [cause] = causes(*rows)
    assert (cause.count, cause.rows, cause.kind) == (3, [0, 2, 3], "wrong")
    assert cause.what == "multiply returns other values"
    assert cause.source.user_line == "/home/a/train.py:12"
    # Eight of eight elements are worse than one of eight.
    assert (cause.example, cause.file) == ("host1/c", "host1/c/m.txt")
    assert sorted((f.folder, f.count) for f in cause.folders) == [
        ("host0/a", 1),
        ("host1/c", 1),
        ("host1/d", 1),
    ]
    assert cause.next.startswith("hlotool bisect ")
    assert "--only '^host1/c$'" in cause.next


@pytest.mark.parametrize(
    "other", [{"opcode": "add"}, {"line": 13}, {"pattern": "shift"}], ids=lambda changed: next(iter(changed))
)
def test_another_opcode_line_or_pattern_is_another_cause(other: dict[str, Any]) -> None:
    one, two = causes(located("a"), located("b", **other))
    assert one.id != two.id


def test_the_id_does_not_depend_on_where_the_sources_were() -> None:
    [one], [two] = causes(located("a", folder="/home/a")), causes(located("a", folder="/build/7"))
    assert one.id == two.id
    assert one.signature != two.signature


def test_what_died_in_the_same_way_is_one_cause_and_says_who() -> None:
    rows = [samples.unsupported("a.f", "custom-call.3", 12), samples.unsupported("b.g", "custom-call.9", 7)]
    [cause] = causes(*rows)
    assert (cause.kind, cause.count) == ("unsupported", 2)
    one, two = causes(samples.crashed("a"), samples.timed_out("b"))
    assert {one.kind, two.kind} == {"crashed", "timeout"}


def test_the_gravest_cause_comes_last_and_of_equally_grave_ones_the_most_frequent() -> None:
    rows = [
        located("a"),
        located("b"),
        located("c", opcode="add"),
        samples.crashed("d"),
        samples.crashed("e"),
    ]
    assert [(c.kind, c.count) for c in causes(*rows)] == [("crashed", 2), ("wrong", 1), ("wrong", 2)]


def test_agreement_has_no_cause_unless_it_is_a_finding() -> None:
    row = samples.agreeing("a")
    assert causes(row) == []


def test_findings_of_check_that_say_the_same_of_the_same_line() -> None:
    def finding(module: str, **fields: Any) -> Finding:
        known = {"rule": "r", "severity": Severity.WARNING, "message": f"%x.{len(module)} of {module} is odd"}
        return Finding(module=module, file=f"{module}.txt", **(known | fields))

    found = causes_of_check(
        [finding("aa"), finding("b"), finding("c", rule="s", severity=Severity.ERROR)], lambda _: "next"
    )
    assert [(c.kind, c.count, c.next) for c in found] == [("r", 2, "next"), ("s", 1, "next")]


def test_a_big_run_lists_causes_and_not_hundreds_of_rows() -> None:
    rows = [located(f"host{n}/m") for n in range(340)] + [samples.crashed(f"c{n}") for n in range(60)]
    run = msgspec.structs.replace(samples.run(rows), causes=causes(*rows))
    text = plain_text(RunReport(run, quiet=True))
    assert "✗ wrong ×340  multiply returns other values" in text
    assert re.search(r" 340 folders: (\S+ ×1,? ){4}and 336 more", text)
    assert text.count("host7/m") == 0
    twins = [msgspec.structs.replace(row, twin_of=rows[0].path) for row in rows[1:340]]
    run = msgspec.structs.replace(samples.run(rows), causes=causes(rows[0], *twins))
    text = plain_text(RunReport(run, quiet=True))
    assert "✗ wrong ×340 of 1 program  multiply returns other values" in text
    assert text.count("\n") < 100
    assert "400 rows" not in plain_text(RunReport(run, verbose=True))
