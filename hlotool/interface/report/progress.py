"""How far a run is, on stderr: a live line on a terminal, else plain lines.

These are one for each module if asked for, else one now and then, and what is wrong.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import IO, TYPE_CHECKING, Self

from hlotool.interface.report.console import printable
from hlotool.interface.report.words import is_wrong, plural, row_verdict, seconds
from hlotool.runs.fleet.batch import Silent
from hlotool.runs.fleet.known import Remaining
from hlotool.runs.records import ModuleRecord
from hlotool.runs.task import Task

if TYPE_CHECKING:
    from hlotool.interface.report.live import ProgressBar


class Silence(Silent):
    """Shows nothing; base of what does."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass


class ProgressLines(Silence):
    """One line per finished module."""

    def __init__(self, stream: IO[str], total: int, done: int = 0) -> None:
        self._stream = stream
        self._total = total + done
        self._count = done

    def finished(self, task: Task, rows: Sequence[ModuleRecord]) -> None:
        """Print its verdicts."""
        self._count += 1
        verdicts = ", ".join(row_verdict(row)[0] for row in rows)
        took = seconds(sum(row.seconds for row in rows))
        print(
            printable(f"{self._count}/{self._total}  {verdicts}  {task.module.title}  {took}"),
            file=self._stream,
            flush=True,
        )


class Heartbeat(Silence):
    """A line now and then, so that a long run does not look dead in a log, and what is wrong.

    Args:
        stream: gets the lines.
        tasks: of the run.
        clock: seconds, from any origin.
        done: how many others were done before.
    """

    #: Seconds between two lines.
    PAUSE = 30.0

    def __init__(
        self,
        stream: IO[str],
        tasks: Sequence[Task],
        clock: Callable[[], float] = time.monotonic,
        done: int = 0,
    ) -> None:
        self._stream = stream
        self._total = len(tasks) + done
        self._count = done
        self._wrong: list[str] = []
        self._running: set[str] = set()
        self._clock = clock
        self._last = clock()
        self._remaining = Remaining(tasks, clock)

    def doing(self, task: Task, text: str) -> None:
        """Something goes on: a reason to say so, if the last line is old."""
        self._beat()

    def started(self, task: Task) -> None:
        """A task has begun: the same."""
        self._running.add(task.path)
        self._beat()

    def finished(self, task: Task, rows: Sequence[ModuleRecord]) -> None:
        """Count it; what is wrong is named at once, of the same programs the one that was run."""
        self._count += 1
        was_run = task.path in self._running
        self._running.discard(task.path)
        self._remaining.finished(task)
        if is_wrong(rows):
            self._wrong.append(task.module.title)
            if was_run and self._count < self._total:  # the report of the last one comes now
                wrong = max(rows, key=lambda row: row.verdict.rank)
                self._say(f"{row_verdict(wrong)[0]}  {task.module.title}  {wrong.reason}".rstrip())
        self._beat()

    def _beat(self) -> None:
        now = self._clock()
        if now - self._last < self.PAUSE:
            return
        self._last = now
        left = self._remaining.seconds
        parts = [f"{self._count} of {self._total} modules", f"{len(self._wrong)} wrong"]
        if self._wrong:
            parts[1] += f" (the last: {self._wrong[-1]})"
        parts += [f"about {seconds(left)} left"] if left is not None else []
        self._say(", ".join(parts))

    def _say(self, text: str) -> None:
        print(printable(f"hlotool: {text}"), file=self._stream, flush=True)


class Beside:
    """`hlotool: 12 programs judged, 1 wrong`, now and then, while the program itself has the terminal.

    Args:
        stream: gets the lines, which stay: a line that is drawn anew would spoil what the program writes.
        clock: seconds, from any origin.
    """

    #: Seconds between two lines on a terminal.
    PAUSE = 10.0

    def __init__(self, stream: IO[str], clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._pause = self.PAUSE if stream.isatty() else Heartbeat.PAUSE
        self._clock = clock
        self._last = clock()

    def __call__(self, judged: int, wrong: int) -> None:
        """So many are judged by now."""
        now = self._clock()
        if now - self._last >= self._pause:
            self._last = now
            text = f"hlotool: {plural(judged, 'program')} judged, {wrong} wrong"
            print(text, file=self._stream, flush=True)


def progress_for(
    stream: IO[str], tasks: Sequence[Task], quiet: bool, verbose: bool, done: int = 0
) -> Silence | ProgressBar:
    """What suits `stream` and the user's wish; `done` others of the same whole are behind."""
    if quiet:
        return Silence()
    if stream.isatty():
        from hlotool.interface.report.live import ProgressBar

        return ProgressBar(stream, tasks, done)
    if verbose:
        return ProgressLines(stream, len(tasks), done)
    return Heartbeat(stream, tasks, done=done)
