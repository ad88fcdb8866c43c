"""`conformance`: does a backend compute what every opcode must, on every element type?"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from hlotool.api.course import QUIET, Course, Ending, ending
from hlotool.api.given import checked, several
from hlotool.api.results import FindingsResult
from hlotool.errors import BackendFailed, BackendUnavailable, ExitCode, UsageError

if TYPE_CHECKING:
    from hlotool.backends.registry import Description
    from hlotool.cache.journal import Journal
    from hlotool.conformance.suite import SuiteTask
    from hlotool.report.conformance_records import CellRecord, ConformanceRecord, TrialRecord
    from hlotool.workers.executor import Executor


class ConformanceResult(FindingsResult["CellRecord"]):
    """What a backend makes of each opcode: a row for each element type that it was tried on."""

    record: ConformanceRecord

    @property
    def rows(self) -> Sequence[CellRecord]:
        """One record per opcode and element type."""
        return self.record.cells

    @property
    def failures(self) -> list[TrialRecord]:
        """Trials whose result nothing explains, and those that the backend died of."""
        return self.record.failures


def conformance(
    *,
    backend: str = "xla",
    only: str | Sequence[str] = (),
    types: str | Sequence[str] = (),
    cases: int = 30,
    seed: int = 0,
    out: str | os.PathLike[str] | None = None,
    timeout: float = 300.0,
    jobs: int = 0,
    memory_limit: int | str | None = None,
    resume: bool = True,
    course: Course = QUIET,
) -> ConformanceResult:
    """Try every opcode on a backend: all cases of the specs, and random ones that the reference judges.

    Args:
        backend: what is tried, such as `xla`, `cuda-emu` or `pjrt:/path/plugin.so`.
        only: opcodes; all when there is none.
        types: element types; all when there is none.
        cases: random cases for each opcode, on as many different element types as possible.
        seed: of these.
        out: folder for the smallest failure of each opcode and element type: program and arguments.
        timeout: seconds that the trials of an opcode may take.
        jobs: processes; 0 for as many as suit the machine.
        memory_limit: bytes per process or text such as `8G`; None for a share of what is free.
        resume: go on where the same call was interrupted.
        course: is told how it goes on.

    Raises:
        UsageError: no such backend, opcode or element type, an impossible argument.
        BackendUnavailable: something that the backend needs is missing here.
    """
    start = time.perf_counter()
    # 0 is a number of cases, too.
    limits = checked({"seed": seed, "timeout": timeout, "jobs": jobs, "memory_limit": memory_limit})
    if cases:
        checked({"cases": cases})
    from hlotool.conformance.suite import with_reasons

    opcodes, kinds = _opcodes(several(only)), _types(several(types))
    found: list[TrialRecord] = []
    notes: list[str] = []
    known: Description | None = None
    journal: Journal | None = None
    with ending(course) as end:
        known = _described(backend)
        tasks = _tasks(backend, opcodes, kinds, cases, seed)
        journal = _journal(tasks)
        _run(tasks, limits, journal, resume, course, found, notes)
    if end.problem is None and not end.interrupted and journal is not None:
        course.forget(journal.remove)
    found = with_reasons(sorted(found, key=lambda trial: opcodes.index(trial.opcode)))
    asked = (backend, list(several(only)), list(kinds), cases, seed)
    record = _record(asked, known, found, _saved(found, out), end, notes, time.perf_counter() - start)
    return ConformanceResult(record)


def _opcodes(given: Sequence[str]) -> list[str]:
    """Those that were asked for, in the order of the table."""
    from hlotool.ir.opcodes import OPCODES
    from hlotool.names import did_you_mean

    for name in given:
        if name not in OPCODES:
            raise UsageError(f"there is no opcode {name!r}{did_you_mean(name, OPCODES)}")
    return [opcode for opcode in OPCODES if not given or opcode in given]


def _types(given: Sequence[str]) -> tuple[str, ...]:
    from hlotool.ir.types import ELEMENT_TYPES
    from hlotool.names import did_you_mean

    for name in given:
        if name not in ELEMENT_TYPES:
            raise UsageError(f"there is no element type {name!r}{did_you_mean(name, ELEMENT_TYPES)}")
    return tuple(given)


def _described(backend: str) -> Description:
    """Version and device of the backend, which is loaded in a process of its own."""
    import msgspec

    from hlotool.backends.registry import Description, get_backend
    from hlotool.workers.executor import Limits
    from hlotool.workers.pool import START_LIMIT, Pool

    get_backend(backend)  # a mistake of the user's is told at once
    with Pool(Limits(1, START_LIMIT), backend=backend) as pool:
        (done,) = pool.call_all("hlotool.backends.registry:describe_backend", [backend])
    if isinstance(done.value, BackendFailed):
        raise done.value
    known = msgspec.msgpack.decode(done.value, type=Description)
    if known.reason:
        raise BackendUnavailable(known.reason)
    return known


def _tasks(
    backend: str, opcodes: Sequence[str], kinds: tuple[str, ...], cases: int, seed: int
) -> list[SuiteTask]:
    from hlotool.conformance.suite import SuiteTask

    return [SuiteTask(backend, opcode, kinds, cases, seed) for opcode in opcodes]


def _journal(tasks: Sequence[SuiteTask]) -> Journal | None:
    """Where finished opcodes are kept; None for a single one."""
    import msgspec

    from hlotool._version import __version__
    from hlotool.cache.fingerprint import digest
    from hlotool.cache.journal import journal_of

    if len(tasks) < 2:
        return None
    return journal_of("conformance", digest(__version__, msgspec.json.encode(tasks)))


def _run(
    tasks: Sequence[SuiteTask],
    limits: dict[str, int],
    journal: Journal | None,
    resume: bool,
    course: Course,
    found: list[TrialRecord],
    notes: list[str],
) -> None:
    """Run all tasks; `found` gets what becomes of their trials, also where the user ends it."""
    from hlotool.conformance.suite import PRELOAD, run_suite
    from hlotool.workers.cores import worker_count
    from hlotool.workers.executor import Limits
    from hlotool.workers.pool import Pool

    jobs = min(worker_count(limits["jobs"]), len(tasks))
    told = course.counting(len(tasks), "opcodes")
    executor: Executor
    with Pool(Limits(jobs, limits["timeout"], limits["memory_limit"]), PRELOAD, tasks[0].backend) as executor:
        course.working()
        run_suite(tasks, executor, journal, resume, _teller(told, found))
    notes += executor.notes
    if journal is not None and journal.problem:
        notes.append(journal.problem)


def _teller(
    told: Callable[[str, str], None], found: list[TrialRecord]
) -> Callable[[SuiteTask, Sequence[TrialRecord]], None]:
    """Keeps what is found, and tells of each opcode that is over and of what is wrong with it."""

    def tell(task: SuiteTask, records: Sequence[TrialRecord]) -> None:
        found.extend(records)
        bad = sum(record.status in ("failed", "crashed") for record in records)
        told(task.opcode, f"{task.opcode}: {bad} failed or crashed" if bad else "")

    return tell


def _saved(found: Sequence[TrialRecord], out: str | os.PathLike[str] | None) -> dict[str, str]:
    """The files that were written, by name of the trial."""
    from hlotool.conformance.suite import save_trial, smallest_failures

    if out is None:
        return {}
    return {trial.name: save_trial(trial, os.fspath(out)) for trial in smallest_failures(found)}


def _record(
    asked: tuple[str, list[str], list[str], int, int],
    known: Description | None,
    found: Sequence[TrialRecord],
    files: dict[str, str],
    end: Ending,
    notes: list[str],
    seconds: float,
) -> ConformanceRecord:
    from collections import Counter

    from hlotool.conformance import freedoms
    from hlotool.conformance.suite import cells_of, smallest_failures
    from hlotool.report.conformance_records import ConformanceRecord
    from hlotool.report.records import versions

    backend, only, types, cases, seed = asked
    counts: dict[str, int] = dict(Counter(trial.status for trial in found))
    taken = sorted({name for trial in found for name in trial.freedoms})
    return ConformanceRecord(
        versions=versions(),
        backend=backend,
        backend_version=known.version if known is not None else "",
        device=known.device if known is not None else "",
        only=only,
        types=types,
        cases=cases,
        seed=seed,
        counts=counts,
        cells=cells_of(found),
        failures=[trial for trial in found if trial.status in ("failed", "crashed")],
        smallest=[trial.name for trial in smallest_failures(found)],
        refusals=[trial for trial in found if trial.status == "refused"],
        freedoms={name: freedoms.meaning(name) for name in taken},
        files=files,
        error=end.error,
        notes=notes,
        exit_code=end.exit_code(_exit_code(counts)),
        seconds=seconds,
    )


def _exit_code(counts: dict[str, int]) -> ExitCode:
    """The gravest wins; where every trial was refused nothing was compared."""
    if counts.get("failed"):
        return ExitCode.MISMATCH
    if counts.get("crashed"):
        return ExitCode.BACKEND_FAILED
    is_compared = counts.get("passed", 0) + counts.get("allowed", 0) > 0
    return ExitCode.AGREE if is_compared else ExitCode.NOTHING_COMPARED
