"""The first diverging instruction for people, as golden texts of 100 columns."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hlotool.interface.report.console import plain_text
from hlotool.interface.report.located import first_divergence
from hlotool.judge.records import (
    DeviationRecord,
    DivergenceRecord,
    ElementRecord,
    NonFiniteRecord,
    OperandRecord,
)
from hlotool.system.records import SourceRecord

SOURCE = SourceRecord(
    instruction="add.3",
    opcode="add",
    line=57,
    op_name="jit(step)/while/body/mul",
    file="train.py",
    file_line=42,
    function="loss",
)
WORST = ElementRecord(index=[7, 5], expected="-2", actual="2.25", absolute=4.25, relative=1.0, ulps=2**31)

WRONG = DivergenceRecord(
    finding="wrong",
    source=SOURCE,
    text="%add.3 = f32[8,16]{1,0} add(%p.0, %p.1)",
    expected_source=SourceRecord(instruction="mul.1", opcode="multiply", line=12),
    expected_text="%mul.1 = f32[8,16]{1,0} multiply(%x, %y)",
    around=["fusion %loop_fusion", "while %while.5, iteration 3"],
    operands=[
        OperandRecord(instruction="x", shape="f32[8,16]", state="agrees"),
        OperandRecord(instruction="slice.2", shape="f32[8,16]", state="unknown"),
    ],
    accumulated=DeviationRecord(total=128, mismatched=128, absolute=4.25, ulps=2**31, worst=WORST),
    local=DeviationRecord(total=128, mismatched=127, absolute=4.5, worst=WORST),
    repair="the reference's multiply",
    repaired=1,
    outputs=2,
    unaligned=["slice %slice.2"],
    not_finite=[
        NonFiniteRecord(
            kind="NaN",
            source=SourceRecord(instruction="log.1", opcode="log", line=60, op_name="jit(step)/log"),
            text="%log.1 = f32[8,16]{1,0} log(%add.3)",
            around=["while %while.5, iteration 3"],
            index=[7, 6],
            operands=[OperandRecord(instruction="add.3", shape="f32[8,16]", value="-0.5")],
        )
    ],
    notes=["tested: only the first 1000000 values were looked at"],
)

AMPLIFIES = DivergenceRecord(
    finding="amplifies",
    source=SourceRecord(instruction="floor.1", opcode="floor", line=9),
    text="%floor.1 = f32[3] floor(%q)",
    expected_source=SourceRecord(instruction="floor.1", opcode="floor", line=8),
    expected_text="%floor.1 = f32[3] floor(%q)",
    operands=[OperandRecord(instruction="q", shape="f32[3]", state="agrees")],
    accumulated=DeviationRecord(total=3, mismatched=1, absolute=1.0, worst=WORST),
    local=DeviationRecord(total=3, mismatched=0),
    outputs=1,
)

SUSPECTED = DivergenceRecord(
    finding="suspected",
    source=SourceRecord(instruction="w", opcode="while", line=9, op_name="jit(f)/while"),
    text="%w = f32[3] while(%x), condition=%c, body=%b",
    expected_source=SourceRecord(instruction="w", opcode="while"),
    expected_text="%w = f32[3] while(%x), condition=%c, body=%b",
    inside="%c = f32[] maximum(%a, %b)",
    inside_expected="%c = f32[] add(%a, %b)",
    outputs=1,
)

CASES = {"wrong": WRONG, "amplifies": AMPLIFIES, "suspected": SUSPECTED}


@pytest.mark.parametrize("name", CASES)
def test_report(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"report/divergence_{name}.txt", plain_text(first_divergence(CASES[name]), 100))
