"""`fuzz`: programs that nobody wrote, to find what a backend gets wrong."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hlotool.api.course import QUIET, Course, Ending, ending
from hlotool.api.options import options_from
from hlotool.api.results import Result
from hlotool.api.spool import Program, paths_of
from hlotool.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from hlotool.fuzz.campaign import Campaign, Listener, Plan
    from hlotool.fuzz.records import FaultRecord
    from hlotool.fuzz.triage import Triage
    from hlotool.ir.module import Module
    from hlotool.replay.options import RunOptions
    from hlotool.report.fuzz_records import CampaignOptions, FuzzRecord

#: Minutes of a campaign for which nothing else is said.
_MINUTES = 30.0


class FuzzResult(Result["FaultRecord"]):
    """What a campaign found: a row for each failure that was looked into."""

    record: FuzzRecord

    @property
    def rows(self) -> Sequence[FaultRecord]:
        """One record per failure that was looked into: `status` says what it is."""
        return self.record.faults

    @property
    def distinct(self) -> list[FaultRecord]:
        """The faults that are neither known nor another case of one of these."""
        return [fault for fault in self.record.faults if fault.status == "new"]

    def __repr__(self) -> str:
        return f"<FuzzResult: {self.record.tally.drawn} programs, {self.record.distinct} distinct faults>"


def fuzz(
    paths: Program | Sequence[Program] = (),
    *,
    out: str | os.PathLike[str],
    backend: str = "xla",
    reference: str = "numpy",
    minutes: float | None = None,
    programs: int = 0,
    seed: int = 0,
    integers: bool = False,
    devices: int = 1,
    known: Sequence[str | os.PathLike[str]] = (),
    committed: bool = True,
    timeout: float = 60.0,
    jobs: int = 0,
    cluster: str | None = None,
    memory_limit: int | str | None = None,
    resume: bool = True,
    course: Course = QUIET,
) -> FuzzResult:
    """Draw programs, compare a backend with the reference, and make a report of each distinct fault.

    Args:
        paths: real programs, which are changed beside the ones that are made up.
        out: folder of the campaign; the same call goes on with it.
        backend: in question.
        reference: that gives the expected values.
        minutes: the campaign may take, all calls together; half an hour when neither this nor `programs` is
            given.
        programs: to judge; 0 for as many as there is time for.
        seed: of programs and inputs.
        integers: only programs without floats, where every difference counts.
        devices: that programs are for.
        known: files of faults that are known, which are counted and not reported.
        committed: those that hlotool comes with are known, too.
        timeout: seconds per program.
        jobs: processes; 0 for as many as suit the machine.
        cluster: of Dask, which judges the programs instead: `tcp://HOST:8786`, `local:N`, `slurm:jobs=N,…` or
            `k8s:n_workers=N,…`.
        memory_limit: bytes per process or text such as `8G`; None for a share of what is free.
        resume: go on with the campaign in the folder; otherwise begin anew.
        course: is told how it goes on.

    Raises:
        DumpError: a path cannot be read, or holds no program.
        UsageError: no such backend, an impossible argument, or the folder holds another campaign.
        BackendUnavailable: the backend needs something that is missing.
    """
    given = dict(locals())
    start = time.perf_counter()
    from hlotool.api.options import check_backends
    from hlotool.fuzz.campaign import Plan
    from hlotool.report.fuzz_records import CampaignOptions
    from hlotool.stores.access import refuse_url

    folder = Path(refuse_url("--out", os.fspath(out)))
    options = options_from(given)
    check_backends(options)
    limit = _MINUTES if minutes is None and not programs else minutes
    where = paths_of(paths)
    plan = Plan(options, folder, limit, programs, integers, devices, _variants(backend))
    asked = CampaignOptions(
        backend=backend,
        reference=reference,
        paths=where,
        minutes=limit,
        programs=programs,
        seed=seed,
        integers=integers,
        devices=devices,
        jobs=jobs,
        known=[os.fspath(file) for file in known],
    )
    versions = _versions(options)
    triage = _triage(plan, asked, committed, versions)
    notes: list[str] = []
    campaign: list[Campaign] = []
    with ending(course) as end, course.fuzzing(plan.seconds) as listener:
        _run(plan, triage, _programs(where, notes), cluster, resume, listener, campaign)
    return FuzzResult(_record(asked, plan, campaign, end, notes, versions, time.perf_counter() - start))


def _variants(backend: str) -> tuple[str, ...]:
    """The same backend in other set-ups, which must give the same results; none of a backend without any."""
    from hlotool.backends.spec import BackendSpec, parse_spec

    spec = parse_spec(backend)
    if spec.name != "xla":
        return ()
    others = [("opt", "0"), ("disable", "fusion"), ("disable", "algsimp"), ("disable", "constant_folding")]
    return tuple(
        str(BackendSpec(spec.name, {**spec.options, key: value}))
        for key, value in others
        if key not in spec.options
    )


def _versions(options: RunOptions) -> dict[str, str]:
    """Versions of everything that takes part, the backend's included.

    Raises:
        BackendUnavailable: the backend needs something that is missing.
        BackendFailed: it died when it was asked.
    """
    from hlotool.errors import BackendUnavailable
    from hlotool.report.records import versions
    from hlotool.search.bisection.compiler import asked_compiler
    from hlotool.workers.executor import Limits
    from hlotool.workers.pool import Pool

    with Pool(Limits(1, options.timeout), (), options.backend) as pool:
        found = asked_compiler(pool, options.backend)
    if found.error:
        raise BackendUnavailable(found.error)
    return {**versions(), "backend": found.name}


def _triage(plan: Plan, asked: CampaignOptions, committed: bool, versions: dict[str, str]) -> Triage:
    from hlotool.fuzz.known import known_faults
    from hlotool.fuzz.triage import Settings, Triage
    from hlotool.workers.cores import worker_count

    known = known_faults(asked.known, committed)
    width = worker_count(plan.options.jobs, most=2)
    return Triage(Settings(plan.options, plan.folder, known, versions, width))


def _programs(paths: Sequence[str], notes: list[str]) -> list[Module]:
    """The programs that are changed: the first stage of each module under the paths.

    Raises:
        DumpError: a path cannot be read, or holds nothing.
    """
    from hlotool.dump.directory import open_dumps
    from hlotool.dump.loading import load_stage
    from hlotool.errors import InputError, Unsupported

    found = []
    for dump in open_dumps(paths) if paths else ():
        for module in dump.modules:
            for stage in [*module.stages, *module.others][:1]:
                try:
                    found.append(load_stage(module, stage))
                except (InputError, Unsupported) as error:
                    notes.append(f"not changed: {error}")
    if paths and not found:
        raise UsageError("none of the paths holds a program that can be changed")
    return found


def _run(
    plan: Plan,
    triage: Triage,
    programs: Sequence[Module],
    cluster: str | None,
    resume: bool,
    listener: Listener,
    begun: list[Campaign],
) -> None:
    """Run the campaign; `begun` gets it at once, so that what it found outlives an error."""
    from hlotool.fleet.executors import executor_of
    from hlotool.fuzz.campaign import Campaign
    from hlotool.fuzz.programs import Source
    from hlotool.replay.options import PRELOAD
    from hlotool.workers.executor import Limits

    options = plan.options
    source = Source(
        options.seed, integers_only=plan.integers, devices=plan.devices, seeds_of_mutation=programs
    )
    limits = Limits(options.workers, options.timeout, options.memory_limit)
    with executor_of(cluster, limits, PRELOAD, options.backend) as executor:
        campaign = Campaign(plan, source, executor, triage, listener)
        begun.append(campaign)
        campaign.run(resume)


def _record(
    asked: CampaignOptions,
    plan: Plan,
    begun: Sequence[Campaign],
    end: Ending,
    notes: list[str],
    versions: dict[str, str],
    seconds: float,
) -> FuzzRecord:
    from hlotool.fuzz.tally import Tally
    from hlotool.report.fuzz_records import FuzzRecord

    campaign = begun[0] if begun else None
    tally = campaign.tally if campaign is not None else Tally()
    faults = campaign.triage.faults if campaign is not None else []
    pending = len(campaign.waiting) if campaign is not None else 0
    distinct = sum(fault.status == "new" for fault in faults)
    if distinct or pending:
        code = ExitCode.MISMATCH
    else:
        judged = sum(count for kind, count in tally.kinds.items() if kind not in ("refused", "unjudged"))
        code = ExitCode.AGREE if judged else ExitCode.NOTHING_COMPARED
    return FuzzRecord(
        versions=versions,
        options=asked,
        folder=str(plan.folder),
        tally=tally,
        rate=tally.rate,
        faults=faults,
        distinct=distinct,
        pending=pending,
        error=end.error,
        interrupted=end.interrupted,
        notes=[*notes, *(campaign.notes if campaign is not None else ())],
        exit_code=end.exit_code(code),
        seconds=seconds,
    )
