"""The command: `python -m benchmarks.adversary --seed N [--count N] [--thorough] [--legal N] [--json FILE] [--only KIND]`."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from benchmarks.adversary.cases import Case, cases, subjects
from benchmarks.adversary.legal import legal
from benchmarks.adversary.measure import Said, ask, write_pair
from benchmarks.adversary.plants import KINDS

#: Pairs that one command is asked about.
_BATCH = 40


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and say how many were missed or accused."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.adversary", description=__doc__)
    parser.add_argument("--seed", type=int, required=True, help="of programs and faults")
    parser.add_argument("--count", type=int, default=200, help="faults [200]")
    parser.add_argument("--thorough", action="store_true", help="ask about missed faults again, with --thorough")
    parser.add_argument("--legal", type=int, default=0, metavar="N", help="measure N legal pairs in place of faults")
    parser.add_argument("--python", action="append", default=[], help="interpreter with another jaxlib; may be repeated")
    parser.add_argument("--json", type=Path, help="write all cases there")
    parser.add_argument("--only", action="append", default=[], choices=list(KINDS), help="kinds of faults")
    parser.add_argument("--families", nargs="*", default=[], help="families of programs")
    parser.add_argument("--keep", type=Path, help="folder for the texts of all cases; the missed ones are listed with it")
    options = parser.parse_args(arguments)
    folder = options.keep or Path(tempfile.mkdtemp(prefix="adversary-"))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        if options.legal:
            return legal(folder, options.seed, options.legal, options.python or [sys.executable], options.json)
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
    rows: list[tuple[str, Case]] = []
    for number, case in enumerate(cases(found, options.seed, options.count, lost, options.only or None)):
        name = f"module_{number:04d}.{case.subject.name.replace('.', '_s')}"
        rows.append((name, case))
        write_pair(folder / f"batch{number // _BATCH:03d}", name, case.before, case.after, case.subject.options)
    print(f"{len(found)} programs, {len(rows)} faults with witness in {time.monotonic() - start:.0f} s", flush=True)
    said: dict[str, Said] = {}
    for batch in sorted(folder.glob("batch*")):
        said |= ask(batch)
    missed = [(name, case) for name, case in rows if not said[name].seen]
    again: dict[str, Said] = {}
    if options.thorough and missed:
        for number in sorted({int(name[7:11]) // _BATCH for name, _ in missed}):
            names = "|".join(name.split(".")[0] for name, _ in missed if int(name[7:11]) // _BATCH == number)
            again |= ask(folder / f"batch{number:03d}", "--thorough", only=f"^({names})")
    _print(rows, said, again, lost, folder)
    if options.json:
        options.json.write_text(json.dumps([_record(name, case, said[name], again.get(name), folder) for name, case in rows], indent=1))
    print(f"{time.monotonic() - start:.0f} s")
    return 0


def _record(name: str, case: Case, said: Said, again: Said | None, folder: Path) -> dict[str, object]:
    batch = folder / f"batch{int(name[7:11]) // _BATCH:03d}"
    return {
        "name": name, "kind": case.kind, "row": KINDS[case.kind.split("+")[0]].row, "program": case.subject.name, "stage": case.stage, "said": case.said,
        "witness": case.style, "outputs": case.outputs, "verdict": said.verdict, "code": said.code, "seen": said.seen, "reason": said.reason,
        "coverage": said.coverage, "sets": said.sets, "leaves": said.leaves, "thorough": again.verdict if again else None,
        "thorough_seen": again.seen if again else None, "before": str(batch / f"{name}.before_optimizations.txt"),
    }  # fmt: skip


def _print(rows: list[tuple[str, Case]], said: dict[str, Said], again: dict[str, Said], lost: Counter[str], folder: Path) -> None:
    total, seen = Counter[str](), Counter[str]()
    for name, case in rows:
        total[case.kind.split("+")[0]] += 1
        seen[case.kind.split("+")[0]] += said[name].seen
    print(f"{'kind':28}{'row':6}{'seen':>6}{'of':>5}")
    for kind in KINDS.values():
        if total[kind.name]:
            print(f"{kind.name:28}{kind.row:6}{seen[kind.name]:6}{total[kind.name]:5}")
    values = [(n, c) for n, c in rows if not KINDS[c.kind.split("+")[0]].promise]
    print(f"seen: {sum(seen.values())} of {len(rows)}; of those that values show: {sum(said[n].seen for n, _ in values)} of {len(values)}")
    if again:
        print(f"seen with --thorough: {sum(a.seen for a in again.values())} of {len(again)} missed")
    print("verdicts of the missed:", dict(Counter(said[n].verdict for n, _ in rows if not said[n].seen)))
    for name, case in rows:
        if not said[name].seen:
            s = said[name]
            more = f"; thorough: {again[name].verdict}" if name in again else ""
            print(f"- {case.kind} [{KINDS[case.kind.split('+')[0]].row}] {case.subject.name} ({case.stage}): {case.said}; witness {case.style or 'by construction'}{case.outputs or ''}")
            print(f"    {s.verdict}: {s.reason[:160]}; covers {s.coverage}; {s.sets} sets{more}; {name}")
    print(f"left out: {sum(lost.values())} places")
    for reason, number in lost.most_common(25):
        print(f"    {number:4} {reason}")


if __name__ == "__main__":
    raise SystemExit(main())
