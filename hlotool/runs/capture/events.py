"""Events in the results of a running program, and what the replay of their executions says of them."""

from __future__ import annotations

from collections.abc import Sequence

from hlotool.judge.verdicts import AGREEING, DIFFERING, Verdict
from hlotool.runs.capture.keeping import Event
from hlotool.runs.records import REALITY, ModuleRecord
from hlotool.runs.trials import execution_of
from hlotool.system.records import Record


class EventRecord(Record, frozen=True, kw_only=True):
    """A condition of `--keep-when` that began to hold.

    Attributes:
        module: name of the module, as its rows have it.
        execution: of the module, from 1.
        condition: as it was given.
        output: of which it holds (`out[1]`), the first of several; empty where it is about none.
        others: how many more outputs it began to hold of.
        detail: what is there, in words.
        is_kept: there was room for the execution, and it was replayed.
        verdict: of what the device returned for it; None where that was not judged.
    """

    module: str
    execution: int
    condition: str
    output: str = ""
    others: int = 0
    detail: str = ""
    is_kept: bool = True
    verdict: Verdict | None = None

    def __str__(self) -> str:
        what = f": {self.output} ({self.detail})" if self.output else ""
        what += f" and {self.others} more" if self.others else ""
        return f"{self.condition} in {self.module}, execution {self.execution}{what}"

    @property
    def meaning(self) -> str:
        """Whose doing it is, in words."""
        if not self.is_kept:
            return "not kept: --keep-bytes was full"
        if self.verdict is None:
            return "not judged: no result of it was compared"
        if self.verdict in AGREEING:
            return f"{self.verdict.value}: the device computed what the program says; it is the program's own"
        if self.verdict in DIFFERING:
            return f"{self.verdict.value}: the device did not compute what the program says: a fault"
        return f"{self.verdict.value}: whose doing it is is left open"


def event_record(event: Event, name: str, rows: Sequence[ModuleRecord] = ()) -> EventRecord:
    """An event of the module `name`, with the verdict that is in its `rows`."""
    judged = [
        row.verdict
        for row in rows
        if row.stage_tested == REALITY and execution_of(row.inputs) == event.execution
    ]
    return EventRecord(
        module=name,
        execution=event.execution,
        condition=str(event.condition),
        output=event.output,
        others=event.others,
        detail=event.detail,
        is_kept=event.is_kept,
        verdict=judged[0] if judged else None,
    )


def events_first(rows: Sequence[ModuleRecord], events: Sequence[EventRecord]) -> list[ModuleRecord]:
    """The rows in their order, those of executions with events before the others."""
    found = {(event.module, event.execution) for event in events}
    return sorted(rows, key=lambda row: (row.name, execution_of(row.inputs)) not in found)
