"""The committed schemas are those of the code, and what is printed follows them."""

from __future__ import annotations

import json

import jsonschema
import msgspec
import pytest
from support import run_records as samples

from hlotool.errors import ExitCode
from hlotool.interface.report.json_schema import FOLDER, SCHEMAS, schema_text
from hlotool.interface.report.records import (
    BackendRecord,
    BackendsRecord,
    RunRecord,
    exit_code_of,
    versions,
)
from hlotool.judge.verdicts import AGREEING, DIFFERING, EXCUSED, FAILED, Verdict
from hlotool.system.records import Record


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_committed_schema_is_current(name: str) -> None:
    assert (FOLDER / name).read_text(encoding="utf-8") == schema_text(SCHEMAS[name]), (
        "the format changed: python -m hlotool.interface.report.json_schema; released formats only grow"
    )


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_property_is_described(name: str) -> None:
    for definition in json.loads(schema_text(SCHEMAS[name]))["$defs"].values():
        for field, property_ in definition.get("properties", {}).items():
            assert property_.get("description"), field


def validate(name: str, record: Record) -> None:
    schema = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(json.loads(msgspec.json.encode(record)), schema)


def test_a_run_follows_its_schema_and_reads_back() -> None:
    for run in (samples.mixed(), samples.explained()):
        validate("run-1.json", run)
        assert msgspec.json.decode(msgspec.json.encode(run), type=RunRecord) == run


def test_the_schema_rejects_what_is_no_run() -> None:
    schema = json.loads((FOLDER / "run-1.json").read_text(encoding="utf-8"))
    broken = json.loads(msgspec.json.encode(samples.mixed()))
    broken["modules"][0]["verdict"] = "fine"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(broken, schema)


def test_backends_follow_their_schema() -> None:
    validate("backends-1.json", BackendsRecord(backends=[BackendRecord(name="numpy", available=True)]))


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [
        ([Verdict.AGREE, Verdict.IDENTICAL], ExitCode.AGREE),
        ([Verdict.AGREE, Verdict.UNSUPPORTED, Verdict.NOT_COMPARED], ExitCode.AGREE),
        ([Verdict.UNSUPPORTED], ExitCode.NOTHING_COMPARED),
        ([Verdict.NOT_COMPARED, Verdict.NOT_COMPARABLE], ExitCode.NOTHING_COMPARED),
        ([], ExitCode.NOTHING_COMPARED),
        ([Verdict.AGREE, Verdict.BAD_INPUT], ExitCode.USAGE),
        ([Verdict.TIMEOUT, Verdict.BAD_INPUT], ExitCode.BACKEND_FAILED),
        ([Verdict.AGREE, Verdict.CRASHED, Verdict.WRONG], ExitCode.MISMATCH),
        ([Verdict.STRUCTURAL, Verdict.AGREE], ExitCode.MISMATCH),
        ([Verdict.UNSTABLE, Verdict.NOT_COMPARABLE], ExitCode.INCONCLUSIVE),
        ([Verdict.RANGE, Verdict.ROUNDING], ExitCode.AGREE),
        ([Verdict.SEMANTICS, Verdict.WRONG], ExitCode.MISMATCH),
    ],
)
def test_the_gravest_finding_decides_the_exit_code(verdicts: list[Verdict], code: ExitCode) -> None:
    rows = [samples.module("m", verdict) for verdict in verdicts]
    assert exit_code_of(rows) == code
    assert exit_code_of(rows, interrupted=True) == ExitCode.INTERRUPTED


@pytest.mark.parametrize(
    ("main", "code"),
    [
        (Verdict.UNSTABLE, ExitCode.INCONCLUSIVE),
        (Verdict.UNSUPPORTED, ExitCode.NOTHING_COMPARED),
        (Verdict.ROUNDING, ExitCode.AGREE),
        (Verdict.WRONG, ExitCode.MISMATCH),
    ],
)
def test_trivial_programs_hide_nothing(main: Verdict, code: ExitCode) -> None:
    helpers = [samples.module(f"h{n}", Verdict.IDENTICAL, is_trivial=True) for n in range(3)]
    assert exit_code_of([*helpers, samples.module("main", main)]) == code
    assert exit_code_of(helpers) == ExitCode.AGREE


@pytest.mark.parametrize("kind", ["unstable", "unsupported", "not-compared"])
def test_what_cannot_be_judged_is_a_finding_where_that_is_asked(kind: str) -> None:
    rows = [samples.agreeing("a"), samples.module("b", Verdict(kind.replace("-", " ")))]
    assert exit_code_of(rows) == ExitCode.AGREE
    assert exit_code_of(rows, fail_on=("nan", kind)) == ExitCode.MISMATCH
    assert exit_code_of(rows[:1], fail_on=(kind,)) == ExitCode.AGREE


def test_an_unstable_output_of_a_wrong_module_counts() -> None:
    leaf = msgspec.structs.replace(samples.agreeing_leaf([1]), verdict=Verdict.UNSTABLE)
    row = samples.module("m", Verdict.DIFFERS, leaves=[samples.agreeing_leaf([0]), leaf])
    assert row.fails_on(("unstable",))
    assert not row.fails_on(("unsupported", "inf"))


def test_verdict_groups_are_disjoint() -> None:
    groups = (AGREEING, DIFFERING, EXCUSED, FAILED)
    assert len(frozenset().union(*groups)) == sum(map(len, groups))


def test_versions_name_what_computes() -> None:
    assert {"hlotool", "python", "platform", "numpy", "ml_dtypes"} <= versions().keys()
