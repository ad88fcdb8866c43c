"""How far a command is, on stderr.

Of a run a live line on a terminal, plain lines if asked for, else nothing; of a search a line for each step.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import IO, TYPE_CHECKING, Self

from hlotool.fleet.batch import Silent
from hlotool.replay.records import ModuleRecord
from hlotool.replay.task import Task
from hlotool.report.console import printable
from hlotool.report.words import row_verdict, seconds

if TYPE_CHECKING:
    from hlotool.report.progress_bar import ProgressBar


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


def progress_for(stream: IO[str], total: int, quiet: bool, verbose: bool) -> Silence | ProgressBar:
    """What suits `stream` and the user's wish."""
    if stream.isatty() and not quiet:
        from hlotool.report.progress_bar import ProgressBar

        return ProgressBar(stream, total)
    return ProgressLines(stream, total) if verbose else Silence()


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
