"""A whole suite on a backend: worker processes run the trials, and one that dies costs one trial.

tasks of all opcodes ─► workers ─► records ─► cells
                          │ dies
                          └─► the two halves of its task, until a single trial is left
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from hlotool.cache.journal import Journal
from hlotool.conformance.running import died
from hlotool.conformance.task import SuiteTask
from hlotool.errors import BackendFailed
from hlotool.ir.types import ELEMENT_TYPES
from hlotool.report.conformance_records import STATUSES, CellRecord, ExaminedRecord, TrialRecord
from hlotool.workers.executor import Done, Executor

_FUNCTION = "hlotool.conformance.task:examine"

#: What a worker imports before its first task.
PRELOAD = ("hlotool.conformance.task",)


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
