"""Can the verdicts be trusted? Legal executions that must not be accused, planted faults that must be found.

    python benchmarks/verdicts.py [legal] [faults] [captured] [--only REGEX] [--limit N] [--seed N]
                                  [--other-python PATH] [--sets N] [--odd-sets N] [--again]

**Legal pairs**: every program of the corpus that XLA runs, on generated inputs: numpy against XLA, XLA at
lower optimisation levels, with passes disabled that change the program, another version of jaxlib; the
program before optimisation against the one after it and after every pass, on numpy; two ways of XLA. Each
of them once more on further sets of inputs (`verdicts_inputs`). Those with values on which backends may
differ a replay gives to programs on one backend alone: what is said of two backends there stands in a table
of its own, and is no false alarm.

**Planted faults**: every kind of the catalogue in `faults/`, in the programs of the corpus before
optimisation and, a third of them, after it. `verdicts_truth` says which of them count: those that change a
well-conditioned output by more than ten times what legal executions differ by. That is found without the
judge. Each is judged twice: as a program beside the right one, and, where XLA runs it, by XLA's result alone.

**Captured**: the legal pairs of numpy and XLA once more, as `run` judges them beside a dump of both texts
with `--outputs` (`verdicts_captured`); only on request.

The same pairs are judged with the fixed tolerances of XLA's own tools.

XLA's results and the verdicts are kept in `--folder`; what is done is not done again. `--again` judges anew.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from units import measured
from verdicts_captured import captured_pairs
from verdicts_faults import PlantedFault, Planter, fault_subjects
from verdicts_inputs import Case
from verdicts_judge import PairVerdict, judged
from verdicts_legal import Failure, Pair, legal_pairs
from verdicts_programs import subjects
from verdicts_records import DECODER, FaultRecord, LegalRecord, Record
from verdicts_report import is_alarm, is_false_alarm, report
from verdicts_runs import Leaves, Runs

from hlotool.backends.numpy import NumpyBackend
from hlotool.ir.module import Module
from hlotool.lab.faults import CATALOGUE

#: Faults per kind that count, and the most that are tried to get them.
WANTED, TRIED = 44, 140

#: Further sets for each legal pair, and as many of those that a replay runs on one backend alone: with them
#: the whole takes an hour of one core.
SETS = 16, 8


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


def _units(part: str, only: str, limit: int | None) -> list[str]:
    names = [k.name for k in CATALOGUE] if part == "faults" else [s.name for s in subjects(only)]
    return [n for n in names if re.search(only, n)][:limit]


_PARTS: dict[str, Callable[..., list[Record]]] = {
    "legal": legal_records,
    "faults": fault_records,
    "captured": captured_records,
}


def run(part: str, names: list[str], arguments: argparse.Namespace) -> Iterator[Record]:
    """Judge what is not judged yet; yields all records of the named units."""
    how = {"folder": arguments.folder, "seed": arguments.seed}
    if part == "legal":
        how["sets"] = (arguments.sets, arguments.odd_sets)
    yield from measured(
        arguments.folder / f"{part}{arguments.seed or ''}.jsonl",
        DECODER,
        names,
        partial(_PARTS[part], other_python=arguments.other_python, **how),
        processes=arguments.processes,
        again=arguments.again,
        said=_said,
    )


def _said(records: list[Record]) -> str:
    alarms = sum(map(is_false_alarm, records))
    missed = sum(isinstance(r, FaultRecord) and r.counts and not is_alarm(r.as_program) for r in records)
    return f", {alarms} false alarms" * (alarms > 0) + f", {missed} missed" * (missed > 0)


def main() -> int:
    """Print the tables; 1 when there is a false alarm or a miss."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="legal|faults|captured", help="the first two by default")
    parser.add_argument("--only", default="", help="regular expression for programs, or kinds of faults")
    parser.add_argument("--limit", type=int, help="so many programs, and kinds, at most")
    parser.add_argument("--other-python", default="", help="interpreter that has another version of jaxlib")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "hlotool-verdicts")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0, help="first one of the inputs, and that of the faults")
    parser.add_argument("--sets", type=int, default=SETS[0], help="further sets for each legal pair")
    parser.add_argument("--odd-sets", type=int, default=SETS[1], help="those that suit one backend alone")
    parser.add_argument("--again", action="store_true", help="judge anew; XLA's results are kept")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    records: list[Record] = []
    for part in arguments.parts or ("legal", "faults"):
        records += run(part, _units(part, arguments.only, arguments.limit), arguments)
    print("\n".join(report(records)))
    alarms = any(map(is_false_alarm, records))
    misses = any(isinstance(r, FaultRecord) and r.counts and not is_alarm(r.as_program) for r in records)
    return int(alarms or misses)


if __name__ == "__main__":
    sys.exit(main())
