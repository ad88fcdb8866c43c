"""`conformance`: does a backend compute what every opcode must, on every element type?"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from hlotool.errors import BackendFailed, BackendUnavailable, ExitCode, UsageError
from hlotool.interface.api.calls import Accompanied, Ending, ending
from hlotool.interface.api.results import FindingsResult
from hlotool.runs.options import declared, parsers
from hlotool.runs.options.declared import Arguments, Folder, Words, option, takes
from hlotool.runs.options.replaying import Execution
from hlotool.runs.options.shared import Resume

if TYPE_CHECKING:
    from hlotool.backends.registry import Description
    from hlotool.interface.report.lab_records import CellRecord, ConformanceRecord, TrialRecord
    from hlotool.lab.conformance.suite import SuiteTask
    from hlotool.system.cache import Journal
    from hlotool.system.executor import Executor


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


class _Tried(Arguments, group="what is tried"):
    backend: str = option(
        "xla, xla:gpu, pjrt:/path/plugin.so, cuda-emu, … [xla]",
        default="xla",
        flags=("--backend", "--test"),
        metavar="BACKEND",
    )
    only: Words = option("these opcodes [all]", default=(), parse=declared.words, metavar="OPCODE,...")
    types: Words = option("element types [all]", default=(), parse=declared.words, metavar="TYPE,...")
    cases: int = option("random cases for each opcode [30]", default=30, parse=parsers.executions)
    seed: int = option("of random cases [0]", default=0, parse=parsers.seed)
    out: Folder = option("write the smallest failure of each opcode and element type there", default=None)


class ConformanceArguments(_Tried, Execution, Resume, Accompanied):
    """What `conformance` takes, and `hlotool conformance`."""

    timeout: float = option(doc="seconds that the trials of an opcode may take", default=300.0)


@takes(ConformanceArguments)
def conformance(asked: ConformanceArguments) -> ConformanceResult:
    """Try every opcode on a backend: all cases of the specs, and random ones that the reference judges.

    Raises:
        UsageError: no such backend, opcode or element type, an impossible argument.
        BackendUnavailable: something that the backend needs is missing here.
    """
    start = time.perf_counter()
    from hlotool.lab.conformance.suite import with_reasons

    opcodes, kinds = _opcodes(asked.only), _types(asked.types)
    found: list[TrialRecord] = []
    notes: list[str] = []
    known: Description | None = None
    journal: Journal | None = None
    with ending(asked.course) as end:
        known = _described(asked.backend)
        tasks = _tasks(asked.backend, opcodes, kinds, asked.cases, asked.seed)
        journal = _journal(tasks)
        _run(tasks, asked, journal, found, notes)
    if end.problem is None and not end.interrupted and journal is not None:
        asked.course.forget(journal.remove)
    found = with_reasons(sorted(found, key=lambda trial: opcodes.index(trial.opcode)))
    record = _record(asked, known, found, _saved(found, asked.out), end, notes, time.perf_counter() - start)
    return ConformanceResult(record)


def _opcodes(given: Sequence[str]) -> list[str]:
    """Those that were asked for, in the order of the table."""
    from hlotool.ir.opcodes import OPCODES
    from hlotool.system.user_input import did_you_mean

    for name in given:
        if name not in OPCODES:
            raise UsageError(f"there is no opcode {name!r}{did_you_mean(name, OPCODES)}")
    return [opcode for opcode in OPCODES if not given or opcode in given]


def _types(given: Sequence[str]) -> tuple[str, ...]:
    from hlotool.ir.types import ELEMENT_TYPES
    from hlotool.system.user_input import did_you_mean

    for name in given:
        if name not in ELEMENT_TYPES:
            raise UsageError(f"there is no element type {name!r}{did_you_mean(name, ELEMENT_TYPES)}")
    return tuple(given)


def _described(backend: str) -> Description:
    """Version and device of the backend, which is loaded in a process of its own."""
    import msgspec

    from hlotool.backends.registry import Description, get_backend
    from hlotool.system.executor import Limits
    from hlotool.system.pool import START_LIMIT, Pool

    get_backend(backend)  # a mistake of the user's is reported at once
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
    from hlotool.lab.conformance.suite import SuiteTask

    return [SuiteTask(backend, opcode, kinds, cases, seed) for opcode in opcodes]


def _journal(tasks: Sequence[SuiteTask]) -> Journal | None:
    """Where finished opcodes are kept; None for a single one."""
    import msgspec

    from hlotool._version import __version__
    from hlotool.system.cache import journal_of
    from hlotool.system.files import digest

    if len(tasks) < 2:
        return None
    return journal_of("conformance", digest(__version__, msgspec.json.encode(tasks)))


def _run(
    tasks: Sequence[SuiteTask],
    asked: ConformanceArguments,
    journal: Journal | None,
    found: list[TrialRecord],
    notes: list[str],
) -> None:
    """Run all tasks; `found` gets what becomes of their trials, also where the user ends it."""
    from hlotool.lab.conformance.suite import PRELOAD, run_suite
    from hlotool.system.executor import Limits
    from hlotool.system.pool import Pool
    from hlotool.system.resources import worker_count

    jobs = min(worker_count(asked.jobs), len(tasks))
    executor: Executor
    limits = Limits(jobs, asked.timeout, asked.memory_limit)
    with (
        asked.course.counting(len(tasks), "opcodes") as told,
        Pool(limits, PRELOAD, tasks[0].backend) as executor,
    ):
        asked.course.working()
        run_suite(tasks, executor, journal, asked.resume, _teller(told, found))
    notes += executor.notes
    if journal is not None and journal.problem:
        notes.append(journal.problem)


def _teller(
    told: Callable[[str, str], None], found: list[TrialRecord]
) -> Callable[[SuiteTask, Sequence[TrialRecord]], None]:
    """Keeps what is found, and reports each opcode that is done and of what is wrong with it."""

    def tell(task: SuiteTask, records: Sequence[TrialRecord]) -> None:
        found.extend(records)
        bad = sum(record.status in ("failed", "crashed") for record in records)
        told(task.opcode, f"{task.opcode}: {bad} failed or crashed" if bad else "")

    return tell


def _saved(found: Sequence[TrialRecord], out: str | None) -> dict[str, str]:
    """The files that were written, by name of the trial."""
    from hlotool.lab.conformance.suite import save_trial, smallest_failures

    if out is None:
        return {}
    return {trial.name: save_trial(trial, out) for trial in smallest_failures(found)}


def _record(
    asked: ConformanceArguments,
    known: Description | None,
    found: Sequence[TrialRecord],
    files: dict[str, str],
    end: Ending,
    notes: list[str],
    seconds: float,
) -> ConformanceRecord:
    from collections import Counter

    from hlotool.interface.report.lab_records import ConformanceRecord
    from hlotool.interface.report.records import versions
    from hlotool.lab.conformance import judging
    from hlotool.lab.conformance.suite import cells_of, smallest_failures

    counts: dict[str, int] = dict(Counter(trial.status for trial in found))
    taken = sorted({name for trial in found for name in trial.freedoms})
    return ConformanceRecord(
        versions=versions(),
        backend=asked.backend,
        backend_version=known.version if known is not None else "",
        device=known.device if known is not None else "",
        only=list(asked.only),
        types=list(asked.types),
        cases=asked.cases,
        seed=asked.seed,
        counts=counts,
        cells=cells_of(found),
        failures=[trial for trial in found if trial.status in ("failed", "crashed")],
        smallest=[trial.name for trial in smallest_failures(found)],
        refusals=[trial for trial in found if trial.status == "refused"],
        freedoms={name: judging.meaning(name) for name in taken},
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
