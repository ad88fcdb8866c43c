"""The committed table of opcodes is what the code does."""

from __future__ import annotations

import pytest
from spec.minimal_modules import minimal_texts
from spec.opcode_table import FILE, NOT_HLO, REFUSED, RUNS, arguments, document, notes, status
from support.oracle import OracleUnable
from support.xla import XlaError, oracle

from hlotool.ir.opcodes import OPCODES
from hlotool.ir.types import ElementType
from hlotool.parser.reader import parse_module

#: Opcodes that need something which no dump holds.
FROM_OUTSIDE = {"infeed", "recv", "recv-done"}


def test_the_file_is_current() -> None:
    assert FILE.read_text(encoding="utf-8") == document(), (
        "PYTHONPATH=tests python -m spec.opcode_table --write"
    )


@pytest.mark.parametrize("opcode", OPCODES)
def test_a_minimal_module_has_its_opcode(opcode: str) -> None:
    for text in minimal_texts(opcode, ElementType.F32):
        assert opcode in {i.opcode for i in parse_module(text).instructions()}


def test_what_does_not_run_has_one_reason() -> None:
    for opcode in OPCODES:
        marks = {status(opcode, kind)[0] for kind in ElementType} - {RUNS}
        reasons = [note[0] for note in notes(opcode).split("; ") if note[:1] in (NOT_HLO, REFUSED)]
        assert sorted(reasons) == sorted(marks), opcode


@pytest.mark.xla
@pytest.mark.slow
@pytest.mark.parametrize("opcode", OPCODES)
def test_what_is_not_hlo_is_none_for_xla(opcode: str) -> None:
    for kind in ElementType:
        if status(opcode, kind)[0] == NOT_HLO:
            module = parse_module(minimal_texts(opcode, kind)[0])
            with pytest.raises((XlaError, OracleUnable)):
                oracle().run(module.to_text(), arguments(module))


def test_every_opcode_runs_for_some_type() -> None:
    idle = {o for o in OPCODES if not any(status(o, kind)[0] == RUNS for kind in ElementType)}
    assert idle == FROM_OUTSIDE
