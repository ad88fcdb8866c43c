"""What each threshold of the verdicts is worth: halved and doubled, which verdicts change?

    python -m benchmarks.verdicts.thresholds [--only REGEX] [--legal N] [--per-kind N] [--folder FOLDER]

Judged are the pairs of `benchmarks.verdicts`, which ran before in the same `--folder`: legal pairs that took
an ensemble and one of each program that agrees without being identical, evenly chosen; of each kind of
planted fault the first ones that count. A threshold stands well where neither half nor twice of it accuses a
legal pair or misses a fault; where one does, that is the side on which the edge is near.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from benchmarks.common.units import read_records
from benchmarks.verdicts.faults import Planter, fault_subjects
from benchmarks.verdicts.judge import PairVerdict, judged
from benchmarks.verdicts.legal import Pair, legal_pairs
from benchmarks.verdicts.programs import subjects
from benchmarks.verdicts.records import DECODER, LegalRecord
from benchmarks.verdicts.report import is_alarm
from benchmarks.verdicts.runs import Leaves, Runs
from hlotool.facts import thresholds
from hlotool.facts.thresholds import Threshold
from hlotool.inputs.adversarial.sets import PLAIN as PLAIN_SET
from hlotool.ir.module import Module
from hlotool.lab.faults import CATALOGUE

NAMES = [
    name
    for name, value in vars(thresholds).items()
    if isinstance(value, Threshold)
    and value.table not in (thresholds.LOCATOR, thresholds.EXACT, thresholds.ARBITER)
]
FACTORS = (0.5, 2.0)


@dataclass(frozen=True, eq=False)
class Question:
    """A pair to judge; `pattern` is that of a planted fault, None where the pair is legal."""

    is_fault: bool
    pattern: str | None
    module: Module
    arguments: list[Any]
    expected: Leaves
    actual: Leaves
    tested: Module | None

    def judged(self) -> PairVerdict:
        """The verdict on it."""
        return judged(self.module, self.arguments, self.expected, self.actual, self.tested)


@dataclass(frozen=True)
class Outcome:
    """What is said of all questions: verdicts in their order, and what counts."""

    verdicts: tuple[str, ...]
    alarms: int
    unstable: int
    missed: int
    named: int
    members: int


#: What the worker processes judge; they are forked when it is known.
_QUESTIONS: list[Question] = []


def legal_questions(folder: Path, other_python: str) -> Iterator[Question]:
    """Legal pairs, from what an earlier run of `benchmarks.verdicts` kept."""
    runs = Runs(folder / "runs")
    wanted = dict.fromkeys(_open_pairs(folder / "legal.jsonl"))
    for name in dict.fromkeys(unit for unit, *_ in wanted):
        (subject,) = subjects(f"^{re.escape(name)}$")
        seen: set[bytes] = set()
        for pair in legal_pairs(subject, runs, other_python):
            if isinstance(pair, Pair) and (name, pair.way, pair.detail, pair.case.seed) in wanted:
                bits = b"|".join(leaf.tobytes() for leaf in pair.actual)
                if pair.tested is not None or bits not in seen:
                    seen.add(bits)
                    sides = pair.expected, pair.actual, pair.tested
                    yield Question(False, None, pair.module, pair.case.arguments, *sides)


def fault_questions(folder: Path, per_kind: int) -> Iterator[Question]:
    """Planted faults that count."""
    planter = Planter(Runs(folder / "runs"), folder / "spreads")
    programs = fault_subjects()
    for kind in CATALOGUE:
        count = 0
        for fault in planter.faults(kind, programs):
            if fault.counts and count < per_kind:
                count += 1
                sides = fault.expected, fault.actual, fault.planted
                yield Question(True, kind.pattern or "", fault.module, fault.arguments, *sides)
            if count == per_kind:
                break


def _open_pairs(path: Path) -> Iterator[tuple[str, str, str, int]]:
    """Legal pairs that took an ensemble, and one of each program that agrees."""
    agreeing: set[str] = set()
    for record in read_records(path, DECODER):
        if isinstance(record, LegalRecord) and record.judgement is not None and record.set == PLAIN_SET:
            is_first = record.judgement.verdict == "agree" and record.unit not in agreeing
            if record.judgement.members or is_first:
                agreeing.add(record.unit)
                yield record.unit, record.way, record.detail, record.seed


def asked(name: str, factor: float) -> Outcome:
    """What is said of all questions with a threshold so many times as large."""
    usual = getattr(thresholds, name) if name else None
    if usual is not None:
        setattr(thresholds, name, replace(usual, value=usual.value * factor))
    try:
        said = [question.judged() for question in _QUESTIONS]
    finally:
        if usual is not None:
            setattr(thresholds, name, usual)
    legal = [v for q, v in zip(_QUESTIONS, said) if not q.is_fault]
    faults = [(q, v) for q, v in zip(_QUESTIONS, said) if q.is_fault]
    return Outcome(
        tuple(v.verdict for v in said),
        sum(map(is_alarm, legal)),
        sum(v.verdict == "unstable" for v in legal),
        sum(not is_alarm(v) for _, v in faults),
        sum(bool(q.pattern) and q.pattern in v.patterns for q, v in faults),
        sum(v.members for v in said),
    )


def _header(usual: Outcome) -> Iterator[str]:
    legal = sum(not question.is_fault for question in _QUESTIONS)
    yield f"{legal} legal pairs, {len(_QUESTIONS) - legal} planted faults. All thresholds as they are give"
    yield f"{usual.alarms} false alarms, {usual.missed} missed, {usual.unstable} unstable,"
    yield f"{usual.named} faults called by their pattern, {usual.members} members of ensembles."
    yield ""
    columns = "alarms, missed, unstable | changed | named | members"
    yield f"| threshold | value | half: {columns} | twice: {columns} |"
    yield f"|{'---|' * 10}"


def _row(name: str, usual: Outcome, found: list[Outcome]) -> str:
    cells = []
    for outcome in found:
        changed = sum(a != b for a, b in zip(usual.verdicts, outcome.verdicts))
        counts = f"{outcome.alarms}, {outcome.missed}, {outcome.unstable}"
        cells.append(f"{counts} | {changed} | {outcome.named - usual.named:+d} | {outcome.members}")
    return f"| {name} | {getattr(thresholds, name).value:g} | {' | '.join(cells)} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", default="", help="regular expression for names of thresholds")
    parser.add_argument("--legal", type=int, default=70, help="legal pairs at most")
    parser.add_argument("--per-kind", type=int, default=1, help="planted faults of each kind")
    parser.add_argument("--other-python", default="", help="as for benchmarks.verdicts")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "hlotool-verdicts")
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    legal = list(legal_questions(arguments.folder, arguments.other_python))
    _QUESTIONS.extend(legal[:: max(1, -(-len(legal) // arguments.legal))])
    _QUESTIONS.extend(fault_questions(arguments.folder, arguments.per_kind))
    names = [name for name in NAMES if re.search(arguments.only, name, re.IGNORECASE)]
    with ProcessPoolExecutor(arguments.processes, get_context("fork")) as pool:
        first = pool.submit(asked, "", 1.0)
        futures = {name: [pool.submit(asked, name, factor) for factor in FACTORS] for name in names}
        usual = first.result()
        print("\n".join(_header(usual)), flush=True)
        for name in names:
            print(_row(name, usual, [future.result() for future in futures[name]]), flush=True)


if __name__ == "__main__":
    sys.exit(main())
