"""The benchmark of verdicts: pairs, faults that count, records that survive, tables."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from benchmarks.common.units import UnitDone, read_records, write_records
from benchmarks.verdicts import faults
from benchmarks.verdicts.inputs import further_cases
from benchmarks.verdicts.judge import PairVerdict
from benchmarks.verdicts.measure import legal_records
from benchmarks.verdicts.programs import Subject, subjects
from benchmarks.verdicts.records import DECODER, FaultRecord, LegalRecord, Record
from benchmarks.verdicts.report import is_alarm, is_false_alarm, report
from benchmarks.verdicts.runs import Runs
from hlotool.backends.numpy import NumpyBackend
from hlotool.lab.faults import CATALOGUE

DOUBLE = """HloModule m
ENTRY e { x = f32[8,3] parameter(0)
  two = f32[] constant(2)
  twos = f32[8,3] broadcast(two), dimensions={}
  ROOT r = f32[8,3] multiply(x, twos) }"""


def judgement(verdict: str, peers: list[str], patterns: list[str] | None = None) -> PairVerdict:
    members = 5 if verdict in ("rounding", "wrong") else 0
    return PairVerdict(verdict, "because", [verdict], patterns or [], members, 0.5, 0.1, 0.15, peers)


def legal(verdict: str) -> LegalRecord:
    return LegalRecord("program", "numpy vs xla", "", 0, judgement(verdict, ["hlo_isolation"]))


def fault(verdict: str, patterns: list[str]) -> FaultRecord:
    found = judgement(verdict, ["hlo_isolation"], patterns)
    return FaultRecord(
        "sign", "sign", "program", "before", "%e/%r", 0, False, True, 99.0, True, found, None, "XLA: refused"
    )


def planter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> faults.Planter:
    """One that never asks XLA."""
    monkeypatch.setattr(faults.Planter, "_seen", lambda *_: [])
    return faults.Planter(Runs(tmp_path / "runs"), tmp_path / "spreads", on_xla=0)


def test_faults_count_where_they_are_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = next(k for k in CATALOGUE if k.name == "sign")
    found = list(planter(tmp_path, monkeypatch).faults(kind, [Subject("double", DOUBLE)]))
    assert [str(f.site) for f in found if f.at_output] == ["%e/%r"]
    assert all(f.counts and f.ratio > 1e5 and not f.is_deep for f in found)
    assert [f.seed for f in found] == [
        f.seed for f in planter(tmp_path, monkeypatch).faults(kind, [Subject("double", DOUBLE)])
    ]


def test_endless_loops_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = """HloModule m
body { c = s32[] parameter(0)
  one = s32[] constant(1)
  ROOT n = s32[] add(c, one) }
condition { c = s32[] parameter(0)
  ten = s32[] constant(10)
  ROOT p = pred[] compare(c, ten), direction=LT }
ENTRY e { z = s32[] constant(0)
  ROOT w = s32[] while(z), condition=condition, body=body }"""
    monkeypatch.setattr(faults, "_SECONDS", 0.2)
    kind = next(k for k in CATALOGUE if k.name == "saturation")
    found = list(planter(tmp_path, monkeypatch).faults(kind, [Subject("loop", text)]))
    assert [str(f.site) for f in found] == ["%e/%w"], "within the body the counter never gets to ten"


def test_interrupted_units_are_judged_again(tmp_path: Path) -> None:
    path = tmp_path / "legal.jsonl"
    write_records(path, [legal("agree"), UnitDone("program", "legal", 1.0)])
    write_records(path, [LegalRecord("other", "numpy vs xla", "", 0, None, "cut off")])
    with path.open("ab") as file:
        file.write(b'{"type":"legal","unit":"torn')
    records = list(read_records(path, DECODER))
    assert [r.unit for r in records if isinstance(r, LegalRecord)] == ["program"]


def test_tables() -> None:
    records: list[Record] = [legal("agree"), legal("rounding"), legal("wrong")]
    records += [fault("wrong", ["sign"]), fault("wrong", []), fault("rounding", [])]
    text = "\n".join(report(records))
    assert "3 pairs of legal executions of 1 programs" in text
    assert "| all | 3 | 1 | 1 | 1 | 1 | 3 | 0 |" in text
    assert "2.0 times planning and running the reference once, 5.0 times running it" in text
    assert "| sign | 3 | 1 | 0 of 0 | sign | 50% | 0 | 3 |" in text
    assert "named right: 1 of 1 (100%)" in text


def test_tables_of_sets_tell_what_a_replay_judges() -> None:
    asked = replace(legal("wrong"), set="ties", kind="ties", is_same_program=True)
    left = replace(asked, set="NaN in x", kind="NaN", suits_other_backends=False)
    of_stages = replace(left, is_same_program=False)
    assert [is_false_alarm(r) for r in (legal("agree"), asked, left, of_stages)] == [False, True, False, True]
    text = "\n".join(report([legal("agree"), asked, left, of_stages]))
    assert "1 pairs of legal executions of 1 programs" in text
    assert "On further sets: 2 runs of 1 pairs of programs and ways, on 2 sets of 1 programs." in text
    asked_table, left_table = text.split("Sets that a replay runs on one backend alone")
    assert "| ties | 1 | 1 | 1 |" in asked_table
    assert "| ties |" not in left_table
    assert "| NaN | 1 | 1 | 1 |" in left_table
    assert text.count("- accused: program, numpy vs xla") == 3
    assert text.count("(not judged by a replay)") == 1


def test_kinds_of_sets_take_turns() -> None:
    [subject] = list(subjects("^gather.points$"))
    executable = NumpyBackend().compile(subject.module)
    cases = further_cases(subject, executable, 3, 8, 6)
    suiting, others = cases[:8], cases[8:]
    assert all(c.suits_other_backends for c in suiting)
    assert not any(c.suits_other_backends for c in others)
    assert len({c.kind for c in suiting}) >= 4
    assert len({c.kind for c in others}) == 6
    assert "indices out of range" in {c.kind for c in suiting}
    assert [c.set for c in cases] == [c.set for c in further_cases(subject, executable, 3, 8, 6)]
    assert further_cases(subject, executable, 3, 0, 0) == []


@pytest.mark.xla
def test_further_sets_of_a_pair(tmp_path: Path) -> None:
    records = legal_records("dynamic-slice.clamped", tmp_path, "", 3, (4, 2))
    legal_ones = [r for r in records if isinstance(r, LegalRecord) and r.way == "numpy vs xla"]
    assert [r.seed for r in legal_ones if r.set == "plain"] == [3, 4, 5, 6, 7]
    assert len({r.set for r in legal_ones}) == 7
    assert not any(map(is_false_alarm, records))


@pytest.mark.xla
def test_legal_pairs_of_a_program(tmp_path: Path) -> None:
    records = legal_records("add.f32", tmp_path, "")
    ways = {r.way for r in records if isinstance(r, LegalRecord) and r.judgement is not None}
    assert {"numpy vs xla", "optimisation level 0", "xla vs xla"} <= ways
    assert not any(isinstance(r, LegalRecord) and is_alarm(r.judgement) for r in records)


def test_subjects_are_unique() -> None:
    names = [s.name for s in subjects()]
    assert len(names) == len(set(names)) > 300
