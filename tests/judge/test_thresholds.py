"""Every threshold says why it is what it is, is calibrated, and decides something."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hlotool.facts import thresholds
from hlotool.facts.thresholds import Threshold

ROOT = Path(__file__).resolve().parents[2]
TABLE = {name: value for name, value in vars(thresholds).items() if isinstance(value, Threshold)}
SOURCES = "".join(
    path.read_text(encoding="utf-8")
    for room in ("hlotool", "backends")
    for path in (ROOT / room).rglob("*.py")
)


@pytest.mark.parametrize("name", TABLE)
def test_a_threshold_has_a_reason_and_decides_something(name: str) -> None:
    threshold = TABLE[name]
    assert threshold.value > 0
    assert threshold.decides
    assert threshold.why
    assert f"thresholds.{name}" in SOURCES


def section(place: str) -> str:
    """A section of a file of results, up to the next heading."""
    file, _, heading = place.partition(": ")
    results = (ROOT / "benchmarks/results" / file).read_text(encoding="utf-8")
    found = re.search(rf"^#+ {re.escape(heading)}\b.*?(?=^#+ |\Z)", results, re.DOTALL | re.MULTILINE)
    assert found is not None, place
    return found[0]


@pytest.mark.parametrize("name", TABLE)
def test_a_threshold_is_calibrated_by_a_table(name: str) -> None:
    assert "|---|" in section(TABLE[name].table)


def test_the_measured_values_are_those_in_use() -> None:
    """Printed by `verdicts.thresholds`, `blame.locate --thresholds`, `blame.layers`, `exact thresholds` and
    `verdicts.exact --thresholds` in benchmarks.
    """
    headings = [thresholds.SENSITIVITY, thresholds.LOCATOR, thresholds.EXACT, thresholds.EXACT_FAULTS]
    headings += [thresholds.ARBITER, thresholds.LAYERS]
    tables = "".join(map(section, headings))
    rows = re.findall(r"^\| ([A-Z][A-Z0-9_]+) \| (\S+) \|", tables, re.MULTILINE)
    assert dict(rows) == {name: f"{threshold.value:g}" for name, threshold in TABLE.items()}
