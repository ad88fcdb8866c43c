"""Every record that a command shows to people has its report."""

from __future__ import annotations

import typing
from types import SimpleNamespace

import pytest

from hlotool.report.json_schema import SCHEMAS
from hlotool.report.show import report_of


def record(schema: str) -> SimpleNamespace:
    """What a report of a record of this schema needs to be made."""
    return SimpleNamespace(schema=schema, bundles=[], rules=[], matches=[], backends=[])


@pytest.mark.parametrize("name", SCHEMAS)
def test_it_has_a_report(name: str) -> None:
    [schema] = typing.get_args(typing.get_type_hints(SCHEMAS[name])["schema"])
    assert hasattr(report_of(record(schema), quiet=False, verbose=False), "__rich_console__")


def test_another_has_none() -> None:
    with pytest.raises(ValueError, match="no report shows hlotool"):
        report_of(record("hlotool.other/1"), quiet=False, verbose=False)
