"""A course that counts what a replay runs, and can be Ctrl-C."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

from hlotool.interface.api.calls import Course
from hlotool.runs.fleet.batch import Listener, Silent
from hlotool.runs.records import ModuleRecord
from hlotool.runs.task import Task


class Heard(Course, Silent):
    """Counts what is run, and what is answered.

    Args:
        interrupt_after: as if somebody typed Ctrl-C when so many are answered; 0 for never.
    """

    def __init__(self, interrupt_after: int = 0) -> None:
        self.started_count = self.finished_count = 0
        self._most = interrupt_after

    def replaying(self, tasks: Sequence[Task]) -> AbstractContextManager[Listener]:
        return nullcontext(self)

    def started(self, task: Task) -> None:
        self.started_count += 1

    def finished(self, task: Task, rows: Sequence[ModuleRecord]) -> None:
        self.finished_count += 1
        if self.finished_count == self._most:
            raise KeyboardInterrupt
