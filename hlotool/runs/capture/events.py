"""What was noted of executions within the program (`executions.py`), and what the replay says of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import msgspec

from hlotool.judge.verdicts import Answer
from hlotool.runs.capture.records import EventRecord, RepeatedRecord
from hlotool.runs.records import REALITY, ModuleRecord, RepeatRecord, execution_of

#: A module: the folder of its process, and its number there.
Key: TypeAlias = tuple[Path, int]


class Noted(msgspec.Struct, frozen=True):
    """A line: a module that was executed, or an event of one, or an execution that was repeated."""

    module: int
    event: EventRecord | None = None
    repeat: RepeatedRecord | None = None


class Log:
    """What the processes that dump below a folder note, read as it grows."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[Path, int] = {}
        self._noted: list[tuple[Key, Noted]] = []

    def noted(self) -> Sequence[tuple[Key, Noted]]:
        """All so far, in the order in which it was read; a line that is being written is not."""
        for path in sorted(self._folder.glob("process_*.executions")):
            with path.open("rb") as file:
                file.seek(self._read.get(path, 0))
                whole, end, _ = file.read().rpartition(b"\n")
            self._read[path] = self._read.get(path, 0) + len(whole + end)
            for line in whole.splitlines():
                one = msgspec.json.decode(line, type=Noted)
                self._noted.append(((path.with_suffix(""), one.module), one))
        return self._noted

    def events(self) -> list[tuple[Key, EventRecord]]:
        """What of it are events."""
        return [(key, one.event) for key, one in self.noted() if one.event is not None]


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


def judged_together(rows: Sequence[ModuleRecord], repeat: RepeatedRecord) -> list[ModuleRecord]:
    """The rows of a module, with one row for all results of the execution that was repeated."""
    own, *others = repeat.files
    real = {name: row for row in rows if (name := _file(row)) in repeat.files and row.stage_tested == REALITY}
    counts = {name: repeat.files[name] for name in real}
    wrong = {name: row for name, row in real.items() if row.verdict.answer is Answer.BAD}
    record = RepeatRecord(
        runs=repeat.runs,
        results=repeat.results,
        usual=repeat.usual,
        judged=sum(counts[n] for n, row in real.items() if row.verdict.answer is not Answer.UNUSABLE),
        wrong=sum(counts[name] for name in wrong),
        outputs=repeat.outputs,
    )
    kept = []
    for row in rows:
        if _file(row) in others:
            continue
        if row is real.get(own):
            worst = max(wrong.values(), key=lambda one: one.verdict.rank, default=row)
            row = msgspec.structs.replace(worst, inputs=row.inputs, repeated=record)
            if wrong and record.results > 1:
                reason = f"in {record.wrong} of {record.judged} runs: {row.reason}"
                row = msgspec.structs.replace(row, reason=reason)
        kept.append(row)
    return kept


def _file(row: ModuleRecord) -> str:
    """The file that its arguments were captured in; empty where there is none."""
    return row.inputs.description.partition("captured in ")[2] if row.inputs is not None else ""
