"""How far a command is, on stderr: lines, or a live bar on a terminal.

Of a run a live line on a terminal, plain lines if asked for, else a line now and then and what is wrong; of a
search a line for each step.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import IO, Self

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from hlotool.interface.report.console import console_for, printable
from hlotool.interface.report.words import is_wrong, row_verdict, seconds
from hlotool.runs.fleet.batch import Silent
from hlotool.runs.fleet.known import Remaining
from hlotool.runs.records import ModuleRecord
from hlotool.runs.task import Task

#: Columns of a module's name.
_NAME = 40


class ProgressBar:
    """A live line on a terminal, and above it what is wrong; the line vanishes when the run is over."""

    def __init__(self, stream: IO[str], tasks: Sequence[Task]) -> None:
        self._remaining = Remaining(tasks)
        self._running: list[str] = []
        self._doing: dict[str, str] = {}
        self._progress = Progress(
            SpinnerColumn(),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[current]}", style="dim"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}", style="dim"),
            console=console_for(stream),
            transient=True,
        )
        self._task = self._progress.add_task("", total=len(tasks), current="", left="")

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def started(self, task: Task) -> None:
        """Show its name."""
        self._running.append(task.module.title)
        self._show()

    def doing(self, task: Task, text: str) -> None:
        """Show it beside the name."""
        self._doing[task.module.title] = text
        self._show()

    def finished(self, task: Task, rows: Sequence[ModuleRecord]) -> None:
        """Count it."""
        if task.module.title in self._running:
            self._running.remove(task.module.title)
        self._doing.pop(task.module.title, None)
        self._remaining.finished(task)
        if is_wrong(rows):
            wrong = max(rows, key=lambda row: row.verdict.rank)
            name = Text(printable(f"  {task.module.title}  {wrong.reason}"))
            self._progress.console.print(Text.assemble(row_verdict(wrong), name), soft_wrap=True)
        self._progress.advance(self._task)
        self._show()

    def _show(self) -> None:
        name = self._running[0] if self._running else ""
        shown = name if len(name) <= _NAME else f"{name[: _NAME - 1]}…"
        more = f" +{len(self._running) - 1}" if len(self._running) > 1 else ""
        doing = f": {self._doing[name]}" if name in self._doing else ""
        seconds_left = self._remaining.seconds
        left = "" if seconds_left is None else f"about {seconds(seconds_left)} left"
        self._progress.update(self._task, current=shown + doing + more, left=left)


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

    def __init__(self, stream: IO[str], total: int) -> None:
        self._stream = stream
        self._total = total
        self._count = 0

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
    """

    #: Seconds between two lines.
    PAUSE = 30.0

    def __init__(
        self, stream: IO[str], tasks: Sequence[Task], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._stream = stream
        self._total = len(tasks)
        self._count = 0
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


def progress_for(stream: IO[str], tasks: Sequence[Task], quiet: bool, verbose: bool) -> Silence | ProgressBar:
    """What suits `stream` and the user's wish."""
    if quiet:
        return Silence()
    if stream.isatty():
        return ProgressBar(stream, tasks)
    return ProgressLines(stream, len(tasks)) if verbose else Heartbeat(stream, tasks)


class StepLines:
    """`step 4/~7  0008 simplification.after_algsimp  wrong  2.1 s`.

    Args:
        stream: gets the lines.
    """

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._count = 0
        self._estimate: int | None = None

    def phase(self, text: str, steps: int | None = None) -> None:
        """A new part of the search; its steps are counted from 1."""
        self._count, self._estimate = 0, steps
        self._print(text)

    def step(self, text: str, verdict: str, seconds_taken: float, again: bool) -> None:
        """A step is done."""
        self._count += 1
        total = f"/~{max(self._estimate, self._count)}" if self._estimate else ""
        took = "known" if again else seconds(seconds_taken)
        parts = [f"  step {self._count}{total}", text, verdict, took]
        self._print("  ".join(part for part in parts if part))

    def _print(self, line: str) -> None:
        print(line, file=self._stream, flush=True)


class CountLines:
    """`37/133 opcodes  power: 2 failed or crashed`, for what is wrong, and a line now and then.

    Args:
        stream: gets the lines.
        total: how many things there are.
        noun: what they are, in the plural.
        every: a line for each of them.
        clock: seconds, from any origin.
    """

    def __init__(
        self,
        stream: IO[str],
        total: int,
        noun: str,
        every: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream = stream
        self._total = total
        self._noun = noun
        self._every = every
        self._clock = clock
        self._last = clock()
        self._names: set[str] = set()

    def __call__(self, name: str, wrong: str) -> None:
        """`name` is over; `wrong` says what is wrong with it, empty where nothing is."""
        self._names.add(name)
        if not (wrong or self._every or self._clock() - self._last >= Heartbeat.PAUSE):
            return
        self._last = self._clock()
        line = f"{len(self._names)}/{self._total} {self._noun}  {wrong or name}"
        print(printable(line), file=self._stream, flush=True)
