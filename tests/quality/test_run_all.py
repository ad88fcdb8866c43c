"""Whether `benchmarks.run_all` calls worse what is worse; the numbers are made up."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import run_all
from benchmarks.speed.first_verdict import Measured, Row, measured, write_constant, write_modules
from hlotool.parser.reader import parse_module

RUN = "run, one tiny program"


def test_a_table_is_read_as_it_was_written() -> None:
    found = {RUN: Measured(0.5, 6.25, 58.0), "--help": Measured(0.07, 0.9, 21.0)}
    assert run_all.read_table(run_all.table_of(found, 1.5)) == found
    others = "\n## Before\n\n| --help | 9.00 | 9.00 | 9.00 |\n"
    assert run_all.read_table(run_all.table_of(found, 1.5) + others) == found
    assert run_all.read_table(run_all.TABLE.read_text(encoding="utf-8")).keys() >= {RUN, "--help"}


@pytest.mark.parametrize(
    ("now", "is_worse"),
    [
        (Measured(9.9, 7.1, 58.0), False),
        (Measured(0.1, 7.3, 58.0), True),
        (Measured(0.1, 1.0, 69.0), False),
        (Measured(0.1, 1.0, 70.0), True),
    ],
)
def test_a_fifth_more_is_worse(now: Measured, is_worse: bool) -> None:
    before = {RUN: Measured(0.5, 6.0, 58.0)}
    assert run_all.compared({RUN: now}, before) == ([RUN] if is_worse else [])


def test_a_new_row_is_not_worse() -> None:
    assert run_all.compared({RUN: Measured(1.0, 9.0, 1.0)}, {}) == []


def test_programs_are_programs(tmp_path: Path) -> None:
    write_modules(tmp_path / "modules", 3)
    write_constant(tmp_path / "constant.hlo", 5)
    files = [*(tmp_path / "modules").iterdir(), tmp_path / "constant.hlo"]
    assert len(files) == 7
    for file in files:
        parse_module(file.read_text(encoding="utf-8"))


def test_a_command_is_measured() -> None:
    found = measured(Row("--version", ("--version",), 1.0), repeat=2)
    assert 0 < found.seconds < 60
    assert 0.05 < found.rulers < 50
    # No upper bound: Linux counts the memory of the process that started it, too, and this one may be large.
    assert found.megabytes > 5
