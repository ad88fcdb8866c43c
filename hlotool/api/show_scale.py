"""`show_scale`: which sizes programs would get, without running them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from hlotool.api.options import options_from
from hlotool.api.results import Result
from hlotool.api.spool import Program, path_of, paths_of

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


def show_scale(
    paths: Program | Sequence[Program],
    *,
    against: Program | None = None,
    scale: str = "auto",
    only: str | None = None,
    stages: Sequence[str] = (),
    reference: str = "numpy",
    backend: str = "numpy",
    elided: str = "refuse",
    opaque: bool = False,
    replicas: int = 0,
    partitions: int = 0,
    timeout: float = 300.0,
    jobs: int = 0,
    memory_limit: int | str | None = None,
    in_place: bool = True,
) -> ScalePlans:
    """Which sizes programs would get, which stay and why, and what one execution needs before and after.

    Nothing is executed.

    Args:
        paths: dumps, files, archives, or modules.
        against: the same kind of thing: what the programs of the only path are compared with.
        scale: `auto`, `never`, sizes by the old ones (`4096=7,512=3`), or the memory to fit (`8G`).
        only: regular expression of the modules' names.
        stages: shell patterns of stage names, the reference first.
        reference: backend of the expected side.
        backend: backend of the tested side.
        elided: constants that are not in the dump: `refuse`, or `generate` the same values on both sides.
        opaque: private kernels get stand-ins, the same on both sides.
        replicas: of programs that do not say.
        partitions: likewise.
        timeout: seconds per module.
        jobs: processes that share the memory that is free; 0 for as many as suit the machine.
        memory_limit: bytes per process or text such as `8G`; None for a share of what is free.
        in_place: for `replay`, which runs programs as they are where values on disk are enough; other
            functions do not.

    Returns:
        a plan for each module, or for each pair of programs.

    Raises:
        DumpError: a path cannot be read, or holds nothing.
        UsageError: no module matches, an impossible argument.
    """
    given = dict(locals())
    options = options_from(given)
    where = paths_of(paths)
    other = None if against is None else path_of(against)
    from hlotool.replay.scale_plans import limits_here, plan_of
    from hlotool.report.records import versions
    from hlotool.report.scale_records import ScalePlansRecord
    from hlotool.scale.wish import NEVER, wish_of

    notes: list[str] = []
    compared = list(_compared(where, other, options, notes))
    limits = limits_here(options, len(compared))
    if scale != NEVER:
        limits = limits.within(wish_of(scale))
    record = ScalePlansRecord(
        versions=versions(),
        paths=[*where, *([other] if other else [])],
        scale=scale,
        memory=None if limits.memory == float("inf") else int(limits.memory),
        seconds=limits.seconds,
        plans=[plan_of(name, pair, options, limits, in_place) for name, pair in compared],
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
