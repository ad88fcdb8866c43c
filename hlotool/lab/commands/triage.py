"""`triage`: programs by others, judged, and what fails told apart by faults."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hlotool.errors import ExitCode
from hlotool.interface.api.calls import Accompanied, Ending, ending, options_of
from hlotool.interface.api.results import FindingsResult
from hlotool.runs.options import declared, parsers
from hlotool.runs.options.declared import Arguments, As, option, takes
from hlotool.runs.options.replaying import Backends, ClusterExecution
from hlotool.runs.options.shared import Only, Paths, Resume, Unknown

if TYPE_CHECKING:
    from hlotool.interface.api.replay import Replayed
    from hlotool.interface.report.lab_records import FailureRecord, FaultRecord
    from hlotool.interface.report.triage_records import TriagedRecord, TriageRecord
    from hlotool.lab.collection import Judged
    from hlotool.lab.fuzz.triage import Triage
    from hlotool.runs.options.kept import RunOptions
    from hlotool.runs.task import Task
    from hlotool.system.cache import Journal
    from hlotool.system.executor import Executor


class TriageResult(FindingsResult["TriagedRecord"]):
    """What programs by others came to: a row for each."""

    record: TriageRecord

    @property
    def rows(self) -> Sequence[TriagedRecord]:
        """One record per program."""
        return self.record.programs

    @property
    def faults(self) -> list[FaultRecord]:
        """The faults, each once; `count` says how many programs were found to show it."""
        return self.record.numbered

    def __repr__(self) -> str:
        return f"<TriageResult: {self.record.headline}>"


class _Judged(Only, Unknown, Backends, group="what is judged"):
    readme_flags: bool = option(
        "compile each program with the XLA_FLAGS of the README beside it; with --test xla, aot:…",
        "compile each program with the XLA_FLAGS that the README in its folder gives, but those of files",
        default=False,
    )


class _Looked(Arguments, group="what fails"):
    out: As[str | os.PathLike[str], str] = option(
        "folder of the faults",
        "folder that gets a bundle for each fault; the same call resumes it",
        convert=declared.path_text,
        metavar="DIR",
    )
    known: As[Sequence[str | os.PathLike[str]], tuple[str, ...]] = option(
        "TOML of known faults, beside those that hlotool comes with",
        default=(),
        kind="list",
        convert=parsers.paths_text,
        metavar="FILE",
    )
    each: float = option(
        "seconds to make a program small, and to find its pass [90]", default=90.0, parse=parsers.seconds
    )
    minutes: float | None = option(
        "after which no further failure is looked into [no limit]", default=None, parse=parsers.minutes
    )


class TriageArguments(Paths, _Judged, _Looked, ClusterExecution, Resume, Accompanied):
    """What `triage` takes, and `hlotool triage`."""


@takes(TriageArguments)
def triage(asked: TriageArguments) -> TriageResult:
    """Judge programs by others, and tell what fails apart by faults.

    With a backend, it compiles and runs each program as the frontend gave it; without one, the stages of
    dumps are compared. What fails is made small, attributed to a pass by replay, and compared with known
    faults and with each other.

    Raises:
        DumpError: a path cannot be read, or holds nothing to replay.
        UsageError: no module matches, no such backend, an impossible argument.
        BackendUnavailable: the backend needs something that is missing.
    """
    start = time.perf_counter()
    from hlotool.interface.api.replay import Replayed, replay_on
    from hlotool.lab.collection import Judged, as_given
    from hlotool.runs.fleet.known import executor_of
    from hlotool.runs.options.kept import PRELOAD
    from hlotool.system.cache import Journal
    from hlotool.system.executor import Limits
    from hlotool.system.store_access import refuse_url

    folder = Path(refuse_url("--out", asked.out))
    options = options_of(asked)
    on_backend = options.backend != options.reference
    triage = _triage(asked, options, folder)
    limits = Limits(options.workers, options.timeout, options.memory_limit)
    replayed = Replayed()
    programs: list[Judged] = []
    waiting: list[FailureRecord] = []
    with ending(asked.course) as end, executor_of(asked.cluster, limits, PRELOAD, options.backend) as pool:
        pool.start()
        kept = asked.course, asked.resume, True, None
        if on_backend:
            prepared = _under_their_flags(asked, options, pool, replayed) if asked.readme_flags else as_given
            replay_on(pool, asked.paths, options, replayed, *kept, prepared)
        else:
            replay_on(pool, asked.paths, options, replayed, *kept)
        end.interrupted = replayed.interrupted
        programs += [Judged(task, rows, on_backend) for task, rows in replayed.by_task if rows]
        of_programs = sum(len(judged.rows) for judged in programs)
        replayed.notes += [f"{row.path}: {row.reason}" for row in replayed.rows[of_programs:]]
        if not end.interrupted:
            journal = Journal(folder / "triage.jsonl")
            waiting += _failures(programs, folder, journal, triage, asked.resume)
            _look(programs, waiting, triage, journal, pool, asked)
    if replayed.journal is not None and not (end.interrupted or waiting):
        asked.course.forget(replayed.journal.remove)
    elapsed = time.perf_counter() - start
    return TriageResult(_record(asked, options, replayed, programs, triage, len(waiting), end, elapsed))


def _under_their_flags(
    asked: TriageArguments, options: RunOptions, pool: Executor, replayed: Replayed
) -> Callable[[Task], Task]:
    """What makes a task of a program under the flags of its README, as far as the backend knows them."""
    import msgspec

    from hlotool.backends.registry import with_flags
    from hlotool.lab.collection import as_given
    from hlotool.lab.readmes import REFUSED, flags_in, readme_of
    from hlotool.runs.task import Task, find_tasks

    tasks = find_tasks(asked.paths, options, [], lambda *path: None)
    wanted = sorted({flag for task in tasks for flag in flags_in(readme_of(task))})
    [done] = pool.call_all(REFUSED, [(options.backend, wanted)])
    refused = set(wanted)
    if isinstance(done.value, bytes):
        refused = set(msgspec.msgpack.decode(done.value, type=list[str]))
    if refused:
        replayed.notes.append(f"flags of READMEs that are not known: {', '.join(sorted(refused))}")

    def prepared(task: Task) -> Task:
        flags = [flag for flag in flags_in(readme_of(task)) if flag not in refused]
        own = msgspec.structs.replace(task.options, backend=with_flags(options.backend, flags))
        return as_given(Task(task.module, own))

    return prepared


def _triage(asked: TriageArguments, options: RunOptions, folder: Path) -> Triage:
    import msgspec

    from hlotool.interface.report.records import versions
    from hlotool.lab.fuzz.known import known_faults
    from hlotool.lab.fuzz.triage import Settings, Triage
    from hlotool.system.resources import worker_count

    width = worker_count(options.jobs, most=2)
    known = known_faults(asked.known)
    # What was chosen by name is chosen; programs that are looked into have other names.
    own = msgspec.structs.replace(options, only=None)
    return Triage(Settings(own, folder, known, versions(), width, asked.each, replays=True))


def _failures(
    programs: Sequence[Judged], folder: Path, journal: Journal, triage: Triage, resume: bool
) -> list[FailureRecord]:
    """What is to be looked into; the triage gets what an earlier call has found."""
    import msgspec

    from hlotool.interface.report.lab_records import FaultRecord
    from hlotool.lab.collection import failure_of, is_of_stages
    from hlotool.system.paths import writing

    with writing(folder):
        (folder / "raw").mkdir(parents=True, exist_ok=True)
    if not resume:
        journal.remove()
    earlier = journal.read()
    failures = [
        failure_of(index, judged, folder)
        for index, judged in enumerate(programs)
        if judged.fails and is_of_stages(judged)
    ]
    by_program = {failure.program: failure for failure in failures}
    for program, value in earlier.items():
        if failure := by_program.pop(program, None):
            found = msgspec.convert(value, FaultRecord)
            triage.faults.append(msgspec.structs.replace(found, index=failure.index))
    triage.recount()
    # One of each way to fail comes before the second of any.
    seen: Counter[str] = Counter()
    order: list[tuple[int, int, FailureRecord]] = []
    for failure in by_program.values():
        order.append((seen[str(failure.failure)], failure.index, failure))
        seen[str(failure.failure)] += 1
    return [failure for *_, failure in sorted(order, key=lambda one: one[:2])]


def _look(
    programs: Sequence[Judged],
    waiting: list[FailureRecord],
    triage: Triage,
    journal: Journal,
    pool: Executor,
    asked: TriageArguments,
) -> None:
    """Look into failures while there is time; those that are left stay in `waiting`."""
    import msgspec

    from hlotool.lab.collection import WRITE, Failing

    limit = float("inf") if asked.minutes is None else 60.0 * asked.minutes
    end = time.monotonic() + limit
    with asked.course.fuzzing(limit) as listener:
        while waiting and time.monotonic() < end:
            failure = waiting[0]
            judged = programs[failure.index]
            listener.looking(failure)
            if judged.is_on_backend:
                pool.call_all(WRITE, [Failing(judged.task, judged.row, failure.program)])
            found = triage.look_into(failure, None if judged.is_on_backend else judged.task)
            journal.add(failure.program, msgspec.to_builtins(found))
            del waiting[0]
            listener.found(found)
    journal.close()


def _record(
    asked: TriageArguments,
    options: RunOptions,
    replayed: Replayed,
    programs: Sequence[Judged],
    triage: Triage,
    pending: int,
    end: Ending,
    elapsed: float,
) -> TriageRecord:
    import msgspec

    from hlotool.interface.api.replay import record_of
    from hlotool.interface.report.triage_records import TriageRecord
    from hlotool.lab.collection import causes_of_faults, triaged

    rows = [row for judged in programs for row in judged.rows]
    run = record_of(asked.paths, options, rows, end, [], elapsed)
    found = list(triaged(programs, triage.faults))
    record = TriageRecord(
        versions=dict(triage.settings.versions),
        paths=asked.paths,
        folder=asked.out,
        backend=options.backend if options.backend != options.reference else "",
        programs=found,
        faults=triage.faults,
        counts=Counter(program.outcome for program in found),
        pending=pending,
        run=run,
        error=end.error,
        interrupted=end.interrupted,
        notes=replayed.notes,
        seconds=elapsed,
    )
    causes = causes_of_faults(record)
    return msgspec.structs.replace(
        record,
        run=msgspec.structs.replace(run, causes=causes),
        exit_code=end.exit_code(_exit_code(record)),
    )


def _exit_code(record: TriageRecord) -> ExitCode:
    counts = record.counts
    if counts.get("wrong") or counts.get("crashed"):
        return ExitCode.MISMATCH
    if counts.get("same") or counts.get("legal"):
        return ExitCode.AGREE
    return ExitCode.INCONCLUSIVE if counts.get("sensitive") else ExitCode.NOTHING_COMPARED
