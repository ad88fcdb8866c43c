"""A whole suite on a backend: workers run the trials, one that dies costs one trial; a trial as files."""

from __future__ import annotations

import os
import re
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from hlotool.backends.registry import get_backend
from hlotool.errors import BackendFailed
from hlotool.inputs.given import npz_bytes
from hlotool.interface.report.lab_records import (
    STATUSES,
    CellRecord,
    ExaminedRecord,
    TrialRecord,
    arguments_file,
)
from hlotool.ir.types import ELEMENT_TYPES
from hlotool.lab.conformance.running import died, ends_the_process, tried
from hlotool.lab.conformance.trials import Trial, trial_named, trials
from hlotool.system.cache import Journal
from hlotool.system.executor import Done, Executor
from hlotool.system.paths import write_file, writing


@dataclass(frozen=True, slots=True)
class SuiteTask:
    """Trials of one opcode.

    Attributes:
        backend: as the command line names it.
        opcode: of the table of opcodes.
        kinds: element types of interest; empty for all.
        cases: random trials.
        seed: of these.
        first: number of the first trial that is to be run, from 0.
        last: number of the one after the last; None for all that there are.
    """

    backend: str
    opcode: str
    kinds: tuple[str, ...] = ()
    cases: int = 0
    seed: int = 0
    first: int = 0
    last: int | None = None

    def trials(self) -> list[Trial]:
        """What it says to run."""
        every = list(trials(self.opcode, frozenset(self.kinds), self.cases, self.seed))
        return every[self.first : self.last]

    def halves(self) -> Iterator[SuiteTask]:
        """Two tasks that do the same, of at least two trials each or of one; none where there is but one."""
        count = len(self.trials())
        if count > 1:
            middle = self.first + count // 2
            yield replace(self, last=middle)
            yield replace(self, first=middle, last=self.first + count)


def examine(task: SuiteTask) -> ExaminedRecord:
    """Run the trials of a task on its backend; called in a worker process, because a backend may die.

    Raises:
        UsageError: no such backend, or not with these options.
        BackendUnavailable: something that the backend needs is missing here.
        BackendFailed: this process is of no more use to the backend.
    """
    chosen, backend = task.trials(), get_backend(task.backend)
    try:
        return ExaminedRecord(trials=list(tried(chosen, backend)))
    except Exception as error:
        if ends_the_process(error):
            raise
        # What else a backend raises is part of the records.
        return ExaminedRecord(trials=[], fault=traceback.format_exc())


_FUNCTION = "hlotool.lab.conformance.suite:examine"

#: What a worker imports before its first task.
PRELOAD = ("hlotool.lab.conformance.suite",)


# tasks of all opcodes ─► workers ─► records ─► cells
#                           │ dies
#                           └─► the two halves of its task, until a single trial is left


def run_suite(
    tasks: Sequence[SuiteTask],
    executor: Executor,
    journal: Journal | None,
    resume: bool,
    finished: Callable[[SuiteTask, Sequence[TrialRecord]], None],
) -> None:
    """Run tasks to their end, whatever the backend does to the processes.

    Args:
        tasks: one for each opcode.
        executor: what runs them.
        journal: keeps what is finished; None keeps nothing.
        resume: take what an interrupted run has finished from the journal.
        finished: gets the records of each task that is over, or of a part of it.
    """
    known = journal.read() if journal is not None and resume else {}
    waiting = list(tasks)
    while waiting:
        left = []
        for task in waiting:
            if (kept := known.get(_key(task))) is not None:
                finished(task, msgspec.convert(kept, list[TrialRecord]))
            else:
                left.append(task)
        waiting = []
        for event in executor.run(_FUNCTION, left):
            if not isinstance(event, Done):
                continue
            task = left[event.index]
            records = _records(task, event)
            if records is None:
                waiting += task.halves()
                continue
            if journal is not None:
                journal.add(_key(task), msgspec.to_builtins(records))
            finished(task, records)


