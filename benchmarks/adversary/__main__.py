"""The command.

python -m benchmarks.adversary --seed N [--count N] [--thorough] [--legal N] [--json FILE] [--only KIND]
                              [--target SPEC]

With `--target aot:v5e` or another one the compiler of that TPU or GPU makes the text after optimisation.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from benchmarks.adversary.cases import Subject, cases, subjects
from benchmarks.adversary.legal import legal
from benchmarks.adversary.measure import ask, write_pair
from benchmarks.adversary.plants import KINDS
from benchmarks.adversary.report import Measured, left_out, missed, table
from benchmarks.adversary.targets import compiled_for

#: Pairs that one command is asked about.
_BATCH = 40


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; 1 where a legal pair is accused."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.adversary", description=__doc__)
    add = parser.add_argument
    add("--seed", type=int, required=True, help="of programs and faults")
    add("--count", type=int, default=200, help="faults [200]")
    add("--thorough", action="store_true", help="ask about missed faults again, with --thorough")
    add("--legal", type=int, default=0, metavar="N", help="measure N legal pairs in place of faults")
    add("--python", action="append", default=[], help="interpreter with another jaxlib; may be repeated")
    add("--json", type=Path, help="write all cases there")
    add("--only", action="append", default=[], choices=list(KINDS), help="kinds of faults")
    add("--families", nargs="*", default=[], help="families of programs")
    add("--keep", type=Path, help="folder for the texts of all cases")
    add("--target", default="", metavar="SPEC", help="backend `aot` and its target, which compiles")
    options = parser.parse_args(arguments)
    folder = options.keep or Path(tempfile.mkdtemp(prefix="adversary-"))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        if options.legal:
            pythons = options.python or [sys.executable]
            return legal(folder, options.seed, options.legal, pythons, options.json)
        return _faults(folder, options)
    finally:
        if options.keep is None:
            shutil.rmtree(folder, ignore_errors=True)


def _faults(folder: Path, options: argparse.Namespace) -> int:
    start = time.monotonic()
    lost: Counter[str] = Counter()
    dump = folder / f"dump-{options.seed}"
    python = options.python[0] if options.python else sys.executable
    found = subjects(dump, options.seed, python=python, only=options.families or None)
    shutil.rmtree(dump)
    if options.target:
        found = compiled_for(options.target, found, folder / "compiled")
    found = _healthy(found, folder / "healthy")
    drawn = []
    for number, case in enumerate(cases(found, options.seed, options.count, lost, options.only or None)):
        name = f"module_{number:04d}.{case.subject.name.replace('.', '_s')}"
        batch = folder / f"batch{number // _BATCH:03d}"
        write_pair(batch, name, case.before, case.after, case.subject)
        drawn.append((name, case, batch))
    seconds = time.monotonic() - start
    print(f"{len(found)} programs, {len(drawn)} faults with witness in {seconds:.0f} s", flush=True)
    rows = []
    for batch in sorted({batch for _, _, batch in drawn}):
        said = ask(batch)
        mine = [
            Measured(name, case, batch / f"{name}.before_optimizations.txt", said[name])
            for name, case, folder in drawn
            if folder == batch
        ]
        rows += mine
        late = [row for row in mine if not row.said.seen]
        if options.thorough and late:
            names = "|".join(row.name.split(".")[0] for row in late)
            again = ask(batch, "--thorough", only=f"^({names})")
            for row in late:
                row.again = again[row.name]
        if options.json:
            options.json.write_text(json.dumps([row.to_dict() for row in rows], indent=1))
    print("\n".join([*table(rows), *missed(rows), *left_out(lost)]))
    print(f"{time.monotonic() - start:.0f} s")
    return 0


def _healthy(found: list[Subject], folder: Path) -> list[Subject]:
    """The programs that are not accused without a fault: of the others a verdict says nothing."""
    names = {subject.name.replace(".", "_s"): subject for subject in found}
    for number, (name, subject) in enumerate(names.items()):
        write_pair(folder, f"module_{number:04d}.{name}", subject.before, subject.after, subject)
    said = {name.split(".", 1)[1]: answer for name, answer in ask(folder).items()}
    print(f"without a fault: {dict(Counter(answer.verdict for answer in said.values()))}")
    for name, answer in said.items():
        if answer.code != 0:
            print(
                f"left out, for without a fault it is {answer.verdict}: {name}: {answer.reason[:120]}",
                flush=True,
            )
    return [subject for name, subject in names.items() if said[name].code == 0]


if __name__ == "__main__":
    raise SystemExit(main())
