"""The live line of a run on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
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
from hlotool.runs.fleet.planning import Remaining
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
