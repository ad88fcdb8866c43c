"""How far something is, as a line on a terminal: of a run, of a search, of what is counted."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import IO, Self

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Column
from rich.text import Text

from hlotool.interface.report.console import console_for, printable
from hlotool.interface.report.words import in_halves, is_wrong, plural, row_verdict, seconds
from hlotool.runs.fleet.known import Remaining
from hlotool.runs.records import ModuleRecord
from hlotool.runs.task import Task

#: Columns of a bar, those of one on a narrow terminal, and how wide one must be for the former.
_BAR, _NARROW_BAR, _WIDE = 24, 8, 72


class LiveLine:
    """A line on a terminal that is drawn anew while time passes, and vanishes when all is over.

    Bar, counts and times keep their places and their widths; what is cut is the text behind them.

    Args:
        stream: the terminal.
        total: of what is counted; None for a line without bar.
        text: what goes on.
        done: how many of `total` were done before.
    """

    def __init__(self, stream: IO[str], total: int | None = None, text: str = "", done: int = 0) -> None:
        console = console_for(stream)
        width = _BAR if console.width >= _WIDE else _NARROW_BAR
        counts: list[ProgressColumn] = []
        if total is not None:
            counts = [BarColumn(width, table_column=_fixed()), MofNCompleteColumn(table_column=_fixed())]
        self._progress = Progress(
            SpinnerColumn(table_column=_fixed()),
            *counts,
            TimeElapsedColumn(table_column=_fixed()),
            TextColumn("{task.fields[left]}", style="dim", table_column=_fixed()),
            TextColumn("{task.description}", style="dim", markup=False, table_column=_fixed(ratio=1)),
            console=console,
            transient=True,
            expand=True,
        )
        self._task = self._progress.add_task(printable(text), total=total, completed=done, left="")

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def show(self, text: str, left: str = "", more: int = 0) -> None:
        """What goes on, how long yet, and how many more are done."""
        self._progress.update(self._task, description=printable(text), left=left, advance=more)

    def above(self, text: Text) -> None:
        """Print a line that stays."""
        self._progress.console.print(text, soft_wrap=True)


def _fixed(ratio: int | None = None) -> Column:
    return Column(no_wrap=True, overflow="ellipsis", ratio=ratio)


class ProgressBar(LiveLine):
    """What runs, how many of all are done, how long yet; and above it what is wrong."""

    def __init__(self, stream: IO[str], tasks: Sequence[Task], done: int = 0) -> None:
        super().__init__(stream, len(tasks) + done, done=done)
        self._remaining = Remaining(tasks)
        self._running: list[str] = []
        self._doing: dict[str, str] = {}

    def started(self, task: Task) -> None:
        """Show its name."""
        self._running.append(task.module.title)
        self._draw()

    def doing(self, task: Task, text: str) -> None:
        """Show it beside the name."""
        self._doing[task.module.title] = text
        self._draw()

    def finished(self, task: Task, rows: Sequence[ModuleRecord]) -> None:
        """Count it."""
        if task.module.title in self._running:
            self._running.remove(task.module.title)
        self._doing.pop(task.module.title, None)
        self._remaining.finished(task)
        if is_wrong(rows):
            wrong = max(rows, key=lambda row: row.verdict.rank)
            name = Text(printable(f"  {task.module.title}  {wrong.reason}"))
            self.above(Text.assemble(row_verdict(wrong), name))
        self._draw(1)

    def _draw(self, more: int = 0) -> None:
        name = self._running[0] if self._running else ""
        others = f" +{len(self._running) - 1}" if len(self._running) > 1 else ""
        doing = f": {self._doing[name]}" if name in self._doing else ""
        seconds_left = self._remaining.seconds
        left = "" if seconds_left is None else f"about {seconds(seconds_left)} left"
        self.show(f"{name}{others}{doing}", left, more)


class StepLine(LiveLine):
    """Where a search is: its part, what is left of that, the last step."""

    def __init__(self, stream: IO[str]) -> None:
        super().__init__(stream, text="reading the programs")
        self._phase = ""
        self._count, self._steps = 0, 0

    def phase(self, text: str, steps: int | None = None) -> None:
        """A new part of the search."""
        self._phase, self._count, self._steps = text, 0, steps or 0
        self.show(text, self._counted)

    def left(self, points: int) -> None:
        """So many points are open."""
        self.show(self._phase, in_halves(points))

    def step(self, text: str, verdict: str, seconds_taken: float, again: bool) -> None:
        """A step is done."""
        self._count += 1
        self.show(f"{self._phase}: {text} {verdict}".rstrip(), self._counted)

    @property
    def _counted(self) -> str:
        if self._count < self._steps:
            return f"{self._count} of {self._steps}"
        return plural(self._count, "step") if self._count else ""


class CountBar(LiveLine):
    """How many of all are done, and which was the last; and above it what is wrong."""

    def __init__(self, stream: IO[str], total: int) -> None:
        super().__init__(stream, total)
        self._names: set[str] = set()

    def __call__(self, name: str, wrong: str) -> None:
        """`name` is over; `wrong` says what is wrong with it, empty where nothing is."""
        if wrong:
            self.above(Text(printable(wrong)))
        self.show(name, more=name not in self._names)
        self._names.add(name)
