"""The rows of a page as its script reads them: short, with what many rows share said once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import msgspec

from hlotool.report.bisect_records import BisectRecord
from hlotool.report.causes import is_open, without_place
from hlotool.report.diff_records import DiffRecord
from hlotool.report.exec_records import ExecRecord
from hlotool.report.html.details import (
    Section,
    culprit_details,
    divergence_details,
    leaf_details,
    outcome_details,
    row_details,
)
from hlotool.report.modules import same_programs
from hlotool.report.next_command import command_after_row, command_line
from hlotool.report.outcomes import Outcome, outcomes_of
from hlotool.report.prove_records import ProveRecord
from hlotool.report.records import RunRecord
from hlotool.workers.plain import encoded

#: What a browser could take for the end of the script that holds the data, or JavaScript for that of a line.
_ESCAPES = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def page_data(record: Any) -> str:
    """The data of a page as JSON that is safe inside of a `script` element."""
    return encoded(_data(record), msgspec.json.encode).decode("utf-8").translate(_ESCAPES)


def _data(record: Any) -> dict[str, Any]:
    outcomes = outcomes_of(record)
    shared = _Shared()
    causes = getattr(getattr(record, "run", record), "causes", [])
    numbers = {cause.id: number for number, cause in enumerate(reversed(causes))}
    details = _details(record, outcomes)
    twins = _twins(record)
    rows = [
        [
            outcome.name,
            shared.index(outcome.rule),
            shared.index(outcome.state.value),
            shared.index(outcome.folder),
            shared.index(outcome.tested),
            shared.index(outcome.difference or ("" if outcome.is_passed else without_place(outcome.message))),
            numbers.get(outcome.cause, -1),
            round(outcome.seconds, 3),
            shared.index(os.path.basename(outcome.file)),
            shared.index(sections),
            shared.index(commands),
            shared.index(twins.get(number, [])),
        ]
        for number, (outcome, (sections, commands)) in enumerate(zip(outcomes, details, strict=True))
    ]
    return {"rows": rows, "shared": shared.values}


def _twins(record: Any) -> dict[int, list[int]]:
    """Of each row whose programs occur under other names, too: these rows and itself, in their order."""
    replays = record.run if isinstance(record, ExecRecord) else record
    groups = same_programs(replays.modules) if isinstance(replays, RunRecord) else []
    return {number: same for same in groups if len(same) > 1 for number in same}


class _Shared:
    """Values that occur many times: rows hold their positions."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._positions: dict[bytes, int] = {}

    def index(self, value: Any) -> int:
        """The position of a value; equal ones share it."""
        key = encoded(value, msgspec.json.encode)
        if key not in self._positions:
            self._positions[key] = len(self.values)
            self.values.append(value)
        return self._positions[key]


def _details(record: Any, outcomes: list[Outcome]) -> Iterator[tuple[list[Section], list[str]]]:
    """Of each outcome the sections that it unfolds to, and the commands that show it again."""
    if isinstance(record, RunRecord):
        yield from _run_details(record)
        return
    if isinstance(record, ExecRecord):
        yield from _run_details(record.run)
        if record.bisect is not None:
            yield from _bisect_details(record.bisect, outcomes[len(record.run.modules) :])
        return
    if isinstance(record, BisectRecord):
        yield from _bisect_details(record, outcomes)
        return
    special: list[list[Section]] = []
    if isinstance(record, ProveRecord):
        special = [divergence_details(p.divergence) if p.divergence else [] for p in record.pairs]
    elif isinstance(record, DiffRecord):
        special = [[] for _ in record.programs]
        special += [leaf_details(result.comparison, result.name) for result in record.results]
    commands = {row: cause.next for cause in getattr(record, "causes", []) for row in cause.rows}
    for row, outcome in enumerate(outcomes):
        own = special[row] if row < len(special) else []
        yield [*outcome_details(outcome), *own], [commands[row]] if row in commands else []


def _run_details(record: RunRecord) -> Iterator[tuple[list[Section], list[str]]]:
    for row in record.modules:
        commands = [f"{command_line(record, row)} --verbose"]
        if is_open(row):
            commands.append(command_after_row(record, row))
        yield row_details(row), list(dict.fromkeys(filter(None, commands)))


def _bisect_details(
    record: BisectRecord, outcomes: list[Outcome]
) -> Iterator[tuple[list[Section], list[str]]]:
    next_commands = {row: cause.next for cause in record.causes for row in cause.rows}
    for row, outcome in enumerate(outcomes):
        if row < len(record.culprits):
            command = next_commands[row]
            yield culprit_details(record.culprits[row]), [command] if command else []
        else:
            yield outcome_details(outcome), []
