"""What would become of the sizes of programs, without running them: `--show-scale`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from hlotool.dump.loading import load_stage
from hlotool.dump.records import DumpModule, Stage
from hlotool.errors import HlotoolError, Unsupported
from hlotool.ir.module import Module
from hlotool.replay.options import RunOptions
from hlotool.replay.scaling import how_in_place
from hlotool.scale.plan import Limits, need_of, scaled
from hlotool.scale.records import UNSEEN, PlanRecord
from hlotool.scale.wish import NEVER
from hlotool.workers.memory import left_within, share_of_free


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
        found = scaled(programs, options.scale, limits)
    except Unsupported as error:
        return msgspec.structs.replace(plan, note=f"cannot be scaled: {error.reason}")
    if found is None:
        return plan
    return msgspec.structs.replace(
        plan, why=found.record.why, scaled=found.record, unseen=[*found.record.unseen, *UNSEEN]
    )
