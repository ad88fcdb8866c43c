"""Many modules through a pool of workers, with a journal, whatever happens to single ones."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import msgspec

from hlotool._version import __version__
from hlotool.dump.source import Source
from hlotool.errors import BackendFailed, HlotoolError
from hlotool.replay.journal import Journal, digest
from hlotool.replay.options import RunOptions
from hlotool.replay.records import ModuleRecord
from hlotool.replay.stages import select_stages
from hlotool.replay.task import Task, failed_row
from hlotool.workers.pool import Done, Pool, Started

#: What a worker calls for each task.
_FUNCTION = "hlotool.replay.run:replay_module"

_decoder = msgspec.msgpack.Decoder(list[ModuleRecord])


class Listener(Protocol):
    """Is told how a batch goes on."""

    def started(self, task: Task) -> None:
        """`task` begins to run."""

    def finished(self, task: Task, rows: Sequence[ModuleRecord]) -> None:
        """`task` is over, now or in an earlier run that was interrupted."""


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
    tasks: Sequence[Task], pool: Pool, listener: Listener, journal: Journal | None = None, resume: bool = True
) -> Batch:
    """Replay all tasks; Ctrl-C kills the workers and returns what is finished.

    Args:
        tasks: what to replay.
        pool: where.
        listener: is told about each task.
        journal: gets the rows of each finished task; removed when all are finished.
        resume: take rows from the journal where nothing has changed.
    """
    batch = Batch([None] * len(tasks))
    known = journal.read() if journal and resume else {}
    try:
        _run(batch, tasks, pool, listener, journal, known)
    except KeyboardInterrupt:
        batch.interrupted = True
        pool.close()
    if journal is not None:
        journal.close() if batch.interrupted else journal.remove()
    return batch


def _run(
    batch: Batch,
    tasks: Sequence[Task],
    pool: Pool,
    listener: Listener,
    journal: Journal | None,
    known: dict[str, list[ModuleRecord]],
) -> None:
    positions: list[int] = []

    def open_tasks() -> Iterator[Task]:
        for position, task in enumerate(tasks):
            key = batch._keys[position] = task_key(task) if journal else ""
            if key in known:
                batch.rows[position] = known[key]
                listener.finished(task, known[key])
            else:
                positions.append(position)
                yield task

    for event in pool.run(_FUNCTION, open_tasks()):
        position = positions[event.index]
        task = tasks[position]
        if isinstance(event, Started):
            listener.started(task)
            continue
        rows = rows_of(task, event)
        batch.rows[position] = rows
        if journal is not None and batch._keys[position]:
            journal.add(batch._keys[position], rows)
        listener.finished(task, rows)


def rows_of(task: Task, done: Done) -> list[ModuleRecord]:
    """What the worker found, or one row that says how it failed."""
    if isinstance(done.value, BackendFailed):
        return [failed_row(task, done.value, done.seconds)]
    return _decoder.decode(done.value)


def command_key(paths: Sequence[str], options: RunOptions) -> str:
    """What names the journal of a command: the same paths and options find it again."""
    absolute = [os.path.abspath(path) if os.path.exists(path) else path for path in paths]
    return digest([__version__.encode(), msgspec.json.encode(options), msgspec.json.encode(absolute)])


def task_key(task: Task) -> str:
    """What the answer of a task depends on; empty when that cannot be read (the worker will say why)."""
    parts = [__version__.encode(), task.module.title.encode(), msgspec.json.encode(task.options)]
    with suppress(HlotoolError):
        parts += [source.read_bytes() for source in _sources(task)]
        parts += [_fingerprint(path) for path in (task.options.inputs, task.options.outputs) if path]
        return digest(parts)
    return ""


def _sources(task: Task) -> list[Source]:
    selection = select_stages(task.module, task.options.stages)
    stages = [*([selection.reference] if selection.reference else []), *selection.tested]
    found = [source for stage in stages for source in (stage.text, stage.proto) if source]
    found += [capture.source for capture in task.module.captures]
    return found + ([task.module.stablehlo] if task.module.stablehlo else [])


def _fingerprint(path: str) -> bytes:
    """Names, sizes and times of change of a file or of the files in a folder."""
    script = Path(path.rpartition(":")[0]) if ".py:" in path else Path(path)
    files = sorted(script.iterdir()) if script.is_dir() else [script] if script.exists() else []
    stats = [(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    return msgspec.json.encode(stats)
