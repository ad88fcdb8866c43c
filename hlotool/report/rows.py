"""Outcomes as lines for spreadsheets and scripts: CSV, and JSON Lines."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from hlotool.report.console import printable
from hlotool.report.outcomes import Outcome
from hlotool.workers.plain import json_of

#: A cell that begins like this is a formula to a spreadsheet (CWE-1236).
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%")

#: Columns of the CSV, in order; `docs/reports.md` says what they hold.
COLUMNS: dict[str, Callable[[Outcome], str | int | float]] = {
    "command": lambda outcome: outcome.command,
    "name": lambda outcome: outcome.name,
    "state": lambda outcome: outcome.state.value,
    "kind": lambda outcome: outcome.rule,
    "severity": lambda outcome: "" if outcome.is_passed else outcome.severity.value,
    "tested": lambda outcome: outcome.tested,
    "difference": lambda outcome: outcome.difference,
    "message": lambda outcome: outcome.message,
    "cause": lambda outcome: outcome.cause,
    "opcode": lambda outcome: outcome.source.opcode if outcome.source else "",
    "source_file": lambda outcome: outcome.source.file if outcome.source else "",
    "source_line": lambda outcome: outcome.source.file_line or "" if outcome.source else "",
    "op_name": lambda outcome: outcome.source.op_name if outcome.source else "",
    "file": lambda outcome: outcome.file,
    "line": lambda outcome: outcome.line or "",
    "seconds": lambda outcome: round(outcome.seconds, 3),
}


def csv_text(outcomes: Sequence[Outcome]) -> str:
    """A line with the names of the columns, and a line for each outcome; no cell is a formula."""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream)
    writer.writerow(COLUMNS)
    for outcome in outcomes:
        writer.writerow(_harmless(value(outcome)) for value in COLUMNS.values())
    return stream.getvalue()


def _harmless(value: str | float) -> str | int | float:
    """Text that nothing obeys: with an apostrophe for a spreadsheet, and with escapes for a terminal."""
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if value.startswith(_FORMULA) else text


def json_lines(record: Any) -> Iterator[bytes]:
    """The entries of a record, one line of JSON each, as they stand in what `--json` prints."""
    for row in _entries(record):
        yield json_of(row) + b"\n"


#: What a command lists, by the name in the schema of its record.
_LISTS = {
    "run": ("modules",),
    "bisect": ("culprits", "modules"),
    "check": ("findings", "failures"),
    "prove": ("pairs",),
    "diff": ("programs", "results"),
    "conformance": ("cells",),
}


def _entries(record: Any) -> Iterator[Any]:
    """All that a command lists."""
    name = record.schema.partition("/")[0].removeprefix("hlotool.")
    if name == "exec":
        yield from _entries(record.run)
        return
    for part in _LISTS[name]:
        yield from getattr(record, part)
