"""Does `run` see one wrong PTX instruction? Mutants of compiled kernels, planted in their dumps.

    python -m benchmarks.gpu_ptx.dumps --python PYTHON --seed 1 --out FOLDER
    python -m benchmarks.gpu_ptx.mutants --dumps FOLDER --seed 1 --count 300 [--json FILE]

An opcode, a constant, a register, a predicate, a comparison, a rounding, a type, an offset, a barrier, a lane
is another one, or an instruction is missing. Whether that changes a legal result is decided without the judge
(`truth.py`); what no assembler would take is drawn again. Every one that is not seen is printed.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

from benchmarks.gpu_ptx.dumps import verdicts
from benchmarks.gpu_ptx.ptx_mutants import mutants
from benchmarks.gpu_ptx.truth import NotPtx, Truth, truths

#: Verdicts that say that something is wrong, or that it did not come to its end.
_SEEN = ("wrong", "structural", "crashed", "timeout")
#: Mutants that one call of `run` is given.
_AT_ONCE = 20


@dataclass
class Row:
    """A fault.

    Attributes:
        program: the dump.
        kind: of the fault.
        what: it is.
        change: of a legal result; see `Truth.change`.
        verdict, reason: of `run`.
    """

    program: str
    kind: str
    what: str
    change: str
    verdict: str = ""
    reason: str = ""

    @property
    def seen(self) -> bool:
        """Whether `run` says that something is wrong."""
        return self.verdict in _SEEN


#: Plants a fault in a copy of a dump: its kind, and what it is; None where there is no place for one.
Plant = Callable[[Path, random.Random], "tuple[str, str] | None"]


def planted(
    folders: list[Path], seed: int, count: int, programs: int, work: Path, plant: Plant
) -> Iterator[tuple[Row, Path]]:
    """Faults in some of the dumps in turn, each in a copy below `work`."""
    rng = random.Random(seed)
    known = list(islice(truths(rng.sample(folders, len(folders)), seed), programs))
    number = tries = 0
    while number < count and tries < 20 * count:
        folder, truth = known[tries % len(known)]
        tries += 1
        target = work / f"{number:04}"
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(folder, target)
        fault = plant(target, rng)
        change = "" if fault is None else _change(truth, target)
        if fault is None or change is None:
            shutil.rmtree(target)
            continue
        yield Row(folder.name, fault[0], fault[1], change), target
        number += 1


def _change(truth: Truth, target: Path) -> str | None:
    try:
        return truth.change(target)
    except NotPtx:
        return None


def judged(rows: list[tuple[Row, Path]], work: Path) -> None:
    """Ask `run` for the verdicts on faults."""
    for begin in range(0, len(rows), _AT_ONCE):
        some = rows[begin : begin + _AT_ONCE]
        found = {
            Path(str(record["path"])).parent.name: record
            for record in verdicts([str(target) for _, target in some], work / "record.json")
        }
        for row, target in some:
            record = found.get(target.name, {"verdict": "no row"})
            row.verdict = str(record["verdict"])
            row.reason = str(record.get("reason") or record.get("error") or "")[:300]
        print(f"{begin + len(some)} of {len(rows)} judged", file=sys.stderr)


def report(rows: list[Row]) -> None:
    """Print a table by kind, and what was not seen."""
    print("| fault | planted | change a legal result | seen | by value | seen |\n|---|---|---|---|---|---|")
    for kind in [*sorted({row.kind for row in rows}), ""]:
        of_kind = [row for row in rows if kind in ("", row.kind)]
        changing = [row for row in of_kind if row.change]
        by_value = [row for row in changing if row.change == "value"]
        counts = [len(of_kind), len(changing), sum(r.seen for r in changing)]
        counts += [len(by_value), sum(r.seen for r in by_value)]
        print(f"| {kind or 'all'} | {' | '.join(map(str, counts))} |")
    print(f"in {len({row.program for row in rows})} programs")
    for row in rows:
        if row.change and not row.seen:
            print(f"not seen: {row.program}: {row.kind}: {row.what}: {row.verdict} {row.reason}")
        if not row.change and row.seen:
            print(f"seen, and changed nothing here: {row.program}: {row.kind}: {row.what}: {row.reason}")


def _mutate(target: Path, rng: random.Random) -> tuple[str, str] | None:
    """Change an instruction of one of the dump's texts."""
    path = rng.choice(sorted(target.glob("*.ptx")))
    mutant = next(mutants(path.read_text(), rng), None)
    if mutant is None:
        return None
    path.write_text(mutant.text)
    return mutant.kind, f"{path.name}:{mutant.line}: {mutant.before} -> {mutant.after}"


def measure(plant: Plant, description: str | None, count: int) -> int:
    """What a command that plants faults of its own does."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--dumps", type=Path, required=True, help="of benchmarks.gpu_ptx.dumps")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=count)
    parser.add_argument("--programs", type=int, default=40, help="at most")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--keep", type=Path, help="folder for the dumps with faults")
    given = parser.parse_args()
    folders = sorted(path for path in given.dumps.iterdir() if path.is_dir())
    with tempfile.TemporaryDirectory() as name:
        work = given.keep or Path(name)
        rows = list(planted(folders, given.seed, given.count, given.programs, work, plant))
        judged(rows, work)
    if given.json:
        given.json.write_text(json.dumps([asdict(row) for row, _ in rows], indent=1))
    report([row for row, _ in rows])
    return 0


if __name__ == "__main__":
    sys.exit(measure(_mutate, __doc__, 300))
