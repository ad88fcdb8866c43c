"""Reports for other tools: valid by their own schemas, whatever names a dump has."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import msgspec
import pytest
from support import run_records as samples

from hlotool.blame.bisection.records import BisectedModule, CulpritRecord
from hlotool.blame.diff_records import ProgramDiffRecord, ResultDiffRecord
from hlotool.checks.records import FailedFile, Finding, Severity
from hlotool.errors import ExitCode
from hlotool.interface.report.causes import causes_of_bisection, causes_of_check, causes_of_run
from hlotool.interface.report.command_records import BisectRecord, DiffRecord, ProveRecord
from hlotool.interface.report.console import printable
from hlotool.interface.report.exports import (
    COLUMNS,
    annotation_lines,
    csv_text,
    json_lines,
    junit,
    sarif_of,
    step_summary,
)
from hlotool.interface.report.outcome_rules import program_name, rules_for
from hlotool.interface.report.outcomes import State, outcomes_of
from hlotool.interface.report.records import CheckRecord, RunRecord
from hlotool.judge.verdicts import AGREEING, Verdict
from hlotool.runs.exact.records import ProvedLeafRecord, ProvedRecord
from hlotool.runs.options.kept import RunOptions
from hlotool.system.records import ErrorRecord, SourceRecord

#: Ours, and those that others publish, where they are at hand.
SCHEMAS = [
    Path(__file__).parent / "schemas",
    *map(Path, filter(None, [os.environ.get("HLOTOOL_PUBLISHED_SCHEMAS")])),
]
#: Markup of all languages that reports are written in, ends of lines, what XML cannot hold, no UTF-8.
HOSTILE = "</failure><script>alert(1)</script>]]>&amp;\"'`|\n::error::x\r\0\x1b[31m=1+1\u2028\udcffé"
MADE = datetime(2026, 11, 23, 6, 30)


def run_of(rows: Sequence[Any], **options: Any) -> RunRecord:
    run = samples.run(rows, options=RunOptions(**options))
    causes = causes_of_run(rows, lambda row: f"next {row.name}", run.options.fail_on)
    return msgspec.structs.replace(run, causes=causes)


def checked(findings: list[Finding], failures: Sequence[FailedFile] = ()) -> CheckRecord:
    return CheckRecord(
        versions={},
        paths=["d"],
        findings=findings,
        failures=list(failures),
        causes=causes_of_check(findings, lambda _: ""),
        exit_code=1,
    )


def bisected(culprits: list[CulpritRecord], **fields: Any) -> BisectRecord:
    causes = causes_of_bisection(culprits, lambda _: "")
    return BisectRecord(
        versions={},
        paths=["d"],
        options=RunOptions(),
        culprits=culprits,
        causes=causes,
        exit_code=1,
        **fields,
    )


def hostile() -> RunRecord:
    source = SourceRecord(instruction=HOSTILE, opcode="add", op_name=HOSTILE, file=HOSTILE, file_line=3)
    error = ErrorRecord(kind="BackendCrashed", message=HOSTILE, log=HOSTILE)
    leaf = msgspec.structs.replace(samples.differing_leaf(), source=source, reason=HOSTILE)
    return run_of(
        [
            samples.module(HOSTILE, Verdict.WRONG, leaves=[leaf], reason=HOSTILE, path=HOSTILE),
            samples.module(HOSTILE, Verdict.CRASHED, error=error, path=f"x/{HOSTILE}"),
        ]
    )


def every_record() -> dict[str, Any]:
    culprit = CulpritRecord(
        module="module_0001.jit_f",
        level="pass",
        pass_name="algsimp",
        opcodes=["add"],
        confirmed=True,
        signature="wrong: value of add",
        others=["module_0002.jit_f"],
        source=samples.SOURCE,
        comparison=samples.differing("module_0001.jit_f"),
    )
    finding = Finding(
        rule="stateful-rng",
        severity=Severity.WARNING,
        message="random",
        file="d/a b.hlo",
        line=5,
        module="m",
        instruction="rng.3",
        path=[samples.SOURCE],
        remedy="a seed",
    )
    failure = FailedFile(file="d/x", module="x", error=ErrorRecord(kind="HloSyntaxError", message="no HLO"))
    proof = ProvedRecord(
        name="f",
        left="a.hlo",
        right="b.hlo",
        relation="unequal",
        leaves=[ProvedLeafRecord(index=[1], relation="unequal")],
    )
    return {
        "run": run_of(list(samples.mixed().modules)),
        "explained": run_of(list(samples.explained().modules)),
        "hostile": hostile(),
        "nothing": run_of([]),
        "check": checked([finding, finding], [failure]),
        "bisect": bisected(
            [culprit, msgspec.structs.replace(culprit, confirmed=False, module="g", others=[])],
            modules=[BisectedModule(name="h", path="d/h", verdict="timeout")],
            healthy=["i"],
        ),
        "prove": ProveRecord(versions={}, left="a", right="b", pairs=[proof], only_left=["z"], exit_code=1),
        "diff": DiffRecord(
            versions={},
            left="a",
            right="b",
            kind="programs",
            programs=[ProgramDiffRecord(name="f", left="a/f", right="b/f", changed=2)],
            results=[ResultDiffRecord(name="x", left="a", right="b", comparison=samples.differing_leaf())],
            exit_code=1,
        ),
    }


RECORDS = every_record()


@pytest.mark.parametrize("name", RECORDS)
def test_sarif_follows_its_schema(name: str) -> None:
    document = json.loads(json.dumps(sarif_of(RECORDS[name])))
    for file in (file for folder in SCHEMAS for file in folder.glob("*.json")):
        schema = json.loads(file.read_text(encoding="utf-8"))
        checked_by = jsonschema.validators.validator_for(schema)
        checked_by(schema, format_checker=jsonschema.FormatChecker()).validate(document)
    [run] = document["runs"]
    rules = run["tool"]["driver"]["rules"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert rules[result["ruleIndex"]]["help"]["text"]
        for place in result.get("locations", []):
            address = place["physicalLocation"]["artifactLocation"]
            assert not address["uri"].startswith("/")
            assert "uriBaseId" in address or address["uri"].startswith("file:///")
    prints = [result["partialFingerprints"]["hlotoolIdentity/v1"] for result in run["results"]]
    assert len(set(prints)) == len(prints)


@pytest.mark.parametrize("name", RECORDS)
def test_junit_follows_its_schema_and_counts(name: str) -> None:
    outcomes = outcomes_of(RECORDS[name])
    text = junit(outcomes, 1.5, MADE).encode("utf-8", "backslashreplace")
    root = ElementTree.fromstring(text)
    assert len(root.findall(".//testcase")) == len(outcomes)
    for element, state in (("failure", State.FAILED), ("error", State.ERROR), ("skipped", State.SKIPPED)):
        assert len(root.findall(f".//{element}")) == sum(o.state is state for o in outcomes)
    assert sum(int(suite.get("failures", "")) for suite in root) == len(root.findall(".//failure"))
    etree = pytest.importorskip("lxml.etree")
    for file in (file for folder in SCHEMAS for file in folder.glob("*.xsd")):
        etree.XMLSchema(etree.parse(str(file))).assertValid(etree.fromstring(text))


@pytest.mark.parametrize("name", RECORDS)
def test_csv_has_a_line_for_each_and_no_formula(name: str) -> None:
    outcomes = outcomes_of(RECORDS[name])
    header, *rows = csv.reader(io.StringIO(csv_text(outcomes), newline=""))
    assert header == list(COLUMNS)
    assert len(rows) == len(outcomes)
    assert not [cell for row in rows for cell in row if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]


@pytest.mark.parametrize("formula", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "|cmd", "%0A=1"])
def test_names_are_no_formulas(formula: str) -> None:
    [row] = list(csv.DictReader(io.StringIO(csv_text(outcomes_of(run_of([samples.agreeing(formula)]))))))
    assert row["name"] == f"'{printable(formula)}"


@pytest.mark.parametrize("name", RECORDS)
def test_json_lines_are_the_entries_of_the_record(name: str) -> None:
    lines = [json.loads(line) for line in json_lines(RECORDS[name])]
    assert len(lines) == len(
        [o for o in outcomes_of(RECORDS[name]) if o.rule not in ("healthy", "only-one-side")]
    )


def test_what_cannot_be_written_stands_there_as_an_escape() -> None:
    root = ElementTree.fromstring(junit(outcomes_of(hostile()), 0, MADE).encode("utf-8", "backslashreplace"))
    [suite, *_] = root
    said = suite.find(".//failure").get("message")
    assert r"\x00\x1b[31m" in said
    assert "<script>" in said
    assert root.find(".//script") is None


def test_annotations_are_single_lines_that_no_name_ends() -> None:
    lines = list(annotation_lines(outcomes_of(hostile())))
    assert len(lines) == 2
    for line in lines:
        assert line.startswith("::error file=")
        assert "\n" not in line
        assert "\r" not in line
        head, _, _ = line[2:].partition("::")
        # What the runner splits: properties at commas, each at its first equals sign.
        assert [part.partition("=")[0] for part in head.removeprefix("error ").split(",")] in (
            ["file", "line", "title"],
            ["file", "title"],
        )


def test_a_cause_is_annotated_once_and_of_each_level_as_many_as_are_shown() -> None:
    rows = [samples.differing(f"m{n}") for n in range(50)]
    [line] = annotation_lines(outcomes_of(run_of(rows)))
    assert line.startswith("::error file=/home/user/train/model.py,line=88,title=hlotool%3A wrong in m0::")
    others = [samples.module(f"n{n}", Verdict.BAD_INPUT, reason=f"{chr(97 + n) * 9}") for n in range(20)]
    assert len(list(annotation_lines(outcomes_of(run_of(others))))) == 10
    assert list(annotation_lines(outcomes_of(run_of([samples.agreeing("a"), samples.alone()])))) == []


def test_the_step_summary_holds_no_markup_of_names() -> None:
    record = hostile()
    text = step_summary(outcomes_of(record), record.causes, 3.0, "hlotool run `x`\n```")
    assert "<script>" not in text
    assert text.startswith("## hlotool: 1 failed · 1 error\n")
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert {row.count(" | ") for row in rows} == {4}
    assert "````sh\nhlotool run `x` ```\n````" in text


def test_states_follow_verdicts() -> None:
    rows = [samples.module(verdict.value, verdict, reason="r") for verdict in Verdict]
    found = {outcome.rule: outcome.state for outcome in outcomes_of(run_of(rows))}
    for verdict in Verdict:
        state = found[verdict.value]
        assert (state is State.FAILED) == (verdict.exit_code is ExitCode.MISMATCH)
        assert (state is State.PASSED) == (verdict in AGREEING)
    assert rules_for(rule for rule, state in found.items() if state is not State.PASSED)


def test_a_value_that_the_user_does_not_want_is_a_finding() -> None:
    row = samples.module("m", Verdict.AGREE, special_values=[{"index": [], "total": 4, "nan": 1}])
    row = msgspec.convert(msgspec.to_builtins(row), type(row))
    assert outcomes_of(run_of([row]))[0].state is State.PASSED
    [outcome] = outcomes_of(run_of([row], fail_on=("nan",)))
    assert (outcome.state, outcome.rule) == (State.FAILED, "not-finite")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a/module_0000.jit_f", "b/c/module_0123.jit_f"),
        ("module_0001.a_inference_step_453__.7", "module_0009.a_inference_step_99__.12"),
    ],
)
def test_a_program_keeps_its_name_in_another_dump(one: str, other: str) -> None:
    assert program_name(one) == program_name(other)
    assert program_name(one) != program_name(other.replace("jit_f", "jit_g").replace("step", "stop"))
