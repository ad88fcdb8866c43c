"""Pairs of one program, or faults of one kind, found and judged."""

from __future__ import annotations

import hashlib
import re
import time
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.verdicts.captured import captured_pairs
from benchmarks.verdicts.faults import PlantedFault, Planter, fault_subjects
from benchmarks.verdicts.inputs import Case
from benchmarks.verdicts.judge import PairVerdict, judged
from benchmarks.verdicts.legal import Failure, Pair, legal_pairs
from benchmarks.verdicts.programs import subjects
from benchmarks.verdicts.records import FaultRecord, LegalRecord, Record
from benchmarks.verdicts.report import is_alarm, is_false_alarm
from benchmarks.verdicts.runs import Leaves, Runs
from hlotool.backends.numpy import NumpyBackend
from hlotool.ir.module import Module
from hlotool.lab.faults import CATALOGUE

#: Faults per kind that count, and the most that are tried to get them.
WANTED, TRIED = 44, 140


def legal_records(
    name: str, folder: Path, other_python: str, seed: int = 0, sets: tuple[int, int] = (0, 0)
) -> list[Record]:
    """All pairs of one program, judged; results that are the same bit by bit are judged once."""
    (subject,) = (s for s in subjects(f"^{re.escape(name)}$"))
    found: list[Record] = []
    cost: tuple[float, float] | None = None
    judgements: dict[tuple[Case, bytes], PairVerdict] = {}
    for pair in legal_pairs(subject, Runs(folder / "runs"), other_python, seed, sets):
        record = _record(name, pair, seed)
        if isinstance(pair, Pair):
            cost = cost or _cost(pair.module, pair.case.arguments)
            key = (pair.case, _digest(pair))
            if key not in judgements:
                judgements[key] = _judge_pair(pair, cost)
            record = msgspec.structs.replace(record, judgement=judgements[key])
        found.append(record)
    return found


def _record(name: str, pair: Pair | Failure, seed: int) -> LegalRecord:
    """The record of a pair that is not judged yet, or could not be had."""
    reason = pair.reason if isinstance(pair, Failure) else ""
    record = LegalRecord(name, pair.way, pair.detail, seed, None, reason)
    case = pair.case
    if case is None:
        return record
    return msgspec.structs.replace(
        record,
        seed=case.seed,
        set=case.set,
        kind=case.kind,
        suits_other_backends=case.suits_other_backends,
        is_same_program=isinstance(pair, Pair) and pair.tested is None,
    )


def _digest(pair: Pair) -> bytes:
    """The same for pairs that are the same to the judge: of a program, equal results settle it."""
    sides = [b"|".join(leaf.tobytes() for leaf in side) for side in (pair.expected, pair.actual)]
    is_program = pair.tested is not None and sides[0] != sides[1]
    detail = f"{pair.way} {pair.detail}" if is_program else ""
    return hashlib.sha256(b"|".join([*sides, detail.encode()])).digest()


def _judge_pair(pair: Pair, cost: tuple[float, float]) -> PairVerdict:
    return judged(pair.module, pair.case.arguments, pair.expected, pair.actual, pair.tested, cost)


def _cost(module: Module, arguments: list[Any]) -> tuple[float, float]:
    """Seconds of one run of the reference, the fastest of three, and of planning it."""
    began = time.perf_counter()
    executable = NumpyBackend().compile(module)
    planning = time.perf_counter() - began
    times = []
    for _ in range(3):
        began = time.perf_counter()
        executable.run(arguments)
        times.append(time.perf_counter() - began)
    return min(times), planning


def captured_records(name: str, folder: Path, other_python: str, seed: int = 0) -> list[Record]:
    """Everything that XLA returned for one program, judged beside its dump."""
    (subject,) = (s for s in subjects(f"^{re.escape(name)}$"))
    return list(captured_pairs(subject, Runs(folder / "runs"), other_python, seed))


def fault_records(name: str, folder: Path, other_python: str = "", seed: int = 0) -> list[Record]:
    """Faults of one kind, judged, until there are enough that count."""
    kind = next(k for k in CATALOGUE if k.name == name)
    planter = Planter(Runs(folder / "runs"), folder / "spreads", seed)
    found: list[Record] = []
    counting = 0
    for number, fault in enumerate(planter.faults(kind, fault_subjects())):
        found.append(_fault_record(fault))
        counting += fault.counts
        if counting == WANTED or number == TRIED:
            break
    return found


def _fault_record(fault: PlantedFault) -> FaultRecord:
    def judge(actual: Leaves, tested: Module | None) -> PairVerdict:
        return judged(fault.module, fault.arguments, fault.expected, actual, tested)

    return FaultRecord(
        fault.kind.name,
        fault.kind.pattern,
        fault.subject.name,
        fault.stage,
        str(fault.site),
        fault.seed,
        fault.is_deep,
        fault.at_output,
        min(fault.ratio, 1e300),
        fault.counts,
        judge(fault.actual, fault.planted),
        None if isinstance(fault.on_xla, str) else judge(fault.on_xla, None),
        fault.on_xla if isinstance(fault.on_xla, str) and fault.counts else "",
    )


def said(records: list[Record]) -> str:
    alarms = sum(map(is_false_alarm, records))
    missed = sum(isinstance(r, FaultRecord) and r.counts and not is_alarm(r.as_program) for r in records)
    return f", {alarms} false alarms" * (alarms > 0) + f", {missed} missed" * (missed > 0)
