"""`show_scale`: which sizes programs would get, without running them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from hlotool.api.options import options_of
from hlotool.api.results import Result
from hlotool.options.declared import As, option, takes
from hlotool.options.replaying import Backends, Execution, PairOfStages
from hlotool.options.shared import Only, Paths, Scale, Unknown
from hlotool.options.spool import Program, path_of

if TYPE_CHECKING:
    from hlotool.dump.records import DumpModule, Stage
    from hlotool.replay.options import RunOptions
    from hlotool.report.scale_records import ScalePlansRecord
    from hlotool.scale.records import PlanRecord

    _Compared = tuple[str, list[tuple[DumpModule, Stage]]]


class ScalePlans(Result["PlanRecord"]):
    """What would become of the sizes of programs."""

    record: ScalePlansRecord

    @property
    def rows(self) -> Sequence[PlanRecord]:
        """One record per module, or per pair of programs."""
        return self.record.plans


class ShowScaleArguments(Paths, Scale, Only, PairOfStages, Backends, Unknown, Execution):
    """What `show_scale` takes."""

    against: As[Program | None, str | None] = option(
        doc="the same kind of thing: what the programs of the only path are compared with",
        default=None,
        convert=path_of,
    )
    in_place: bool = option(
        doc="for `replay`, which runs programs as they are where values on disk are enough; other functions"
        " do not",
        default=True,
    )


@takes(ShowScaleArguments)
def show_scale(asked: ShowScaleArguments) -> ScalePlans:
    """Which sizes programs would get, which stay and why, and what one execution needs before and after.

    Nothing is executed.

    Returns:
        a plan for each module, or for each pair of programs.

    Raises:
        DumpError: a path cannot be read, or holds nothing.
        UsageError: no module matches, an impossible argument.
    """
    options, other, scale = options_of(asked), asked.against, asked.scale
    from hlotool.replay.scale_plans import limits_here, plan_of
    from hlotool.report.records import versions
    from hlotool.report.scale_records import ScalePlansRecord
    from hlotool.scale.wish import NEVER, wish_of

    notes: list[str] = []
    compared = list(_compared(asked.paths, other, options, notes))
    limits = limits_here(options, len(compared))
    if scale != NEVER:
        limits = limits.within(wish_of(scale))
    record = ScalePlansRecord(
        versions=versions(),
        paths=[*asked.paths, *([other] if other else [])],
        scale=scale,
        memory=None if limits.memory == float("inf") else int(limits.memory),
        seconds=limits.seconds,
        plans=[plan_of(name, pair, options, limits, asked.in_place) for name, pair in compared],
        notes=notes,
    )
    return ScalePlans(record)


def _compared(
    paths: Sequence[str], against: str | None, options: RunOptions, notes: list[str]
) -> Iterator[_Compared]:
    """Names of what is compared, with stages and the modules they are of; notes get what is passed over."""
    if against is not None:
        from hlotool.api.prove import pairing_of

        for pair in pairing_of([*paths, against], options, notes).pairs:
            yield pair.name, list(zip(pair.owners, (pair.left, pair.right)))
        return
    from hlotool.replay.stages import select_stages
    from hlotool.replay.task import find_tasks

    for task in find_tasks(paths, options, notes):
        selection = select_stages(task.module, options.stages)
        stages = [one for one in (selection.reference, *selection.tested) if one is not None]
        if stages:
            yield task.module.title, [(task.module, stage) for stage in stages]
        else:
            notes.append(f"{task.module.title}: {task.module.unpaired_reason}")
