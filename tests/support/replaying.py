"""Modules replayed in the process of the test: for verdicts, where workers are not in question."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hlotool.runs.options.kept import ReplayOptions
from hlotool.runs.records import ModuleRecord
from hlotool.runs.run import replay_module
from hlotool.runs.task import find_tasks
from support.programs import write_module


def replayed(path: Path, **options: Any) -> list[ModuleRecord]:
    """The rows of the one module under a path."""
    [task] = find_tasks([str(path)], ReplayOptions(**options), [])
    return replay_module(task)


def replayed_pair(folder: Path, before: str | None, after: str | None, **options: Any) -> ModuleRecord:
    """The one row of a module with these two stages, which are written to the folder."""
    folder.mkdir(exist_ok=True)
    write_module(folder, 0, before, after)
    [row] = replayed(folder, **options)
    return row
