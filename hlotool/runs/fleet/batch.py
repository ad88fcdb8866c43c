"""Many modules through an executor, each distinct one once, whatever happens to single ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

import msgspec
from msgspec import Struct, structs

from hlotool.errors import BackendFailed
from hlotool.runs.fleet.identity import Identity, identity_of, is_personal
from hlotool.runs.fleet.known import Known
from hlotool.runs.records import ModuleRecord
from hlotool.runs.task import Task, rows_so_far
from hlotool.system.executor import Done, Executor, Started
from hlotool.system.resources import collector_off

#: What a worker calls for each task.
_FUNCTION = "hlotool.runs.run:replay_module"

#: Bytes of texts of tasks that wait for a twin; the texts of more are read once more when it is over. In
#: memory a text takes three times as much, with what was found in it.
_HELD = 32 << 20

_decoder = msgspec.msgpack.Decoder(list[ModuleRecord])


class Listener(Protocol):
    """Receives the progress of a batch."""

    def started(self, task: Task) -> None:
        """`task` begins to run."""

    def doing(self, task: Task, text: str) -> None:
        """`task` is now at what `text` says."""

    def finished(self, task: Task, rows: Sequence[ModuleRecord]) -> None:
        """`task` is over, now or in an earlier run that was interrupted."""


class Silent:
    """Ignores all progress."""

    def started(self, task: Task) -> None:
        """See `Listener`."""

    def doing(self, task: Task, text: str) -> None:
        """See `Listener`."""

    def finished(self, task: Task, rows: Sequence[ModuleRecord]) -> None:
        """See `Listener`."""


class Batch(Struct):
    """The rows of a batch.

    Attributes:
        rows: per task in the order given; None for tasks that were not finished.
        programs: per task a key that tasks with the same programs share; empty where it has none.
        made: per task, seconds since the epoch when an earlier command found its rows; 0: it was this one.
        interrupted: the user stopped it.
        left: tasks that were not run because enough others failed.
    """

    rows: list[list[ModuleRecord] | None]
    programs: list[str]
    made: list[int]
    interrupted: bool = False
    left: int = 0

    @property
    def remembered(self) -> list[int]:
        """When each of the rows was found that are of earlier commands, in seconds since the epoch."""
        return [made for rows, made in zip(self.rows, self.made) if made for _ in rows or ()]

    @property
    def records(self) -> list[ModuleRecord]:
        """All rows in order, those of twins with the path of the first one."""
        first: dict[str, list[ModuleRecord]] = {}
        found: list[ModuleRecord] = []
        for rows, program in zip(self.rows, self.programs):
            if rows is None:
                continue
            twin = first.setdefault(program, rows) if program else rows
            if twin is rows or len(twin) != len(rows):
                found += rows
            else:
                found += [structs.replace(row, twin_of=like.path) for row, like in zip(rows, twin)]
        return found


def replay_all(
    tasks: Sequence[Task],
    executor: Executor,
    listener: Listener,
    known: Known | None = None,
    resume: bool = True,
    max_failures: int = 0,
    fails: Callable[[ModuleRecord], bool] = lambda row: False,
) -> Batch:
    """Replay all tasks, each distinct one once; Ctrl-C kills the workers and returns what is finished.

    Args:
        tasks: what to replay.
        executor: runs them.
        listener: receives the progress of each task.
        known: what need not be run, and what keeps the rows of each finished task. The journal stays: only
            when they are printed can nothing be lost any more.
        resume: take rows from the journal where nothing has changed.
        max_failures: end after so many tasks that fail; 0 for all tasks.
        fails: whether a row is a failure.
    """
    known = known or Known()
    if resume:
        known.recall()
    failures = _Failures(max_failures, fails)
    run = _Run(tasks, executor, listener, known, failures)
    try:
        run.all()
    except _Enough:
        run.batch.left = sum(rows is None for rows in run.batch.rows)
        executor.close()
    except KeyboardInterrupt:
        run.batch.interrupted = True
        executor.close()
    return run.batch


class _Enough(Exception):
    """So many tasks have failed that the others are of no interest."""


class _Failures(Struct):
    """Counts tasks that fail.

    Attributes:
        most: raise `_Enough` after so many; 0 for never.
        fails: whether a row is a failure.
        count: so far.
    """

    most: int
    fails: Callable[[ModuleRecord], bool]
    count: int = 0

    def look_at(self, rows: Sequence[ModuleRecord]) -> None:
        """Count a task."""
        if self.most and any(map(self.fails, rows)):
            self.count += 1
            if self.count >= self.most:
                raise _Enough


class _Run:
    """A batch on its way.

    Args:
        tasks: as for `replay_all`, like all others.
        executor: runs them.
        listener: receives the progress.
        known: rows.
        failures: that end it.

    Attributes:
        batch: what is finished.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        executor: Executor,
        listener: Listener,
        known: Known,
        failures: _Failures,
    ) -> None:
        self.batch = Batch([None] * len(tasks), [""] * len(tasks), [0] * len(tasks))
        self._tasks = tasks
        self._executor = executor
        self._listener = listener
        self._known = known
        self._failures = failures
        #: What the tasks that run are, by position; and who waits for each of their keys.
        self._running: dict[int, Identity] = {}
        self._waiting: dict[str, list[tuple[int, Identity | None]]] = {}
        self._held = 0
        self._left: list[int] = []

    def all(self) -> None:
        """Run until nothing is left: a twin whose rows cannot be told from the first one's is run itself."""
        positions: Iterable[int] = range(len(self._tasks))
        while positions:
            self._left = []
            self._some(positions)
            positions = self._left

    def _some(self, positions: Iterable[int]) -> None:
        handed_out: list[int] = []

        def open_tasks() -> Iterator[Task]:
            for position in positions:
                if self._must_run(position):
                    handed_out.append(position)
                    yield self._tasks[position]

        self._executor.listener = lambda index, text: self._listener.doing(
            self._tasks[handed_out[index]], text
        )
        for event in self._executor.run(_FUNCTION, open_tasks()):
            position = handed_out[event.index]
            if isinstance(event, Started):
                self._listener.started(self._tasks[position])
            else:
                self._done(position, rows_of(self._tasks[position], event), event.is_as_here)

    def _must_run(self, position: int) -> bool:
        """Whether a task is run now; otherwise it is known, or waits for a twin that runs."""
        identity = self._identity(position)
        # Equal bytes are the same program: it need not be looked for in them.
        if identity.exact in self._waiting:
            self._wait(identity.exact, position, identity)
            return False
        if self._is_known(position, identity):
            return False
        if identity.shared in self._waiting:
            self._wait(identity.shared, position, identity)
            return False
        self._running[position] = identity
        self._waiting.update({key: [] for key in _keys_of(identity)})
        return True

    def _identity(self, position: int) -> Identity:
        """What tells a task from others; nothing where there are none, before, beside or after it."""
        task = self._tasks[position]
        if not self._known.is_kept and (len(self._tasks) == 1 or is_personal(task)):
            return Identity("")
        return identity_of(task, self._known.contents)

    def _wait(self, key: str, position: int, identity: Identity) -> None:
        """Leave a task until one with the same key is over."""
        is_room = self._held + identity.size <= _HELD
        self._held += identity.size if is_room else 0
        self._waiting[key].append((position, identity if is_room else None))

    def _is_known(self, position: int, identity: Identity) -> bool:
        task = self._tasks[position]
        with collector_off():
            answer = self._known.answer(task, identity)
        if answer is None:
            return False
        self._finish(position, answer.rows, answer.program, answer.made)
        return True

    def _done(self, position: int, rows: list[ModuleRecord], is_as_here: bool) -> None:
        """A task was run; those that waited for it are answered, or left for later."""
        identity = self._running.pop(position)
        self._known.add(self._tasks[position], identity, rows, is_as_here)
        self._finish(position, rows, identity.shared or identity.exact)
        for key in _keys_of(identity):
            for waiting, held in self._waiting.pop(key, ()):
                self._held -= held.size if held is not None else 0
                other = held or self._identity(waiting)
                if not self._is_known(waiting, other):
                    self._left.append(waiting)

    def _finish(self, position: int, rows: list[ModuleRecord], program: str, made: int = 0) -> None:
        self.batch.rows[position] = rows
        self.batch.made[position] = made
        self.batch.programs[position] = program
        self._listener.finished(self._tasks[position], rows)
        self._failures.look_at(rows)


def _keys_of(identity: Identity) -> list[str]:
    """The keys that a twin has, too."""
    return [key for key in (identity.exact, identity.shared) if key]


def rows_of(task: Task, done: Done) -> list[ModuleRecord]:
    """What the worker found, with a row that says how it failed where it did."""
    if isinstance(done.value, BackendFailed):
        return rows_so_far(task, done.value, done.so_far, done.seconds)
    return _decoder.decode(done.value)
