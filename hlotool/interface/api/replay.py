"""`replay`: every module under the paths is run, and its stages are compared.

The imports that take time stand inside the functions, after the first worker process is on its way.
"""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from hlotool.interface.api.calls import QUIET, Accompanied, Course, Ending, check_backends, ending, options_of
from hlotool.interface.api.kept import known_before
from hlotool.interface.api.results import FindingsResult
from hlotool.runs.options.declared import Folder, option, takes
from hlotool.runs.options.replaying import ClusterExecution, Compared, Found, TolerancesByOutput
from hlotool.runs.options.shared import Baseline, InputsAndOutputs, Paths, Resume
from hlotool.system.user_input import did_you_mean

if TYPE_CHECKING:
    from hlotool.interface.api.last_failed import LastRun
    from hlotool.interface.report.records import RememberedRecord, RunRecord
    from hlotool.ir.arrays import Array
    from hlotool.judge.verdicts import Verdict
    from hlotool.runs.fleet.batch import Batch
    from hlotool.runs.fleet.contents import Contents
    from hlotool.runs.fleet.known import Choice, Known
    from hlotool.runs.options.kept import RunOptions
    from hlotool.runs.records import LeafRecord, ModuleRecord
    from hlotool.runs.task import Task
    from hlotool.sources.records import DumpModule
    from hlotool.system.cache import Journal, Store
    from hlotool.system.executor import Executor


class ReplayResult(FindingsResult["ModuleRecord"]):
    """What a replay found: a row for each comparison."""

    record: RunRecord

    @property
    def rows(self) -> Sequence[ModuleRecord]:
        """One record per comparison, in the order of the dump."""
        return self.record.modules

    @property
    def verdict(self) -> Verdict:
        """The worst of all rows."""
        from hlotool.judge.verdicts import worst

        return worst(row.verdict for row in self.rows)

    @property
    def wrong(self) -> list[ModuleRecord]:
        """The rows in which a side is wrong, so that the command exits with 1; those of `fail_on`, too."""
        from hlotool.judge.verdicts import DIFFERING

        kinds = self.record.options.fail_on
        return [row for row in self.rows if row.verdict in DIFFERING or row.fails_on(kinds)]

    @property
    def summary(self) -> dict[str, int]:
        """How many rows have each verdict, the best first."""
        return dict(self.record.summary)

    def arrays(self, leaf: LeafRecord) -> tuple[Array, Array]:
        """The expected and the actual value of an output, mapped from their files as they are read.

        Narrow types that NumPy lacks (bf16, f8, int4, …) are in a wider one.

        Raises:
            UsageError: the replay was not asked to keep them (`save_outputs=`).
            InputDataError: the files are gone.
        """
        from hlotool.inputs.given import mapped

        if not leaf.expected_file or not leaf.actual_file:
            from hlotool.errors import UsageError

            raise UsageError("these values were not kept: say save_outputs=DIR")
        return mapped(leaf.expected_file), mapped(leaf.actual_file)

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} {verdict}" for verdict, count in self.summary.items())
        return f"<ReplayResult: {counts or 'nothing'}>"


class _Found(Found, Baseline, group="what is found"): ...


class _Execution(ClusterExecution, Resume, group="execution"):
    cache: bool = option(
        "replay what an earlier run has replayed, and keep nothing for later ones",
        "take verdicts on the same programs from earlier calls, and keep new ones for later; not those"
        " of a cluster whose processors, libraries or environment are others than this machine's",
        default=True,
    )
    journal: Folder = option(
        "keep what is finished there, or at a URL, to go on elsewhere [cache]",
        "folder, or its URL, for what is finished, so that the same call resumes elsewhere; None for the"
        " cache folder",
        default=None,
    )


class ReplayArguments(Paths, Compared, InputsAndOutputs, TolerancesByOutput, _Found, _Execution, Accompanied):
    """What `replay` takes, and `hlotool run`."""


