"""What a fleet costs: many modules, of which one in ten is distinct, replayed for the first time and again.

    PYTHONPATH=tests python -m benchmarks.fleet [--modules 10000] [--distinct 1000] [--seed S]
                                               [--jobs 2] [--json]

Distinct programs are made from the corpus: two stages of a module, the earlier one as the program before
optimizations and the later one in place of the compiled one. Each is written for several hosts, with other
names of instructions, modules and sources. Prints the seconds of the first run and of the same command again,
the replays that were made, and the largest memory of the first process.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import ROOT
from benchmarks.fleet.writing import write_fleet


def main() -> None:
    """Write the fleet, run it twice, print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--modules", type=int, default=10_000)
    parser.add_argument("--distinct", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--keep", type=Path, help="write the fleet here, and leave it")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fleet-") as folder:
        fleet = given.keep or Path(folder, "fleet")
        if not fleet.exists():
            write_fleet(fleet, given.modules, given.distinct, given.seed)
        figures = measure(fleet, Path(folder), given.jobs)
    if given.json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        print(f"{name:24} {value}")


def measure(fleet: Path, folder: Path, jobs: int) -> dict[str, Any]:
    """Figures of a first run, and of the same command again."""
    environment = os.environ | {"HLOTOOL_CACHE": str(folder / "cache"), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "hlotool", "run", str(fleet), "--jobs", str(jobs), "--json"]
    figures: dict[str, Any] = {}
    records = []
    for name in ("first", "repeat"):
        used_before, start = _usage(), time.perf_counter()
        output = folder / f"{name}.json"
        with output.open("wb") as file:
            process = subprocess.Popen(command, env=environment, stdout=file, cwd=folder)
            _, _, used = os.wait4(process.pid, 0)
        figures[f"{name}_seconds"] = round(time.perf_counter() - start, 2)
        figures[f"{name}_processor_seconds"] = round(_usage() - used_before, 2)
        # Of the first process alone: its own children are not counted by the largest resident size.
        figures[f"{name}_memory_mb"] = round(used.ru_maxrss / 1024)
        records.append(json.loads(output.read_text()))
    rows, again = ([dict(row, seconds=0) for row in record["modules"]] for record in records)
    figures["modules"] = len(rows)
    figures["distinct"] = sum(not row["twin_of"] for row in rows)
    figures["summary"] = records[0]["summary"]
    figures["same_record"] = rows == again
    figures["cache_mb"] = round(
        sum(f.stat().st_size for f in (folder / "cache").rglob("*") if f.is_file()) / 1e6
    )
    return figures


def _usage() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
