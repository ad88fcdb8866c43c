"""What the replay says of the executions that were kept for an event."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from hlotool.runs.capture.records import EventRecord
from hlotool.runs.records import REALITY, ModuleRecord, execution_of


def judged(event: EventRecord, name: str, rows: Sequence[ModuleRecord] = ()) -> EventRecord:
    """An event of the module `name`, with the verdict that is in its `rows`."""
    verdicts = (
        row.verdict
        for row in rows
        if row.stage_tested == REALITY and execution_of(row.inputs) == event.execution
    )
    return msgspec.structs.replace(event, module=name, verdict=next(verdicts, None))


def events_first(rows: Sequence[ModuleRecord], events: Sequence[EventRecord]) -> list[ModuleRecord]:
    """The rows in their order, those of executions with events before the others."""
    found = {(event.module, event.execution) for event in events}
    return sorted(rows, key=lambda row: (row.name, execution_of(row.inputs)) not in found)