@takes(ReplayArguments)
def replay(asked: ReplayArguments) -> ReplayResult:
    """Replay every module of a dump and compare its stages, as `hlotool run` does.

    The program as the frontend gave it (before optimizations) and the program that was compiled (after
    optimizations) run on the same inputs, each module in a process of its own.

    Raises:
        DumpError: a path cannot be read, or holds nothing to replay.
        UsageError: no module matches, no such backend, an impossible argument.
        BackendUnavailable: something that a backend needs is missing here.
    """
    start = time.perf_counter()
    from hlotool.interface.api.last_failed import LastRun
    from hlotool.interface.report.records import remembered_of
    from hlotool.runs.fleet.contents import were_read
    from hlotool.runs.fleet.known import executor_of
    from hlotool.runs.options.kept import PRELOAD
    from hlotool.system.executor import Limits

    options = options_of(asked)
    known, last = known_before(asked.baseline), LastRun("run", asked.paths)
    limits = Limits(options.workers, options.timeout, options.memory_limit)
    found = Replayed()
    backends = " or ".join(options.backends)
    with ending(asked.course) as end, executor_of(asked.cluster, limits, PRELOAD, backends) as pool:
        # Who asks whether runs differ wants them run.
        cache = asked.cache and options.repeat == 1
        if asked.cluster is not None or not (cache and were_read(asked.paths)):
            pool.start()
        replay_on(
            pool, asked.paths, options, found, asked.course, asked.resume, cache, asked.journal, last=last
        )
        end.interrupted = found.interrupted
    if found.journal is not None and not end.interrupted:
        asked.course.forget(found.journal.remove)
    elapsed = time.perf_counter() - start
    record = record_of(
        *(asked.paths, options, found.rows, end, found.notes, elapsed),
        *(found.found, found.positions, remembered_of(found.remembered)),
    )
    record = known.judge(record) if known else record
    if asked.cache:
        _keep_failures(last, record)
    return ReplayResult(record)


def _keep_failures(last: LastRun, record: RunRecord) -> None:
    """What fails, and is in no baseline, is known to the next run."""
    from hlotool.interface.api.last_failed import place_of
    from hlotool.judge.verdicts import FAILING

    known = set(record.baseline.known) if record.baseline is not None else ()
    places = [place_of(row.path, row.name) for row in record.modules]
    failed = [
        place
        for number, (row, place) in enumerate(zip(record.modules, places))
        if number not in known and (row.verdict in FAILING or row.fails_on(record.options.fail_on))
    ]
    last.keep(set(places), failed)


