"""Programs by others: what became of each, and which of them are to be looked into."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from hlotool.blame.reduction.case import case_of, write_case
from hlotool.errors import BackendCrashed, BackendTimeout
from hlotool.interface.report.lab_records import FailureRecord, FaultRecord, Kind
from hlotool.interface.report.next_command import verification
from hlotool.interface.report.records import CauseRecord
from hlotool.interface.report.triage_records import Outcome, TriagedRecord, TriageRecord
from hlotool.judge.failures import Signature, signature_of_death
from hlotool.judge.verdicts import DIFFERING, Verdict
from hlotool.lab.readmes import accused_in, readme_of
from hlotool.runs.program import load_program
from hlotool.runs.records import REALITY, ModuleRecord
from hlotool.runs.task import Task
from hlotool.runs.trials import trials
from hlotool.system.files import digest

#: What a worker calls to write a program that failed, with its arguments.
WRITE = "hlotool.lab.collection:write_failing"

_OUTCOMES: dict[Verdict, Outcome] = {
    Verdict.IDENTICAL: "same",
    **dict.fromkeys(
        (Verdict.AGREE, Verdict.ROUNDING, Verdict.DIFFERS, Verdict.RANGE, Verdict.SEMANTICS), "legal"
    ),
    Verdict.UNSTABLE: "sensitive",
    Verdict.NOT_COMPILED: "crashed",
    **dict.fromkeys(DIFFERING, "wrong"),
}
#: Of a backend in question a death is an answer, too; in the stages of a dump it is our interpreter's.
_DEATHS = (Verdict.CRASHED, Verdict.TIMEOUT)


def as_given(task: Task) -> Task:
    """The task of the program as the frontend gave it, which a backend is to compile; captures stay."""
    module = task.module
    stages = (*module.stages, *module.others)[:1]
    return Task(replace(module, stages=stages, others=(), companions=()), task.options)


@dataclass(frozen=True, slots=True)
class Judged:
    """A program and its comparisons, at least one.

    Attributes:
        task: the program.
        rows: as `run` has them.
        is_on_backend: a backend is in question; else the stages of a dump are.
    """

    task: Task
    rows: Sequence[ModuleRecord]
    is_on_backend: bool

    @property
    def row(self) -> ModuleRecord:
        """The gravest comparison."""
        return max(self.rows, key=lambda row: row.verdict.rank)

    @property
    def outcome(self) -> Outcome:
        """What became of it, before its failure was looked into."""
        if self.is_on_backend and self.row.verdict in _DEATHS:
            return "crashed"
        return _OUTCOMES.get(self.row.verdict, "unjudged")

    @property
    def fails(self) -> bool:
        """Whether it is to be looked into; the same programs under other names once."""
        return self.outcome in ("wrong", "crashed") and not self.row.twin_of


@dataclass(frozen=True, slots=True)
class Failing:
    """A program that failed, to be written.

    Attributes:
        task: the program.
        row: how it failed.
        path: of the file; the arguments are written beside it.
    """

    task: Task
    row: ModuleRecord
    path: str


def write_failing(question: Failing) -> str:
    """Write the first stage of a program, as HLO, on the arguments on which it failed; called in a worker."""
    task, given = question.task, question.row.inputs
    options = task.options
    if given is not None:
        options = msgspec.structs.replace(
            options,
            inputs=given.file or options.inputs,
            input_range=given.input_range or options.input_range,
        )
    stage = (*task.module.stages, *task.module.others)[0]
    program = load_program(task.module, stage, options.reference)
    trial = next(trials(task.module, program.module, options, program.runner.copies))
    write_case(case_of(program, trial.arguments), question.path)
    return question.path


def failure_of(index: int, judged: Judged, folder: Path) -> FailureRecord:
    """The failure of a program, as the triage of `fuzz` takes it; its file is named by what it holds."""
    row, options = judged.row, judged.task.options
    name = digest(row.path, row.name, options.backend, row.reason)[:16]
    return FailureRecord(
        index=index,
        kind=_kind(row.verdict),
        failure=_signature(row),
        reason=row.reason,
        backend=options.backend,
        reference=options.reference,
        origin=row.path,
        program=str(folder / "raw" / f"{name}.hlo"),
    )


def _kind(verdict: Verdict) -> Kind:
    if verdict is Verdict.TIMEOUT:
        return "hang"
    return "wrong" if verdict in DIFFERING else "crashed"


def _signature(row: ModuleRecord) -> Signature:
    if row.verdict in DIFFERING:
        return row.signature.smaller()
    kind = BackendTimeout if row.verdict is Verdict.TIMEOUT else BackendCrashed
    return signature_of_death(kind("", row.reason or row.verdict.value))


def is_of_stages(judged: Judged) -> bool:
    """Whether what is wrong is a stage, or what a backend makes of one; not what was once returned."""
    return judged.row.stage_tested != REALITY


def triaged(programs: Iterable[Judged], faults: Sequence[FaultRecord]) -> Iterator[TriagedRecord]:
    """What became of each program, those under other names with the answer of the first."""
    by_program = {fault.index: fault for fault in faults}
    first: dict[str, TriagedRecord] = {}
    for index, judged in enumerate(programs):
        row = judged.row
        fault = by_program.get(index)
        found = TriagedRecord(
            path=row.path,
            name=row.name,
            outcome=_after_all(judged.outcome, fault),
            verdict=row.verdict,
            reason=row.reason,
            fault=(fault.number or fault.duplicate_of) if fault is not None else 0,
            backend=judged.task.options.backend if judged.is_on_backend else "",
            accused=accused_in(readme_of(judged.task)),
            twin_of=row.twin_of,
        )
        if row.twin_of and (like := first.get(row.twin_of)) is not None:
            found = msgspec.structs.replace(found, outcome=like.outcome, fault=like.fault)
        first.setdefault(row.path, found)
        yield found


def _after_all(outcome: Outcome, fault: FaultRecord | None) -> Outcome:
    """The outcome of a program whose failure was looked into."""
    if fault is None or fault.status not in ("unconfirmed", "excused"):
        return outcome
    # A death that is not one in a fresh process was that of the reference, or of the machine.
    return "doubtful" if outcome == "wrong" else "unjudged"


def causes_of_faults(record: TriageRecord) -> list[CauseRecord]:
    """What the page shows above the list of comparisons: the faults, and what else does not agree.

    The faults come last, and of these the most frequent.
    """
    rows: dict[int, list[int]] = {}
    at = {(p.path, p.name): p for p in record.programs}
    for number, row in enumerate(record.run.modules):
        program = at.get((row.path, row.name))
        if program is not None and program.fault:
            rows.setdefault(program.fault, []).append(number)
    shown = {number for of_fault in rows.values() for number in of_fault}
    others = [cause for cause in record.run.causes if not shown.intersection(cause.rows)]
    found = [
        _cause_of(fault, rows[fault.number], record) for fault in record.numbered if fault.number in rows
    ]
    return [*others, *sorted(found, key=lambda cause: cause.count)]


def _cause_of(fault: FaultRecord, rows: list[int], record: TriageRecord) -> CauseRecord:
    modules = [record.run.modules[number] for number in rows]
    known = f" (known: {fault.known}, {fault.link})" if fault.known else ""
    return CauseRecord(
        id=digest("fault", fault.key)[:16],
        kind=modules[0].verdict.value,
        what=f"{fault.title}{known}",
        signature=Signature(kind=fault.kind, words=fault.key),
        pass_name=fault.pass_name,
        count=len(rows),
        programs=len({row.twin_of or row.path for row in modules}),
        rows=rows,
        example=modules[0].name,
        file=modules[0].path,
        next=verification(fault.bundle, record.backend),
    )
