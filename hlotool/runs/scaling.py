"""Before a replay: do its programs fit, and if they do not, the same programs with smaller sizes.

What would become of the sizes of programs, without running them: `--show-scale`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct, structs

from hlotool.errors import HlotoolError, Unsupported
from hlotool.ir.module import Module
from hlotool.rewrite.scale.limits import Limits, need_of
from hlotool.rewrite.scale.records import AUTO, NEVER, UNSEEN, PlanRecord, ScaleRecord, wish_of
from hlotool.runs.options.kept import ReplayOptions, RunOptions
from hlotool.runs.records import ModuleRecord
from hlotool.runs.task import Task
from hlotool.sources.loading import load_stage
from hlotool.sources.records import DumpModule, Stage
from hlotool.system.resources import left_within, memory_left, share_of_free

if TYPE_CHECKING:
    from hlotool.rewrite.scale.in_place import InPlace
    from hlotool.rewrite.scale.plan import Scaled

#: Seconds for a comparison by default: those of `hlotool run`.
_SECONDS = 300.0


class Fitted(Struct, frozen=True):
    """A task whose programs fit, as far as they can be made to.

    Attributes:
        task: to be done.
        scaled: its programs with smaller sizes; None where they are as they are.
        note: why they are, though they do not fit; empty where they fit.
        in_place: how they run as they are in less memory than that takes by itself; None otherwise.
    """

    task: Task
    scaled: Scaled | None = None
    note: str = ""
    in_place: InPlace | None = None

    def keep(self, value: Any) -> Any:
        """The same value, an array or tuples of them, where there is room for it; raises NoRoomOnDisk."""
        return value if self.in_place is None else self.in_place.keep(value)

    def noted(self, row: ModuleRecord) -> ModuleRecord:
        """A row of the task that says what became of the sizes."""
        notes = [*row.notes, self.note] if self.note else list(row.notes)
        if self.scaled is not None and (self.task.module.captures or self.task.options.outputs):
            notes.append("what the hardware returned is of the full sizes: it is compared with nothing")
        return msgspec.structs.replace(
            row,
            notes=notes,
            scaled=self._scaled_record(),
            in_place=None if self.in_place is None else self.in_place.record,
        )

    def _scaled_record(self) -> ScaleRecord | None:
        """What became of the sizes; the next time they may run as they are, where that was tried."""
        if self.scaled is None:
            return None
        settled = self.scaled.record.settled and not self.note
        return msgspec.structs.replace(self.scaled.record, settled=settled)


def fitting(task: Task, stages: Sequence[Stage], may_be_in_place: bool = False) -> Fitted:
    """The task with its programs read, and with smaller sizes where a comparison would not fit.

    What cannot be read is left to the code that needs it and can say what that means for the module.

    Args:
        task: a module.
        stages: of it, that are compared; the reference first.
        may_be_in_place: the caller holds values only as `Fitted.keep` returns them, so that programs need
            not fit as often as a comparison has them.

    Raises:
        Unsupported: no dimension has a size that the user wants another one of.
        UsageError: the user wants something that is no scale.
    """
    options, programs = task.options, dict[str, Module]()
    if options.scale == NEVER and not may_be_in_place:
        return Fitted(task)
    for stage in stages:
        try:
            programs[str(stage.source)] = load_stage(task.module, stage)
        except HlotoolError:
            continue
    if not programs:
        return Fitted(task)
    limits = limits_of(options)
    if may_be_in_place and (place := how_in_place(programs, options, limits)) is not None:
        # Further sets of inputs would lie in memory, one after the other.
        own = structs.replace(_with(task, dict(place.programs)), options=without_sets(options))
        return Fitted(own, in_place=place)
    if options.scale == NEVER:
        return Fitted(_with(task, programs))
    try:
        found = _scaled(programs, options.scale, limits)
    except HlotoolError as error:
        if options.scale != AUTO:
            raise
        why = error.reason if isinstance(error, Unsupported) else str(error)
        return Fitted(_with(task, programs), note=f"not scaled: {why}")
    return Fitted(_with(task, programs if found is None else dict(found.programs)), found)


def how_in_place(programs: Mapping[str, Module], options: ReplayOptions, limits: Limits) -> InPlace | None:
    """How programs run as they are in the memory there is; None where they fit anyhow, or nothing helps.

    Backends in processes of their own get copies of their arguments there, and several devices have one each.

    Args:
        programs: that are compared, the reference first.
        options: of the comparison.
        limits: of it, where the user names no other memory.
    """
    is_here = {name.partition(":")[0] for name in options.backends} == {"numpy"}
    is_for_one = all(m.replica_count * m.num_partitions == 1 for m in programs.values())
    if not is_here or not is_for_one:
        return None
    if options.scale != NEVER:
        wish = wish_of(options.scale)
        if wish.sizes:
            return None
        limits = limits.within(wish)
    if limits.has_memory_for(need_of(*programs.values(), room=limits.room)):
        return None
    from hlotool.rewrite.scale.in_place import in_place

    return in_place(programs, limits)


def _scaled(programs: Mapping[str, Module], text: str, limits: Limits) -> Scaled | None:
    """See `scaled`; what changes sizes is imported where there is need for it."""
    wish = wish_of(text)
    allowed = limits.within(wish)
    if not wish.sizes and allowed.hold(need_of(*programs.values(), room=allowed.room)):
        return None
    from hlotool.rewrite.scale.plan import scaled

    return scaled(programs, text, limits)


def without_sets(options: ReplayOptions) -> ReplayOptions:
    """The options with the plain set of inputs alone."""
    return msgspec.structs.replace(options, further_sets=False)


def _with(task: Task, programs: dict[str, Module]) -> Task:
    return structs.replace(task, module=replace(task.module, programs=programs))


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
    found = _scaled(programs, scale, Limits(memory_left(), seconds))
    made = programs if found is None else dict(found.programs)
    return (replace(left, programs=made), replace(right, programs=made)), found


def limits_here(options: RunOptions, modules: int) -> Limits:
    """What a worker may take for a comparison, where so many modules are compared."""
    if options.memory_limit:
        return Limits(left_within(options.memory_limit), options.timeout)
    share = share_of_free(max(1, min(options.workers, modules))) if options.memory_limit is None else 0
    return Limits(share or float("inf"), options.timeout)


def plan_of(
    name: str,
    stages: Sequence[tuple[DumpModule, Stage]],
    options: RunOptions,
    limits: Limits,
    may_be_in_place: bool,
) -> PlanRecord:
    """What would become of the sizes of programs; its note says why nothing can.

    Args:
        name: of what is compared.
        stages: that are compared, the reference first, with their modules.
        options: of the comparison.
        limits: of it.
        may_be_in_place: whether what compares them can have them run as they are with values on disk.

    Raises:
        UsageError: what the user wants is no scale.
    """
    path = str(stages[-1][1].source)
    try:
        programs = {str(stage.source): load_stage(owner, stage) for owner, stage in stages}
    except HlotoolError as error:
        return PlanRecord(path=path, name=name, note=str(error))
    return _plan(PlanRecord(path=path, name=name), programs, options, limits, may_be_in_place)


def _plan(
    plan: PlanRecord,
    programs: Mapping[str, Module],
    options: RunOptions,
    limits: Limits,
    may_be_in_place: bool,
) -> PlanRecord:
    need = need_of(*programs.values())
    plan = msgspec.structs.replace(plan, memory=need.memory, work=need.work, why=limits.lacks(need))
    if may_be_in_place and (place := how_in_place(programs, options, limits)) is not None:
        return msgspec.structs.replace(plan, in_place=place.planned)
    if options.scale == NEVER:
        return plan
    try:
        found = _scaled(programs, options.scale, limits)
    except Unsupported as error:
        return msgspec.structs.replace(plan, note=f"cannot be scaled: {error.reason}")
    if found is None:
        return plan
    return msgspec.structs.replace(
        plan, why=found.record.why, scaled=found.record, unseen=[*found.record.unseen, *UNSEEN]
    )
