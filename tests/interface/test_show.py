"""Every record that a command shows to people has its report."""

from __future__ import annotations

import typing
from types import SimpleNamespace

import pytest

from hlotool.interface.report.json_schema import SCHEMAS
from hlotool.interface.report.show import report_of


def record(name: str) -> SimpleNamespace:
    """What a report of the record of this schema file needs to be made."""
    [schema] = typing.get_args(typing.get_type_hints(SCHEMAS[name])["schema"])
    return SimpleNamespace(schema=schema, bundles=[], rules=[], matches=[], backends=[])


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_it_has_a_report(name: str) -> None:
    assert hasattr(report_of(record(name), quiet=False, verbose=False), "__rich_console__")


def test_others_have_none() -> None:
    with pytest.raises(ValueError, match="no report shows hlotool"):
        report_of(SimpleNamespace(schema="hlotool.unknown/1"), quiet=False, verbose=False)
