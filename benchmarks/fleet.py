"""What a fleet costs: many modules, of which one in ten is distinct, replayed for the first time and again.

    python benchmarks/fleet.py [--modules 10000] [--distinct 1000] [--seed S] [--jobs 2] [--json]

Distinct programs are made from the corpus: two stages of a module, the earlier one as the program before
optimizations and the later one in place of the compiled one. Each is written for several hosts, with other
names of instructions, modules and sources. Prints the seconds of the first run and of the same command again,
the replays that were made, and the largest memory of the first process.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from support.renaming import renamed  # noqa: E402

from hlotool.runs.fleet.normal_form import normal_form  # noqa: E402
from hlotool.sources.directory import open_dumps  # noqa: E402

#: Larger texts are left out: their replays take seconds each, and say nothing about a fleet.
_LARGEST = 40_000


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


def write_fleet(folder: Path, modules: int, distinct: int, seed: int) -> None:
    """Write `modules` modules of `distinct` programs, spread over hosts."""
    programs = list(itertools.islice(distinct_pairs(seed), distinct))
    if len(programs) < distinct:
        raise SystemExit(f"the corpus gives only {len(programs)} distinct programs")
    for number in range(modules):
        host, program = divmod(number, distinct)
        name, before, after = programs[program]
        place = folder / f"host{host:03d}"
        place.mkdir(parents=True, exist_ok=True)
        tag = f"h{host}"
        for label, text in (("before_optimizations", before), ("cpu_after_optimizations", after)):
            own = text if host == 0 else renamed(text, tag, program)
            (place / f"module_{program:04d}.{name}_{tag}.{label}.txt").write_text(own, encoding="utf-8")


def distinct_pairs(seed: int) -> Iterator[tuple[str, str, str]]:
    """Name, and two texts of one module, the later one after more passes: no two are the same programs."""
    found = [module for dump in open_dumps([str(ROOT / "corpus/jax")]) for module in dump.modules]
    pairs = [
        (module.name, before.text, after.text)
        for module in found
        for before, after in itertools.combinations(module.stages, 2)
        if before.text is not None and after.text is not None
    ]
    random.Random(seed).shuffle(pairs)
    seen: set[tuple[str, str]] = set()
    for name, one, other in pairs:
        before, after = one.read_text(), other.read_text()
        key = normal_form(before).key, normal_form(after).key
        if max(len(before), len(after)) <= _LARGEST and key not in seen and "{...}" not in before + after:
            seen.add(key)
            yield name, before, after


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
