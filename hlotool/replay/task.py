"""One module to replay, and the row of a module that could not be."""

from __future__ import annotations

from dataclasses import dataclass

from hlotool.dump.records import DumpModule
from hlotool.errors import HlotoolError
from hlotool.replay.errors import error_record, verdict_of
from hlotool.replay.options import ReplayOptions
from hlotool.replay.records import ModuleRecord


@dataclass(frozen=True, slots=True)
class Task:
    """One module to replay.

    Attributes:
        module: where its files are.
        options: what to do with it.
    """

    module: DumpModule
    options: ReplayOptions

    @property
    def path(self) -> str:
        """The file that speaks for the module in messages."""
        for stage in reversed(self.module.stages):
            return str(stage.source)
        for capture in self.module.captures:
            return str(capture.source)
        return self.module.title


def failed_row(task: Task, error: HlotoolError, seconds: float, path: str = "") -> ModuleRecord:
    """The row of a task (or of its stage in `path`) that ended with `error`."""
    record = error_record(error)
    return ModuleRecord(
        path=path or task.path,
        name=task.module.title,
        verdict=verdict_of(error),
        reason=record.message,
        error=record,
        seconds=seconds,
    )
