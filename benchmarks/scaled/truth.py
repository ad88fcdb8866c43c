"""Do faults show in programs with smaller sizes that show at full size, and at the same instruction?

    python -m benchmarks.scaled.truth [--only REGEX] [--cases N] [--seed S] [--shrink N] [--json FILE]

The programs of `programs.py`, made smaller until one execution takes milliseconds, are compiled by XLA:
that is their full size, at which they run within a second. Faults of the catalogue are planted in what XLA
makes of them, as many in each program; each is replayed twice, as it is and with the sizes that an N-th of
the memory is for. A fault shows where the verdict is wrong; it is located where both reports blame the same
instruction. The pair without a fault is replayed both ways, too: a verdict that is wrong is a false alarm.

Rules were made with every other kind of fault, in alphabetical order, in view; other kinds are counted apart.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import hlotool
from benchmarks.common.programs import program_texts
from hlotool.blame.reduction.case_worker import optimised
from hlotool.errors import HlotoolError, Unsupported
from hlotool.ir.module import Module
from hlotool.lab.faults import BELOW_ROUNDING, CATALOGUE
from hlotool.parser.reader import parse_module
from hlotool.rewrite.scale.limits import COPIES, RUNS, Limits, need_of
from hlotool.rewrite.scale.plan import scaled

#: Executions that take longer than this, in units of work, would make a benchmark of hundreds of faults last
#: hours.
MOST_WORK = 3e7
#: The first pair of every dump has no fault.
_HEALTHY = "0000"


def faults(module: Module, cases: int, rng: random.Random) -> list[dict[str, Any]]:
    """Faults of kinds that a run can show, one place of each kind before a second one of any."""
    sites = [(kind, list(kind.sites(module))) for kind in CATALOGUE if kind not in BELOW_ROUNDING]
    drawn: list[tuple[Any, Any]] = []
    for _, places in sites:
        rng.shuffle(places)
    for turn in range(max(len(places) for _, places in sites)):
        one_each = [(kind, places[turn]) for kind, places in sites if turn < len(places)]
        rng.shuffle(one_each)
        drawn += one_each
    found = []
    for kind, site in drawn[:cases]:
        text = kind.plant(module, site, rng.randrange(1 << 30)).to_text()
        found.append({"fault": kind.name, "site": site.instruction, "text": text})
    return found


def replayed(folder: Path, scale: str, seed: int) -> dict[str, Any]:
    """Rows of a dump by the number of the module."""
    began = time.perf_counter()
    rows = hlotool.replay(str(folder), scale=scale, seed=seed, cache=False, first_divergence=True).rows
    print(f"  {scale}: {len(rows)} in {time.perf_counter() - began:.0f} s", flush=True)
    return {row.name.split(".")[0].removeprefix("module_"): row for row in rows}


def blamed(row: Any) -> str:
    """The instruction that a row blames; empty where it names none."""
    return row.divergence.source.instruction if row.divergence else ""


def of_full_size(module: Module) -> Module | None:
    """The largest that a program can be and run within `MOST_WORK`; None where no size is small enough."""
    if need_of(module).work <= MOST_WORK:
        return module
    try:
        found = scaled({"": module}, "auto", Limits(float("inf"), RUNS * MOST_WORK / 1e9))
    except Unsupported:
        return None
    return found.programs[""] if found else module


def measured(name: str, text: str, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """What became of the faults in one program; the first entry is the program without one."""
    before = of_full_size(parse_module(text))
    if before is None:
        return []
    after = optimised(before, "xla")
    memory = max(need_of(before).memory, need_of(after).memory)
    rng = random.Random(f"{arguments.seed} {name}")
    cases = [{"fault": "", "site": "", "text": after.to_text()}, *faults(after, arguments.cases, rng)]
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        for number, case in enumerate(cases):
            stem = folder / f"module_{number:04}.m"
            stem.with_suffix(".m.before_optimizations.txt").write_text(before.to_text())
            stem.with_suffix(".m.cpu_after_optimizations.txt").write_text(case.pop("text"))
        full = replayed(folder, "never", arguments.seed)
        small = replayed(folder, str(COPIES * memory // arguments.shrink), arguments.seed)
    for number, case in enumerate(cases):
        one, other = full[f"{number:04}"], small[f"{number:04}"]
        case |= {"program": name, "full": one.verdict.value, "scaled": other.verdict.value}
        case |= {"sizes": other.scaled.text if other.scaled else ""}
        case |= {"at_full": blamed(one), "at_scaled": blamed(other)}
        case["named"] = case["site"] in json.dumps(other.divergence and other.divergence.text)
    return cases


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """What the rows say, counted; of faults in programs that scale without one."""
    healthy = [row for row in rows if not row["fault"]]
    scaling = {row["program"] for row in healthy if row["sizes"]}
    planted = [row for row in rows if row["fault"] and row["program"] in scaling]
    kinds = sorted(kind.name for kind in CATALOGUE)
    return {
        **_counted(planted),
        "kinds that rules were made with": _counted([row for row in planted if row["fault"] in kinds[::2]]),
        "all other kinds": _counted([row for row in planted if row["fault"] in kinds[1::2]]),
        "in programs that do not scale": sum(row["program"] not in scaling for row in rows if row["fault"]),
        "healthy": dict(Counter((row["full"] + " → " + row["scaled"]) for row in healthy)),
        "processor seconds": round(sum(os.times()[:4])),
        "load": os.getloadavg()[0],
    }


def _counted(planted: list[dict[str, Any]]) -> dict[str, Any]:
    """How many faults show, and where; one that the program cannot be scaled with does not show."""
    shown = [row for row in planted if row["full"] == "wrong"]
    seen = [row for row in shown if row["scaled"] == "wrong"]
    return {
        "planted": len(planted),
        "shown at full size": len(shown),
        "of those shown scaled": len(seen),
        "of those not scaled": sum(not row["sizes"] for row in shown),
        "at the same instruction": sum(row["at_full"] == row["at_scaled"] for row in seen),
        "scaled only": sum(row["full"] != "wrong" and row["scaled"] == "wrong" for row in planted),
        "missed": dict(Counter(row["fault"] for row in shown if row["scaled"] != "wrong")),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--only", default="", help="regular expression of programs")
    parser.add_argument("--cases", type=int, default=16, help="faults planted in each program")
    parser.add_argument("--seed", type=int, default=0, help="of faults and inputs")
    parser.add_argument("--shrink", type=int, default=6, help="so many times less memory")
    parser.add_argument("--json", type=Path, help="file for all figures")
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for name, text in program_texts(arguments.only):
        try:
            found = measured(name, text, arguments)
        except HlotoolError as error:
            print(f"{name}: {error}", flush=True)
            continue
        rows += found
        if found:
            print(name, found[0]["full"], found[0]["scaled"], found[0]["sizes"], flush=True)
        if arguments.json:
            arguments.json.write_text(json.dumps({"rows": rows, "summary": summary(rows)}, indent=1))
    print(json.dumps(summary(rows), indent=1))


if __name__ == "__main__":
    main()
