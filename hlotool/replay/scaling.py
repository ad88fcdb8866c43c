"""Before a replay: do its programs fit, and if they do not, the same programs with smaller sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from hlotool.dump.loading import load_stage
from hlotool.dump.records import DumpModule, Stage
from hlotool.errors import HlotoolError
from hlotool.ir.module import Module
from hlotool.replay.options import ReplayOptions, RunOptions
from hlotool.replay.records import ModuleRecord
from hlotool.replay.task import Task
from hlotool.scale.plan import Limits, Scaled, scaled
from hlotool.scale.wish import AUTO, NEVER
from hlotool.workers.memory import memory_left

#: Seconds for a comparison where nobody says: those of `hlotool run`.
_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Fitted:
    """A task whose programs fit, as far as they can be made to.

    Attributes:
        task: to be done.
        scaled: its programs with smaller sizes; None where they are as they are.
        note: why they are, though they do not fit; empty where they fit.
    """

    task: Task
    scaled: Scaled | None = None
    note: str = ""

    def noted(self, row: ModuleRecord) -> ModuleRecord:
        """A row of the task that says what became of the sizes."""
        if self.note:
            return msgspec.structs.replace(row, notes=[*row.notes, self.note])
        if self.scaled is None:
            return row
        notes = list(row.notes)
        if self.task.module.captures or self.task.options.outputs:
            notes.append("what the hardware returned is of the full sizes: it is compared with nothing")
        return msgspec.structs.replace(row, scaled=self.scaled.record, notes=notes)


def fitting(task: Task, stages: Sequence[Stage]) -> Fitted:
    """The task with its programs read, and with smaller sizes where a comparison would not fit.

    What cannot be read is left to whoever needs it, and can say what that means for the module.

    Args:
        task: a module.
        stages: of it, that are compared; the reference first.

    Raises:
        Unsupported: no dimension has a size that the user wants another one of.
        UsageError: the user wants something that is no scale.
    """
    options, programs = task.options, dict[str, Module]()
    if options.scale == NEVER:
        return Fitted(task)
    for stage in stages:
        try:
            programs[str(stage.source)] = load_stage(task.module, stage)
        except HlotoolError:
            continue
    if not programs:
        return Fitted(task)
    try:
        found = scaled(programs, options.scale, limits_of(options))
    except HlotoolError as error:
        if options.scale != AUTO:
            raise
        return Fitted(_with(task, programs), note=f"not scaled: {error}")
    return Fitted(_with(task, programs if found is None else dict(found.programs)), found)


def _with(task: Task, programs: dict[str, Module]) -> Task:
    return replace(task, module=replace(task.module, programs=programs))


def limits_of(options: ReplayOptions) -> Limits:
    """What this process may take for a comparison."""
    seconds = options.timeout if isinstance(options, RunOptions) else _SECONDS
    return Limits(memory_left(), seconds)


def fitting_pair(
    left: DumpModule, right: DumpModule, reference: Stage, tested: Stage, scale: str, seconds: float
) -> tuple[tuple[DumpModule, DumpModule], Scaled | None]:
    """Two modules, of which one stage each is compared, with smaller sizes where that would not fit.

    Args:
        left: the first module.
        right: the second one.
        reference: of the first.
        tested: of the second.
        scale: what the user wants.
        seconds: that the comparison may take.

    Raises:
        HlotoolError: one of them cannot be read.
        Unsupported: no dimension has a size that the user wants another one of, or no smaller sizes fit.
    """
    if scale == NEVER:
        return (left, right), None
    owners = ((left, reference), (right, tested))
    programs = {str(stage.source): load_stage(owner, stage) for owner, stage in owners}
    found = scaled(programs, scale, Limits(memory_left(), seconds))
    made = programs if found is None else dict(found.programs)
    return (replace(left, programs=made), replace(right, programs=made)), found
