"""Does `triage` say of programs by others what is known of them?

    python -m benchmarks.others --seed 1 --count 320 --faulty 108 [--out FOLDER] [--json]

Makes an archive (`archive.py`) of programs that a compiler with planted faults (`passes.py`) gets right,
rounds otherwise, gets wrong or dies of, and calls `triage` on it. Counted: programs whose known outcome is
said; planted faults that are told apart; programs that are counted with another fault (merged), and faults
beyond the first of each planted one (split). With `--out` the archive and what is found are kept, and the
same command goes on.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.others.archive import programs, write
from benchmarks.others.passes import DEADLY, install


def main() -> None:
    """Make the archive, have it judged, and print what was counted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="of programs and of the archive [0]")
    parser.add_argument("--count", type=int, default=320, help="programs [320]")
    parser.add_argument("--faulty", type=int, default=108, help="of them, with a planted fault [108]")
    parser.add_argument("--out", type=Path, help="folder that is kept [a temporary one]")
    parser.add_argument("--each", type=float, default=60.0, help="as triage takes it [60]")
    parser.add_argument("--json", action="store_true", help="print figures as JSON")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.out or Path(temporary, "archive")
        backend = install(Path(temporary, "plug-in"))
        truth = _archive(arguments, folder)
        figures = _measured(folder, truth, backend, arguments.each)
    print(json.dumps(figures) if arguments.json else "\n".join(f"{k}: {v}" for k, v in figures.items()))


def _archive(arguments: argparse.Namespace, folder: Path) -> dict[str, str]:
    """The planted fault of each program, by name."""
    known = folder / "truth.json"
    if not known.exists():
        folder.mkdir(parents=True, exist_ok=True)
        made = list(programs(arguments.seed, arguments.count, arguments.faulty))
        write(made, folder, arguments.seed)
        known.write_text(json.dumps({one.name: one.planted for one in made}))
    truth: dict[str, str] = json.loads(known.read_text())
    print(f"{len(truth)} programs: {Counter(truth.values())}", file=sys.stderr, flush=True)
    return truth


def _measured(folder: Path, truth: dict[str, str], backend: str, each: float) -> dict[str, Any]:
    import hlotool

    began = time.monotonic()
    paths = [str(folder / name) for name in ("ir.zip", "reports.tar.gz", "loose")]
    record = hlotool.triage(paths, backend=backend, out=folder / "found", each=each, timeout=120).record
    right, wrong, shown = 0, [], Counter[tuple[str, int]]()
    for program in record.programs:
        name = next(name for name in truth if name in program.path)
        planted = truth[name]
        expected = planted
        if planted not in ("same", "legal"):
            expected = "crashed" if planted in DEADLY else "wrong"
            shown[planted, program.fault] += 1
        right += program.outcome == expected
        if program.outcome != expected:
            wrong.append((name, planted, program.outcome, program.reason))
    owners: dict[int, Counter[str]] = {}
    for (planted, fault), count in shown.items():
        if fault:
            owners.setdefault(fault, Counter())[planted] += count
    merged = sum(counts.total() - max(counts.values()) for counts in owners.values())
    found = {planted for counts in owners.values() for planted in counts}
    accused = {f.number: f.pass_name for f in record.faults if f.number}
    return {
        "headline": record.headline,
        "programs": len(truth),
        "seen": len(record.programs),
        "right outcome": right,
        "other outcome": wrong,
        "planted faults": len({p for p in truth.values() if p not in ("same", "legal")}),
        "found": len(found),
        "faults": len(owners),
        "split": len(owners) - len(found),
        "programs merged wrongly": merged,
        "without fault": sum(count for (_, fault), count in shown.items() if not fault),
        "right pass": sum(accused[n] == max(c, key=lambda p: c[p]) for n, c in owners.items()),
        "by fault": {n: dict(counts) for n, counts in owners.items()},
        "seconds": round(time.monotonic() - began),
    }


if __name__ == "__main__":
    main()
