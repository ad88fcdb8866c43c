"""When are two failures the same, and when alike?"""

from __future__ import annotations

from msgspec.structs import replace
from support import run_records as samples

from hlotool.errors import BackendCrashed
from hlotool.judge.failures import Signature, signature_of_death
from hlotool.judge.verdicts import Verdict
from hlotool.runs.records import LeafRecord, ModuleRecord
from hlotool.system.records import SourceRecord

ADD = SourceRecord(instruction="add.3", opcode="add", file="train.py", file_line=7)


def row(*leaves: LeafRecord, verdict: Verdict = Verdict.WRONG) -> ModuleRecord:
    return ModuleRecord(path="p", name="m", verdict=verdict, leaves=list(leaves))


def leaf(verdict: Verdict = Verdict.WRONG, index: int = 0, **more: object) -> LeafRecord:
    return replace(LeafRecord(index=[index], shape="f32[2]", verdict=verdict), **more)


def test_a_row_says_what_is_wrong_where() -> None:
    found = row(
        leaf(Verdict.ROUNDING, 0),
        leaf(index=1, source=ADD),
        leaf(index=2, nan_mismatches=3, source=replace(ADD, opcode="dot", file="")),
        leaf(index=3, inf_mismatches=1),
        leaf(Verdict.STRUCTURAL, 4),
    ).signature
    assert found == Signature(
        kind="wrong",
        elements=("value", "NaN", "infinity", "shape"),
        opcodes=("add", "dot"),
        outputs=((1,), (2,), (3,), (4,)),
        sources=("train.py:7",),
    )
    assert str(found) == "wrong: value and NaN and infinity and shape of add, dot"


def test_rows_without_wrong_outputs_are_what_their_verdict_says() -> None:
    assert str(samples.agreeing("m").signature) == "agree"
    assert str(row(verdict=Verdict.STRUCTURAL).signature) == "structural"


def test_another_program_may_fail_alike_in_other_outputs_and_lines() -> None:
    one, other = row(leaf(index=1, source=ADD)), row(leaf(index=2, source=replace(ADD, file_line=9)))
    assert one.signature != other.signature
    assert one.signature.elsewhere() == other.signature.elsewhere()
    divided = row(leaf(index=1, source=replace(ADD, opcode="divide")))
    assert one.signature.elsewhere() != divided.signature.elsewhere()


def test_a_smaller_program_keeps_its_nan_and_may_lose_the_instruction() -> None:
    one = row(leaf(source=ADD), leaf(index=1, nan_mismatches=1)).signature
    other = row(leaf(nan_mismatches=2, source=replace(ADD, opcode="dot"))).signature
    assert one.smaller() == other.smaller() == Signature(kind="wrong with NaN")
    assert row(leaf(inf_mismatches=2)).signature.smaller() == Signature(kind="wrong")


def test_deaths_are_told_apart_by_their_words_not_by_names_or_numbers() -> None:
    found = [
        signature_of_death(BackendCrashed("xla", text))
        for text in (
            "Check failed: a.rank() == 2 (3 vs. 2) in %fusion.12",
            "Check failed: a.rank() == 4 (7 vs. 4) in %add.3\nmore",
            "Segmentation fault",
        )
    ]
    assert found[0] == found[1] != found[2]
    assert str(found[2]) == "BackendCrashed: Segmentation fault"
    assert found[0].smaller() == found[0]
