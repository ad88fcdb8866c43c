"""Programs larger than the machine: do they run with smaller sizes, does XLA take them, and are faults found?

    python -m benchmarks.scaled.models DIR [--only REGEX] [--cases N] [--seed S] [--json FILE]

DIR holds programs before optimisation, as text. Each is compiled, not run, by the jaxlib that is
installed, at its full size and in a process of its own, and then replayed before against after within 8 GB
and two minutes. A verdict that is wrong is a false alarm: no fault was planted. Where cases are asked for,
faults of the catalogue are planted in optimised texts of full size, as many in each; a fault counts as
found where the verdict says so, and as located where the report names the instruction that has it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import ROOT
from hlotool.backends.registry import get_backend
from hlotool.blame.reduction.case_worker import optimised
from hlotool.errors import HlotoolError
from hlotool.inputs.generate import generate_constants
from hlotool.ir.module import Module
from hlotool.lab.faults import CATALOGUE
from hlotool.parser.reader import parse_module
from hlotool.rewrite.scale.limits import Limits
from hlotool.rewrite.scale.plan import scaled
from hlotool.sources.elided import elided_constants

#: What a replay may take, and a compilation.
_MEMORY, _SECONDS = 8 << 30, 120
#: Of the row of a replay.
_KEPT = ("verdict", "reason", "wall", "processor", "unfinished", "scaled")
BEFORE, AFTER = "module_0001.m.before_optimizations.txt", "module_0001.m.cpu_after_optimizations.txt"


def prepared(file: Path, folder: Path) -> str:
    """Write a program and what XLA makes of it; what went wrong, or nothing."""
    command = [sys.executable, "-m", "benchmarks.scaled.models", "--compile", str(file), str(folder)]
    try:
        done = subprocess.run(
            ["bash", "-c", 'ulimit -v "$0"; exec "$@"', str(_MEMORY // 512), *command],
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )
    except subprocess.TimeoutExpired:
        return "compilation takes too long"
    lines = done.stderr.strip().splitlines() or ["no output"]
    return "" if done.returncode == 0 else f"not compiled: {lines[-1][:200]}"


def compile_here(file: Path, folder: Path) -> None:
    """The work of the process that `prepared` starts; elided constants get values, the same on both sides."""
    module = parse_module(file.read_text(), str(file))
    generate_constants(module, elided_constants(module), 0)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / BEFORE).write_text(module.to_text())
    (folder / AFTER).write_text(optimised(module, "xla").to_text())


def replayed(folder: Path) -> dict[str, Any]:
    """The row of a replay; its verdict is `timeout` where two minutes were not enough.

    `wall` is the time that it took, `processor` that of the processor, of all processes.
    """
    command = [sys.executable, "-m", "hlotool", "run", str(folder), "--json", "--no-cache", "--no-resume"]
    command += ["--memory-limit", "8G", "--timeout", str(_SECONDS), "--first-divergence"]
    began, before = time.perf_counter(), os.times()
    done = subprocess.run(
        command, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(ROOT)}, check=False
    )
    try:
        row: dict[str, Any] = json.loads(done.stdout)["modules"][0]
    except (ValueError, LookupError):
        row = {"verdict": "crashed", "reason": done.stderr[-300:]}
    row["wall"] = round(time.perf_counter() - began, 1)
    after = os.times()
    row["processor"] = round(sum(after[2:4]) - sum(before[2:4]), 1)
    return row


def accepted(folder: Path) -> dict[str, Any]:
    """Whether XLA compiles the scaled programs before and after, and the processor time of scaling.

    XLA is let in where its own passes ended, so the program after is judged as it is.
    """
    programs = {name: parse_module((folder / name).read_text(), name) for name in (BEFORE, AFTER)}
    began = time.process_time()
    try:
        found = scaled(programs, "auto", Limits(_MEMORY, _SECONDS))
    except HlotoolError as error:
        return {"unscaled": str(error)}
    seconds = time.process_time() - began
    if found is None:
        return {}
    count = sum(len(c.instructions) for module in programs.values() for c in module.computations)
    taken = {name: _is_accepted(module) for name, module in found.programs.items()}
    return {"instructions": count, "seconds": round(seconds, 1), **taken}


def _is_accepted(module: Module) -> bool:
    try:
        get_backend("xla").compile(module)
    except HlotoolError as error:
        print(f"  not accepted: {error}", file=sys.stderr)
        return False
    return True


def planted(folder: Path, cases: int, rng: random.Random) -> Iterator[dict[str, Any]]:
    """Faults of the catalogue in the optimised text of full size, each replayed."""
    module = parse_module((folder / AFTER).read_text())
    places = [(kind, site) for kind in CATALOGUE for site in kind.sites(module)]
    for kind, site in rng.sample(places, min(cases, len(places))):
        with tempfile.TemporaryDirectory() as name:
            other = Path(name)
            (other / BEFORE).write_text((folder / BEFORE).read_text())
            (other / AFTER).write_text(kind.plant(module, site, rng.randrange(1 << 30)).to_text())
            row = replayed(other)
        named = json.dumps(row.get("divergence") or {})
        found = {"fault": kind.name, "site": str(site), "located": site.instruction in named}
        yield found | {key: row.get(key) for key in ("verdict", "wall", "divergence_missing")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="regular expression of paths")
    parser.add_argument("--work", type=Path, help="where compiled programs are kept")
    parser.add_argument("--cases", type=int, default=0, help="faults planted in each program")
    parser.add_argument("--seed", type=int, default=0, help="of the faults")
    parser.add_argument("--json", type=Path, help="file for all figures")
    parser.add_argument("--no-replay", action="store_true", help="only scale, and ask XLA")
    parser.add_argument("--no-xla", action="store_true", help="do not ask XLA")
    arguments = parser.parse_args()
    work = arguments.work or Path(tempfile.mkdtemp(prefix="hlotool-scaled-"))
    rows, summary = [], {}
    for file in sorted(arguments.folder.rglob("*.txt")):
        if not re.search(arguments.only, str(file)):
            continue
        folder = work / "_".join(file.relative_to(arguments.folder).parent.parts)
        row: dict[str, Any] = {"name": folder.name}
        problem = "" if (folder / AFTER).exists() else prepared(file, folder)
        if problem:
            row["verdict"] = problem
        else:
            found = {} if arguments.no_replay else replayed(folder)
            row |= {key: found.get(key) for key in _KEPT}
            row["xla"] = {} if arguments.no_xla else accepted(folder)
            rng = random.Random(f"{arguments.seed} {folder.name}")
            row["faults"] = list(planted(folder, arguments.cases, rng))
        rows.append(row)
        row["load"] = os.getloadavg()[0]
        shown = ("name", "verdict", "wall", "processor", "unfinished", "xla", "faults", "load")
        print(*(row.get(key) for key in shown), flush=True)
        summary = {"verdicts": Counter(row["verdict"] for row in rows)}
        if arguments.json:
            arguments.json.write_text(json.dumps({"rows": rows, "summary": summary}, indent=1))
    print(summary)


if __name__ == "__main__":
    if "--compile" in sys.argv:
        compile_here(Path(sys.argv[2]), Path(sys.argv[3]))
    else:
        main()
