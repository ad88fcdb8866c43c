"""`fuzz`: random programs, to find what a backend gets wrong."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hlotool.errors import ExitCode, UsageError
from hlotool.interface.api.calls import Accompanied, Ending, ending, options_of
from hlotool.interface.api.results import Result
from hlotool.runs.options import declared, parsers
from hlotool.runs.options.declared import Arguments, As, option, takes
from hlotool.runs.options.parsers import Program, paths_of
from hlotool.runs.options.replaying import ClusterExecution
from hlotool.runs.options.shared import Resume

if TYPE_CHECKING:
    from hlotool.interface.report.fuzz_progress import Listener
    from hlotool.interface.report.lab_records import CampaignOptions, FaultRecord, FuzzRecord
    from hlotool.ir.module import Module
    from hlotool.lab.fuzz.campaign import Campaign, Plan
    from hlotool.lab.fuzz.triage import Triage
    from hlotool.runs.options.kept import RunOptions

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


class _Out(Arguments):
    paths: As[Program | Sequence[Program], list[str]] = option(
        "programs that are changed, as well",
        "real programs, which are changed beside the ones that are made up",
        default=(),
        kw_only=False,
        nargs="*",
        metavar="PATH",
        convert=paths_of,
    )
    out: As[str | os.PathLike[str], str] = option(
        "folder of the campaign",
        "folder of the campaign; the same call resumes it",
        convert=declared.path_text,
        metavar="DIR",
    )


class _Compared(Arguments, group="what is compared"):
    backend: str = option("in question [xla]", default="xla", metavar="NAME")
    reference: str = option("gives expected values [numpy]", default="numpy", metavar="NAME")


class _Drawn(Arguments, group="what is drawn"):
    minutes: float | None = option(
        "all calls together [30, without --programs no limit]",
        "the campaign may take, all calls together; half an hour when neither this nor `programs` is given",
        default=None,
        parse=parsers.minutes,
    )
    programs: int = option("programs [as many as there is time for]", default=0, parse=parsers.modules)
    seed: int = option("of programs and inputs [0]", default=0, parse=parsers.seed)
    integers: bool = option("only programs without floats", default=False)
    devices: int = option("that programs are for [1]", default=1, parse=parsers.devices)


class _Known(Arguments, group="what is known"):
    known: As[Sequence[str | os.PathLike[str]], tuple[str, ...]] = option(
        "TOML of known faults, which are counted only",
        default=(),
        kind="list",
        convert=parsers.paths_text,
        metavar="FILE",
    )
    committed: bool = option(
        "report also the known faults that hlotool comes with",
        "those that hlotool comes with are known, too",
        default=True,
    )


class FuzzArguments(_Out, _Compared, _Drawn, _Known, ClusterExecution, Resume, Accompanied):
    """What `fuzz` takes, and `hlotool fuzz`."""

    timeout: float = option(doc="seconds per program", default=60.0)
    resume: bool = option(doc="go on with the campaign in the folder; otherwise begin anew", default=True)


@takes(FuzzArguments)
def fuzz(asked: FuzzArguments) -> FuzzResult:
    """Draw programs, compare a backend with the reference, and make a report of each distinct fault.

    Raises:
        DumpError: a path cannot be read, or holds no program.
        UsageError: no such backend, an impossible argument, or the folder holds another campaign.
        BackendUnavailable: the backend needs something that is missing.
    """
    start = time.perf_counter()
    from hlotool.interface.api.calls import check_backends
    from hlotool.interface.report.lab_records import CampaignOptions
    from hlotool.lab.fuzz.campaign import Plan
    from hlotool.system.store_access import refuse_url

    folder = Path(refuse_url("--out", asked.out))
    options = options_of(asked)
    check_backends(options)
    limit = _MINUTES if asked.minutes is None and not asked.programs else asked.minutes
    wanted = asked.programs, asked.integers, asked.devices
    plan = Plan(options, folder, limit, *wanted, _variants(asked.backend))
    of = {name: getattr(asked, name) for name in CampaignOptions.__struct_fields__}
    record = CampaignOptions(
        **of | {"paths": list(asked.paths), "minutes": limit, "known": list(asked.known)}
    )
    versions = _versions(options)
    triage = _triage(plan, record, asked.committed, versions)
    notes: list[str] = []
    campaign: list[Campaign] = []
    with ending(asked.course) as end, asked.course.fuzzing(plan.seconds) as listener:
        programs = _programs(asked.paths, notes)
        _run(plan, triage, programs, asked.cluster, asked.resume, listener, campaign)
    return FuzzResult(_record(record, plan, campaign, end, notes, versions, time.perf_counter() - start))


def _variants(backend: str) -> tuple[str, ...]:
    """The same backend in other set-ups, which must give the same results; none of a backend without any."""
    from hlotool.backends.registry import BackendSpec, parse_spec

    spec = parse_spec(backend)
    return tuple(
        str(BackendSpec(spec.name, {**spec.options, key: value}))
        for key, value in _SET_UPS.get(spec.name, ())
        if key not in spec.options
    )


#: Options of backends that change how a program is compiled or executed, and not what it means.
_SET_UPS = {
    "xla": [("opt", "0"), ("disable", "fusion"), ("disable", "algsimp"), ("disable", "constant_folding")],
    "gpu-ptx": [("triton", "off"), ("seed", "1"), ("autotune", "64x128x64"), ("seed", "2")],
}


def _versions(options: RunOptions) -> dict[str, str]:
    """Versions of everything that takes part, the backend's included.

    Raises:
        BackendUnavailable: the backend needs something that is missing.
        BackendFailed: it died when it was asked.
    """
    from hlotool.blame.bisection.compiler import asked_compiler
    from hlotool.errors import BackendUnavailable
    from hlotool.interface.report.records import versions
    from hlotool.system.executor import Limits
    from hlotool.system.pool import Pool

    with Pool(Limits(1, options.timeout), (), options.backend) as pool:
        found = asked_compiler(pool, options.backend)
    if found.error:
        raise BackendUnavailable(found.error)
    return {**versions(), "backend": found.name}


def _triage(plan: Plan, asked: CampaignOptions, committed: bool, versions: dict[str, str]) -> Triage:
    from hlotool.lab.fuzz.known import known_faults
    from hlotool.lab.fuzz.triage import Settings, Triage
    from hlotool.system.resources import worker_count

    known = known_faults(asked.known, committed)
    width = worker_count(plan.options.jobs, most=2)
    return Triage(Settings(plan.options, plan.folder, known, versions, width))


def _programs(paths: Sequence[str], notes: list[str]) -> list[Module]:
    """The programs that are changed: the first stage of each module under the paths.

    Raises:
        DumpError: a path cannot be read, or holds nothing.
    """
    from hlotool.errors import InputError, Unsupported
    from hlotool.sources.directory import open_dumps
    from hlotool.sources.loading import load_stage

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
    from hlotool.backends.base import target_of
    from hlotool.backends.registry import get_backend
    from hlotool.lab.fuzz.campaign import Campaign
    from hlotool.lab.fuzz.programs import Source
    from hlotool.lab.fuzz.programs.source import FOR_GPUS, ORIGINS
    from hlotool.runs.fleet.known import executor_of
    from hlotool.runs.options.kept import PRELOAD
    from hlotool.system.executor import Limits

    options = plan.options
    target = target_of(get_backend(options.backend))
    source = Source(
        options.seed,
        origins=FOR_GPUS if target == "gpu" else ORIGINS,
        integers_only=plan.integers,
        devices=plan.devices,
        offloads=target == "tpu",
        seeds_of_mutation=programs,
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
    from hlotool.interface.report.lab_records import FuzzRecord, Tally

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
