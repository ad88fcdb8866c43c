"""The opcode table is the one list: whoever reads it must find what it needs for every row."""

from __future__ import annotations

import pytest

from hlotool.ir.attribute_kinds import ATTRIBUTE_KINDS, COMMON_ATTRIBUTES
from hlotool.ir.opcodes import OPCODES, attribute_kind


def test_number_of_opcodes() -> None:
    """131 of XLA's hlo_opcode.h of November 2025, and scan and mulhi of 2026."""
    assert len(OPCODES) == 133


@pytest.mark.parametrize("opcode", OPCODES)
def test_every_attribute_has_a_kind(opcode: str) -> None:
    row = OPCODES[opcode]
    assert row.anchor
    for attribute in (*row.attributes, *COMMON_ATTRIBUTES):
        assert attribute_kind(opcode, attribute) is not None
    assert len(set(row.attributes)) == len(row.attributes)


def test_no_kind_without_a_user() -> None:
    used = {attribute for row in OPCODES.values() for attribute in row.attributes}
    assert used == set(ATTRIBUTE_KINDS)