def _records(task: SuiteTask, done: Done) -> list[TrialRecord] | None:
    """What became of a task's trials; None where the process died of one of several."""
    if not isinstance(done.value, BackendFailed):
        found = msgspec.msgpack.decode(done.value, type=ExaminedRecord)
        if found.fault:
            raise RuntimeError(f"hlotool itself failed at the trials of {task.opcode}:\n{found.fault}")
        return found.trials
    every = task.trials()
    if len(every) > 1:
        return None
    return [died(trial, done.value) for trial in every]


def _key(task: SuiteTask) -> str:
    """Which trials; the rest of a task is that of the command, which the journal's name says."""
    return f"{task.opcode} {task.first} {task.last}"


def cells_of(records: Iterable[TrialRecord]) -> list[CellRecord]:
    """One for each opcode and element type: opcodes in the order of the records, types in that of HLO."""
    groups: dict[tuple[str, str], list[TrialRecord]] = {}
    for record in records:
        groups.setdefault((record.opcode, record.element_type), []).append(record)
    kinds, opcodes = list(ELEMENT_TYPES), list(dict.fromkeys(opcode for opcode, _ in groups))
    order = sorted(groups, key=lambda c: (opcodes.index(c[0]), kinds.index(c[1]) if c[1] else len(kinds)))
    return [_cell(*place, groups[place]) for place in order]


def _cell(opcode: str, kind: str, records: Sequence[TrialRecord]) -> CellRecord:
    counts: dict[str, Any] = dict(Counter(record.status for record in records))
    freedoms = Counter(name for record in records for name in record.freedoms)
    return CellRecord(
        opcode=opcode,
        element_type=kind,
        status=max((record.status for record in records), key=STATUSES.index),
        freedoms=dict(sorted(freedoms.items())),
        ulps=max(record.ulps for record in records),
        **counts,
    )


def with_reasons(records: Iterable[TrialRecord]) -> list[TrialRecord]:
    """The records; those of programs that hold an operation which fails by itself say so."""
    every = list(records)
    bad = [record for record in every if record.status in ("failed", "crashed")]
    alone = {_place(record) for record in bad if not record.holds}
    reasons = {record.name: sorted(alone & {*record.holds} - {_place(record)}) for record in bad}
    return [msgspec.structs.replace(r, because=reasons[r.name]) if reasons.get(r.name) else r for r in every]


def _place(record: TrialRecord) -> str:
    return f"{record.opcode} {record.element_type}"


def smallest_failures(records: Iterable[TrialRecord]) -> list[TrialRecord]:
    """Of each cell that is not all well, the smallest trial that failed, else that the backend died of."""
    found: dict[tuple[str, str], TrialRecord] = {}
    for record in records:
        if record.status in ("failed", "crashed"):
            cell = record.opcode, record.element_type
            if cell not in found or _size(record) < _size(found[cell]):
                found[cell] = record
    return list(found.values())


def _size(record: TrialRecord) -> tuple[bool, bool, int]:
    return record.status != "failed" or bool(record.because), record.in_company, record.elements


def save_trial(record: TrialRecord, folder: str) -> str:
    """Write the program, and beside it its arguments; returns the path of the program.

    Args:
        record: of the trial; the files are called by its opcode and element type.
        folder: made where there is none.

    Raises:
        UsageError: it cannot be written.
    """
    trial = trial_named(record.name)
    with writing(folder):
        os.makedirs(folder, exist_ok=True)
    name = "-".join(filter(None, (record.opcode, record.element_type)))
    path = os.path.join(folder, f"{name}.hlo")
    about = re.sub(r"\s+", " ", f"{record.name}: {record.title}; {record.message}")
    write_file(path, [f"// {about}\n{trial.module.to_text()}".encode()])
    copies = len(trial.grid)
    write_file(arguments_file(path), [npz_bytes(trial.rows if copies > 1 else trial.rows[0], copies)])
    return path
