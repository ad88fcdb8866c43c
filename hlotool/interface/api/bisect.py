"""`bisect`: from a wrong dump to the module, the pass and the instructions to blame."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hlotool.errors import UsageError
from hlotool.interface.api.calls import Accompanied, Ending, ending, options_of
from hlotool.interface.api.kept import known_before
from hlotool.interface.api.results import FindingsResult
from hlotool.runs.options.declared import Arguments, As, option, takes
from hlotool.runs.options.parsers import Program
from hlotool.runs.options.replaying import ClusterExecution
from hlotool.runs.options.shared import (
    Baseline,
    Exact,
    InputsAndOutputs,
    Only,
    Paths,
    Repetitions,
    Repro,
    Resume,
    Scale,
    Tolerances,
    Unknown,
)

if TYPE_CHECKING:
    from hlotool.blame.bisection.directory import Findings
    from hlotool.blame.bisection.records import BisectedModule, CulpritRecord
    from hlotool.blame.bisection.stages import StageOracle
    from hlotool.blame.steps import Steps
    from hlotool.interface.report.command_records import BisectRecord
    from hlotool.ir.arrays import Array
    from hlotool.runs.options.kept import RunOptions
    from hlotool.runs.task import Task
    from hlotool.system.cache import Journal

#: Instead of a compiler on which culprits are tried.
NO_BACKEND = "none"


class BisectResult(FindingsResult["CulpritRecord"]):
    """What a bisection found: a row for each fault.

    No row does not mean that nothing is wrong: `healthy` names the modules of which that is known, `modules`
    has the others with the reason.
    """

    record: BisectRecord

    @property
    def rows(self) -> Sequence[CulpritRecord]:
        """One record per fault."""
        return self.record.culprits

    @property
    def culprits(self) -> Sequence[CulpritRecord]:
        """The same as `rows`."""
        return self.record.culprits

    @property
    def modules(self) -> Sequence[BisectedModule]:
        """The modules that were searched, and those of which nothing is established, with the reason."""
        return self.record.modules

    @property
    def healthy(self) -> Sequence[str]:
        """Names of the modules that agree from end to end."""
        return self.record.healthy

    def arguments(self, culprit: CulpritRecord) -> dict[str, Array]:
        """The values that the accused instructions read, by key as in an .npz; empty where none were kept."""
        from hlotool.inputs.given import npz_arrays

        spot = culprit.spot
        return npz_arrays(spot.inputs) if spot is not None and spot.inputs else {}

    def __repr__(self) -> str:
        counts = (
            (len(self.culprits), "culprits"),
            (len(self.healthy), "healthy"),
            (len(self.modules), "searched"),
        )
        return f"<BisectResult: {', '.join(f'{count} {what}' for count, what in counts)}>"


class _Every(Arguments):
    every_stage: bool = option("judge all stages: finds repaired faults", default=False)
    every_module: bool = option("search all modules, not one for each kind of failure", default=False)
    flags: bool = option(
        "search flags of XLA, not passes: those of --backend and of the dump, else its own",
        "search the flags of XLA, not its passes: with which of those of the backend and of the dump is a"
        " program wrong, or which of its own makes it right",
        default=False,
    )
    reference: str = option("backend that runs it [numpy]", default="numpy", metavar="NAME")
    backend: str | None = option(
        "compile here, such as with xla, and dump its passes", default=None, metavar="NAME"
    )


class _Searched(Only, _Every, Exact, Unknown, Scale, Baseline, Repetitions, group="what to search"):
    repeats: int = option("runs of what is compiled here [3]", default=3)


class _Bundles(Repro, group="repro bundles"):
    try_on: str | None = option(
        "compiler on which they are tried and made small [xla, or --backend]; none: do not",
        default=None,
        metavar="NAME",
    )


class BisectArguments(
    Paths, _Searched, InputsAndOutputs, Tolerances, _Bundles, ClusterExecution, Resume, Accompanied
):
    """What `bisect` takes, and `hlotool bisect`."""

    paths: As[Program | Sequence[Program], list[str]] = option(
        doc="a dump with the program after every pass (`--xla_dump_hlo_pass_re=.*`), a file, an archive, a"
        " module, or several of these",
        kw_only=False,
    )


@takes(BisectArguments)
def bisect(asked: BisectArguments) -> BisectResult:
    """Find what made the programs of a dump wrong: the module, the pass, the instructions.

    Raises:
        DumpError: a path cannot be read, or holds nothing.
        UsageError: no such backend, no module matches, an impossible argument.
    """
    start = time.perf_counter()
    from hlotool.blame.bisection.directory import Findings
    from hlotool.runs.fleet.contents import command_key
    from hlotool.system.cache import journal_of
    from hlotool.system.store_access import refuse_url

    folder = None if asked.repro is None else Path(refuse_url("--repro", asked.repro))
    options = options_of(asked, backend=asked.backend or asked.reference)
    known = known_before(asked.baseline)
    journal = journal_of("bisect", command_key(asked.paths, options))
    if not asked.resume:
        _forget(journal)
    findings = Findings()
    notes: list[str] = []
    with ending(asked.course) as end:
        _Search(asked, options).run(journal, findings, notes)
    record = _record(asked.paths, options, findings, notes, folder, end, start)
    if end.interrupted:
        journal.close()
    else:
        asked.course.forget(lambda: _forget(journal))
    return BisectResult(known.judge(record) if known else record)


class _Search:
    """The arguments of `bisect`, and the search itself."""

    def __init__(self, asked: BisectArguments, options: RunOptions) -> None:
        self._asked = asked
        self._options = options
        self._backend = asked.backend or ("xla" if asked.flags else "")
        self._try_on = asked.try_on or ""

    def run(self, journal: Journal, findings: Findings, notes: list[str]) -> None:
        """Search; `findings` and `notes` get what is found, as it is found."""
        from hlotool.backends.registry import get_backend
        from hlotool.blame.bisection.directory import Compiler, bisect_directory
        from hlotool.blame.bisection.stages import StageOracle
        from hlotool.blame.steps import Steps
        from hlotool.checks.in_place import unsafe_updates
        from hlotool.runs.fleet.known import executor_of
        from hlotool.runs.options.kept import PRELOAD
        from hlotool.runs.task import find_tasks, unusable_row
        from hlotool.system.executor import Limits

        for name in {self._backend, self._try_on} - {"", NO_BACKEND}:
            get_backend(name)
        options, asked = self._options, self._asked
        every = asked.every_stage, asked.every_module
        limits = Limits(options.workers, options.timeout, options.memory_limit)
        with (
            asked.course.searching() as listener,
            executor_of(asked.cluster, limits, PRELOAD, options.reference) as pool,
        ):
            pool.start()
            steps = Steps(journal, listener)
            oracle = StageOracle(pool, steps)
            tasks = find_tasks(
                asked.paths, options, notes, lambda *path: findings.pass_over(unusable_row(*path))
            )
            try:
                if asked.flags:
                    self._search_flags(tasks, oracle, journal, findings)
                elif self._backend:
                    dumps = journal.path.with_suffix(".dumps")
                    compiler = Compiler(self._backend, dumps, oracle, asked.repeats)
                    compiler.bisect(tasks, findings, *every)
                else:
                    bisect_directory(tasks, oracle, findings, *every)
                notes += unsafe_updates([t.module for t in tasks if t.module.title in findings.healthy], pool)
                if not asked.flags and (self._backend or asked.repro is not None):
                    self._try(tasks, findings, steps)
            finally:
                findings.comparisons, findings.unusable = oracle.questions, len(oracle.unanswered)
                notes += [*findings.notes, *pool.notes]
                if steps.problem:
                    notes.append(steps.problem)

    def _search_flags(
        self, tasks: Sequence[Task], oracle: StageOracle, journal: Journal, findings: Findings
    ) -> None:
        from dataclasses import replace

        from hlotool.blame.flags import FlagSearch
        from hlotool.runs.task import Task

        dumps = journal.path.with_suffix(".dumps")
        for task in tasks:
            oracle.steps.listener.phase(task.module.title)
            module = replace(task.module, stages=task.module.stages[:1], others=(), companions=())
            given = Task(module, task.options)
            findings.flags.append(FlagSearch(given, self._backend, oracle, dumps).run())

    def _try(self, tasks: list[Task], findings: Findings, steps: Steps) -> None:
        """Whether what the bundles are about to hold triggers on a compiler that is at hand."""
        from hlotool.blame.bisection.trigger import not_tried, try_culprits

        if self._try_on == NO_BACKEND:
            not_tried(findings.culprits, "--try-on none")
            return
        backend = self._try_on or self._backend or "xla"
        try_culprits(findings.culprits, tasks, backend, self._options, steps, self._asked.confidence)


def _record(
    paths: list[str],
    options: RunOptions,
    findings: Findings,
    notes: list[str],
    repro: Path | None,
    end: Ending,
    start: float,
) -> BisectRecord:
    from hlotool.blame.bisection.trigger import not_tried
    from hlotool.interface.report.causes import causes_of_bisection
    from hlotool.interface.report.command_records import BisectRecord, bisect_exit_code
    from hlotool.interface.report.next_command import command_after_culprit
    from hlotool.interface.report.records import versions

    culprits = findings.culprits
    not_tried(culprits, "no bundle was asked for" if repro is None else "the search ended before that")
    if repro is not None:
        culprits = [_with_repro(c, n, repro, options, notes) for n, c in enumerate(culprits, start=1)]
    modules = [_with_culprits(module, culprits) for module in findings.modules]
    return BisectRecord(
        versions=versions(),
        paths=paths,
        options=options,
        culprits=culprits,
        causes=causes_of_bisection(culprits, command_after_culprit),
        modules=modules,
        healthy=findings.healthy,
        flags=findings.flags,
        comparisons=findings.comparisons,
        unusable=findings.unusable,
        stages_only=findings.stages_only,
        notes=notes,
        error=end.error,
        interrupted=end.interrupted,
        exit_code=end.exit_code(bisect_exit_code(culprits, modules, findings.healthy, findings.flags)),
        seconds=time.perf_counter() - start,
    )


def _with_repro(
    culprit: CulpritRecord,
    number: int,
    folder: Path,
    options: RunOptions,
    notes: list[str],
) -> CulpritRecord:
    """The culprit with its bundle on disk; that it cannot be written must not hide what was found."""
    import re

    import msgspec

    from hlotool.blame.repro.bundle import write_bundle
    from hlotool.blame.repro.making import bundle_of
    from hlotool.interface.report.records import versions

    bundle = bundle_of(culprit, options, versions())
    if bundle is None:
        return culprit
    name = re.sub(r"[^\w.+=-]", "_", culprit.module.rpartition("/")[2])
    place = folder / f"{number}.{name}"
    try:
        write_bundle(bundle, place)
    except UsageError as error:
        notes.append(f"no repro bundle: {error}")
        return culprit
    return msgspec.structs.replace(culprit, repro=str(place))


def _with_culprits(module: BisectedModule, culprits: list[CulpritRecord]) -> BisectedModule:
    """The module with its culprits as they are now, and with the bundle of the first."""
    import msgspec

    known = [(old.module, old.stage, old.comparison) for old in module.culprits]
    own = [new for new in culprits if (new.module, new.stage, new.comparison) in known]
    bundle = next((culprit.repro for culprit in own if culprit.repro), "")
    return msgspec.structs.replace(module, culprits=own, bundle=bundle)


def _forget(journal: Journal) -> None:
    """Remove the journal and the dumps that were made on the way."""
    import shutil

    journal.remove()
    shutil.rmtree(journal.path.with_suffix(".dumps"), ignore_errors=True)
