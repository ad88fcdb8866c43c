"""Many modules through an executor, with a journal, whatever happens to single ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec

from hlotool.cache.journal import Journal
from hlotool.errors import BackendFailed
from hlotool.findings.verdict import OF_THE_MACHINE
from hlotool.replay.keys import task_key
from hlotool.replay.records import ModuleRecord
from hlotool.replay.task import Task, failed_row
from hlotool.workers.executor import Done, Executor, Started

#: What a worker calls for each task.
_FUNCTION = "hlotool.replay.run:replay_module"

_decoder = msgspec.msgpack.Decoder(list[ModuleRecord])


class Listener(Protocol):
    """Is told how a batch goes on."""

    def started(self, task: Task) -> None:
        """`task` begins to run."""

    def doing(self, task: Task, text: str) -> None:
        """`task` is now at what `text` says."""

    def finished(self, task: Task, rows: Sequence[ModuleRecord]) -> None:
        """`task` is over, now or in an earlier run that was interrupted."""


class Silent:
    """Tells nobody."""

    def started(self, task: Task) -> None:
        """See `Listener`."""

    def doing(self, task: Task, text: str) -> None:
        """See `Listener`."""

    def finished(self, task: Task, rows: Sequence[ModuleRecord]) -> None:
        """See `Listener`."""


@dataclass(slots=True)
class Batch:
    """The rows of a batch.

    Attributes:
        rows: per task in the order given; None for tasks that were not finished.
        interrupted: the user stopped it.
    """

    rows: list[list[ModuleRecord] | None]
    interrupted: bool = False
    _keys: dict[int, str] = field(default_factory=dict)

    @property
    def records(self) -> list[ModuleRecord]:
        """All rows in order."""
        return [record for rows in self.rows if rows is not None for record in rows]


def replay_all(
    tasks: Sequence[Task],
    executor: Executor,
    listener: Listener,
    journal: Journal | None = None,
    resume: bool = True,
) -> Batch:
    """Replay all tasks; Ctrl-C kills the workers and returns what is finished.

    Args:
        tasks: what to replay.
        executor: runs them.
        listener: is told about each task.
        journal: gets the rows of each finished task. It is closed, and stays: only when they are printed can
            nothing be lost any more.
        resume: take rows from the journal where nothing has changed.
    """
    batch = Batch([None] * len(tasks))
    known = journal.read() if journal and resume else {}
    try:
        _run(batch, tasks, executor, listener, journal, known)
    except KeyboardInterrupt:
        batch.interrupted = True
        executor.close()
    if journal is not None:
        journal.close()
    return batch


def _run(
    batch: Batch,
    tasks: Sequence[Task],
    executor: Executor,
    listener: Listener,
    journal: Journal | None,
    known: dict[str, Any],
) -> None:
    positions: list[int] = []

    def open_tasks() -> Iterator[Task]:
        for position, task in enumerate(tasks):
            key = batch._keys[position] = task_key(task) if journal else ""
            if (rows := _recalled(known.get(key))) is not None:
                batch.rows[position] = rows
                listener.finished(task, rows)
            else:
                positions.append(position)
                yield task

    executor.listener = lambda index, text: listener.doing(tasks[positions[index]], text)
    for event in executor.run(_FUNCTION, open_tasks()):
        position = positions[event.index]
        task = tasks[position]
        if isinstance(event, Started):
            listener.started(task)
            continue
        rows = rows_of(task, event)
        batch.rows[position] = rows
        lasts = all(row.verdict not in OF_THE_MACHINE for row in rows)
        if lasts and journal is not None and batch._keys[position]:
            journal.add(batch._keys[position], msgspec.to_builtins(rows))
        listener.finished(task, rows)


def _recalled(value: Any) -> list[ModuleRecord] | None:
    """The rows that a journal has kept; None where it has none, or what no longer are rows."""
    try:
        return None if value is None else msgspec.convert(value, list[ModuleRecord])
    except msgspec.ValidationError:
        return None


def rows_of(task: Task, done: Done) -> list[ModuleRecord]:
    """What the worker found, or one row that says how it failed."""
    if isinstance(done.value, BackendFailed):
        return [failed_row(task, done.value, done.seconds)]
    return _decoder.decode(done.value)
