"""Records of many days: which day they are of, what counts, since when something is wrong; the page."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support import run_records as samples
from support.shell import Shell

from hlotool import trend
from hlotool.errors import UsageError
from hlotool.interface.report.records import RunRecord
from hlotool.runs.records import ModuleRecord
from hlotool.system.records import json_of

DAY = 86_400


def kept(path: Path, *rows: ModuleRecord, **fields: Any) -> str:
    record: RunRecord = msgspec.structs.replace(samples.run(rows), seconds=2.0, **fields)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(json_of(record))
    return str(path)


@pytest.fixture
def days(tmp_path: Path) -> list[str]:
    """Something old that was mended, something new, something that another run still has."""
    good, old, new = samples.agreeing("a"), samples.differing("old"), samples.crashed("new")
    return [
        kept(tmp_path / "2026-11-19" / "run.json", good, old),
        kept(tmp_path / "run-20261118.json", good, old),
        kept(tmp_path / "run-20261120.json", good, new),
        kept(tmp_path / "other-2026-11-18.json", samples.differing("elsewhere"), paths=["elsewhere"]),
    ]


def test_days_and_since_when(days: list[str]) -> None:
    record = trend(days).record
    assert [day.day for day in record.days] == ["2026-11-18", "2026-11-19", "2026-11-20"]
    first = record.days[0]
    assert first.states == {"passed": 1, "failed": 2, "error": 0, "skipped": 0}
    assert (first.seconds, first.kinds["wrong"]) == (4.0, 2)
    assert [(one.name, one.first, one.last, one.days, one.is_open) for one in record.findings] == [
        ("new", "2026-11-20", "2026-11-20", 1, True),
        ("old", "2026-11-18", "2026-11-19", 2, False),
        ("elsewhere", "2026-11-18", "2026-11-18", 1, True),
    ]
    assert record.notes == []


def test_the_last_of_a_day_counts(tmp_path: Path) -> None:
    names = [kept(tmp_path / f"{n}-2026-11-20.json", samples.differing("x")) for n in range(2)]
    record = trend(names).record
    assert record.days[0].records == [names[1]]
    assert record.notes == [
        f"{names[0]}: {names[1]} is of the same day and the same paths, and counts instead"
    ]


def test_a_path_without_a_date(tmp_path: Path) -> None:
    name = kept(tmp_path / "run-20269999-v1234567890.json", samples.agreeing("a"))
    os.utime(name, (DAY * 20_000,) * 2)
    assert trend(name).record.days[0].day == "2024-10-04"  # date -u -d @1728000000


@pytest.mark.parametrize(
    "content", [b"", b'{"schema": "hlotool.baseline/1"}', b'{"schema": "hlotool.cache/1"}']
)
def test_what_is_no_record_with_findings(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "2026-11-20.json"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"2026-11-20\.json"):
        trend(path)


def test_the_command(days: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shell = Shell("trend", "trend-1.json", capsys)
    assert len(shell.json(*days)["findings"]) == 3
    assert shell(*days, "--quiet", "--html", tmp_path / "page.html") == 0
    assert "3 days: 3 findings, 2 of them still there" in shell.out
    assert "old" not in shell.out
    text = (tmp_path / "page.html").read_text()
    assert text == trend(days).to_page()
    assert len(re.findall(r'<rect class="failed"', text)) == 2
    # Of two wrong ones and one that passed the former take two thirds of the height.
    assert (
        '<rect class="failed" x="0" y="40.0" width="18" height="80.0"><title>2026-11-18: 2 wrong</title>'
        in text
    )
    assert text.count('<rect class="time"') == 3
    assert "<script" not in text


def test_names_are_no_markup(tmp_path: Path) -> None:
    name = kept(tmp_path / "2026-11-20.json", samples.differing("<img src=x onerror=alert(1)>"))
    assert "<img" not in trend(name).to_page()
