"""Can the verdicts be trusted? Legal executions that must not be accused, planted faults that must be found.

    python -m benchmarks.verdicts [legal] [faults] [captured] [--only REGEX] [--limit N] [--seed N]
                                  [--other-python PATH] [--sets N] [--odd-sets N] [--again]

**Legal pairs**: every program of the corpus that XLA runs, on generated inputs: numpy against XLA, XLA at
lower optimisation levels, with passes disabled that change the program, another version of jaxlib; the
program before optimisation against the one after it and after every pass, on numpy; two ways of XLA. Each
of them once more on further sets of inputs (`inputs`). Those with values on which backends may
differ a replay gives to programs on one backend alone: what is said of two backends there stands in a table
of its own, and is no false alarm.

**Planted faults**: every kind of the catalogue in `faults/`, in the programs of the corpus before
optimisation and, a third of them, after it. `truth` says which of them count: those that change a
well-conditioned output by more than ten times what legal executions differ by. That is found without the
judge. Each is judged twice: as a program beside the right one, and, where XLA runs it, by XLA's result alone.

**Captured**: the legal pairs of numpy and XLA once more, as `run` judges them beside a dump of both texts
with `--outputs` (`captured`); only on request.

The same pairs are judged with the fixed tolerances of XLA's own tools.

XLA's results and the verdicts are kept in `--folder`; what is done is not done again. `--again` judges anew.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from benchmarks.common.units import measured
from benchmarks.verdicts.measure import captured_records, fault_records, legal_records, said
from benchmarks.verdicts.programs import subjects
from benchmarks.verdicts.records import DECODER, FaultRecord, Record
from benchmarks.verdicts.report import is_alarm, is_false_alarm, report
from hlotool.lab.faults import CATALOGUE

#: Further sets for each legal pair, and as many of those that a replay runs on one backend alone: with them
#: the whole takes an hour of one core.
SETS = 16, 8


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
        said=said,
    )


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