@dataclass(slots=True)
class Replayed:
    """What a replay came to so far.

    Attributes:
        rows: of comparisons.
        by_task: the same for each task that is finished, without those that are of no module.
        notes: what was passed over, and warnings.
        journal: keeps the rows until they are shown; None where there is nothing to keep.
        interrupted: the user stopped it.
        found: how many comparisons there were to make.
        positions: among these, of the rows.
        remembered: when each of the rows was found that are of earlier calls, in seconds since the epoch.
    """

    rows: list[ModuleRecord] = field(default_factory=list)
    by_task: list[tuple[Task, list[ModuleRecord]]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    journal: Journal | None = None
    interrupted: bool = False
    found: int = 0
    positions: list[int] = field(default_factory=list)
    remembered: list[int] = field(default_factory=list)


def replay_on(
    executor: Executor,
    paths: Sequence[str],
    options: RunOptions,
    found: Replayed,
    course: Course = QUIET,
    resume: bool = True,
    cache: bool = False,
    journal: str | os.PathLike[str] | None = None,
    prepared: Callable[[Task], Task] = lambda task: task,
    last: LastRun | None = None,
) -> None:
    """Replay the modules under `paths` on an executor.

    Args:
        executor: it may have worked before, and may go on afterwards.
        paths: of dumps.
        options: of the comparisons.
        found: gets what is found, also what was found before an error.
        course: is told how it goes on.
        resume: go on where the same call was interrupted.
        cache: use the verdicts of earlier calls, and keep new ones, where the executor finds what this
            machine would find.
        journal: folder, or its URL, for what is finished; None for the cache folder.
        prepared: what of a module is replayed.
        last: the run before, where `options.last_failed` may ask for it.

    Raises:
        DumpError: a path cannot be read, or holds nothing to replay.
        UsageError: no module matches, no such backend.
        BackendUnavailable: something that a backend needs is missing here.
        KeyboardInterrupt: the user stopped it, and `course` does not keep that.
    """
    from hlotool.runs.fleet.contents import Contents, index_of
    from hlotool.runs.fleet.known import Known
    from hlotool.runs.task import find_tasks, for_each_backend, unavailable_row, unusable_row
    from hlotool.system.cache import index_store, verdict_store

    missing = check_backends(options)
    # Of no program: rows for all parts of a run.
    further: list[ModuleRecord] = []
    with course.waiting("reading the programs"):
        named = find_tasks(paths, options, found.notes, lambda *path: further.append(unusable_row(*path)))
    further += [unavailable_row(backend, why) for backend, why in missing.items()]
    every = for_each_backend(map(prepared, named), missing)
    contents = Contents(index_store() if cache else None, index_of(paths))
    choice = _chosen(every, options, contents, last)
    tasks = [every[position] for position in choice.positions]
    found.notes += [*choice.notes, *_beside(paths, options)]
    found.journal = _journal(tasks, paths, options, journal)
    store = verdict_store() if cache and executor.is_as_here else None
    known = Known(found.journal, store, contents)
    batch = _replay(tasks, executor, course, known, resume, options)
    found.interrupted = batch.interrupted
    rows = batch.records
    own = iter(rows)
    found.by_task = [(t, list(islice(own, len(r)))) for t, r in zip(tasks, batch.rows) if r is not None]
    found.remembered = batch.remembered
    if not batch.interrupted:
        found.notes += _unsafe_updates(tasks, batch, executor, known.store)
        found.notes += _unknown_outputs(options, rows)
    if batch.left:
        found.notes.append(f"ended after {options.max_failures} failures: {batch.left} modules were not run")
    known.close()
    found.notes += [*executor.notes, *known.problems]
    found.rows = rows + further
    found.found = len(every) + len(further)
    if options.shard is not None:
        positions = [p for p, of_task in zip(choice.positions, batch.rows) for _ in of_task or ()]
        found.positions = positions + list(range(len(every), found.found))
    if batch.interrupted and not course.keeps_interrupts:
        raise KeyboardInterrupt


def _chosen(tasks: Sequence[Task], options: RunOptions, contents: Contents, last: LastRun | None) -> Choice:
    """The tasks that are run here."""
    from hlotool.errors import UsageError
    from hlotool.interface.api.last_failed import place_of
    from hlotool.runs.fleet.known import Choice, sample_of, shard_of

    if (options.shard is not None) + bool(options.sample) + options.last_failed > 1:
        raise UsageError(
            "--shard is a part of all modules, --sample some, --last-failed those that failed: give one"
        )
    if options.last_failed and last is not None:
        return last.choice([place_of(task.path, task.module.title) for task in tasks])
    if options.shard is not None:
        return shard_of(tasks, *options.shard_number, contents)
    if options.sample:
        return sample_of(tasks, options.sample, options.seed)
    return Choice(list(range(len(tasks))), [])


def _journal(
    tasks: Sequence[Task],
    paths: Sequence[str],
    options: RunOptions,
    folder: str | os.PathLike[str] | None,
) -> Journal | None:
    """Where rows are kept; None for one module, no part of which could be finished before the others."""
    from hlotool.runs.fleet.contents import command_key
    from hlotool.system.store_access import journal_in

    return journal_in(folder, "run", command_key(paths, options)) if len(tasks) > 1 else None


def _replay(
    tasks: Sequence[Task],
    executor: Executor,
    course: Course,
    known: Known,
    resume: bool,
    options: RunOptions,
) -> Batch:
    from hlotool.judge.verdicts import Answer
    from hlotool.runs.fleet.batch import replay_all

    def fails(row: ModuleRecord) -> bool:
        return row.verdict.answer is Answer.BAD or row.fails_on(options.fail_on)

    course.working()
    with course.replaying(tasks) as listener:
        return replay_all(tasks, executor, listener, known, resume, options.max_failures, fails)


def _unsafe_updates(
    tasks: Sequence[Task], batch: Batch, executor: Executor, store: Store | None
) -> Iterator[str]:
    """What is known to go wrong behind the last stage, of the modules whose stages agree.

    Of the same programs under several names one is enough.
    """
    from hlotool.checks.in_place import unsafe_updates
    from hlotool.judge.verdicts import AGREEING

    agreeing: dict[str, DumpModule] = {}
    for task, rows, program in zip(tasks, batch.rows, batch.programs):
        if any(row.verdict in AGREEING for row in rows or ()):
            agreeing.setdefault(program or task.path, task.module)
    modules = dict.fromkeys(agreeing.values())
    return unsafe_updates(modules, executor, store)


def _beside(paths: Sequence[str], options: RunOptions) -> Iterator[str]:
    """Arguments and results of an execution that lie in a dump and were not asked for."""
    for path in paths:
        for name, given in (("inputs", options.inputs), ("outputs", options.outputs)):
            file = os.path.join(path, f"{name}.npz")
            if not given and os.path.isfile(file):
                yield f"{file} was not used: --{name} {shlex.quote(file)} does"


def _unknown_outputs(options: RunOptions, rows: Sequence[ModuleRecord]) -> Iterator[str]:
    """Tolerances of outputs that no program has."""
    from hlotool.judge.records import output_index, output_name

    known = {tuple(leaf.index) for row in rows for leaf in row.leaves}
    for name in dict.fromkeys(name for name, _ in (*options.output_rtol, *options.output_atol)):
        index = output_index(name)
        if known and not any(leaf[: len(index)] == index for leaf in known):
            meant = did_you_mean(name, map(output_name, sorted(known)))
            yield f"no program has the output {name}, which a tolerance was given for{meant}"


def record_of(
    paths: Sequence[str],
    options: RunOptions,
    rows: Sequence[ModuleRecord],
    end: Ending,
    notes: Sequence[str],
    elapsed: float,
    found: int = 0,
    positions: Sequence[int] = (),
    remembered: RememberedRecord | None = None,
) -> RunRecord:
    """What was found in `paths` within `elapsed` seconds.

    Args:
        paths: as given.
        options: of the run.
        rows: that were found.
        end: why it ended early, if it did.
        notes: what was passed over, and warnings.
        elapsed: seconds.
        found: how many comparisons there were to make; 0 for as many as there are rows.
        positions: of a shard, among these.
        remembered: which rows earlier commands have found.
    """
    import msgspec

    from hlotool.interface.report.causes import causes_of_run
    from hlotool.interface.report.next_command import command_after_row
    from hlotool.interface.report.records import RunRecord, exit_code_of, summary_of, versions

    record = RunRecord(
        versions=versions(),
        paths=list(paths),
        options=options,
        modules=list(rows),
        summary=summary_of(rows),
        notes=list(notes),
        error=end.error,
        interrupted=end.interrupted,
        found=found or len(rows),
        remembered=remembered,
        positions=list(positions),
        exit_code=end.exit_code(exit_code_of(rows, fail_on=options.fail_on, exact=options.exact)),
        seconds=elapsed,
    )
    causes = causes_of_run(rows, lambda row: command_after_row(record, row), options.fail_on)
    return msgspec.structs.replace(record, causes=causes)
