"""Programs for several devices with smaller sizes: false alarms, and planted faults, beside the full sizes.

    python -m benchmarks.scaled.devices [--cases N] [--seed S] [--only REGEX] [--json FILE]

The programs of `benchmarks.common.device_programs` are made larger by factors that follow from the seed,
compiled by jaxlib for 2, 4 and 8 virtual CPU devices, and replayed before against after: as they are, and
with the smallest sizes that could be told. Nothing was planted, so `wrong` is a false alarm. Then faults are
planted in the optimised texts of full size, two of three wrong exchanges, and both replays are asked again:
of those that are wrong as they are, it is counted how many are wrong scaled, and name the same instruction
first.
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
from typing import Any, Final

import numpy as np

import hlotool
from benchmarks import ROOT
from benchmarks.common import device_programs
from hlotool.blame.reduction.case_worker import optimised
from hlotool.errors import HlotoolError
from hlotool.ir.module import Module
from hlotool.lab.faults import CATALOGUE, DEVICES
from hlotool.parser.reader import parse_module
from hlotool.rewrite.scale.classes import classes_of
from hlotool.rewrite.scale.limits import COPIES, Limits, need_of
from hlotool.rewrite.scale.plan import scaled
from hlotool.rewrite.scale.resize import (
    Rewrite,
    choices,
)
from hlotool.sources.directory import open_dump
from hlotool.sources.loading import load_stage

_DEVICES: Final = (2, 4, 8)
BEFORE, AFTER = "module_0001.m.before_optimizations.txt", "module_0001.m.cpu_after_optimizations.txt"
#: Two of three faults are of an exchange.
_OF_EXCHANGES: Final = 2 / 3
#: Dimensions from here on are made larger; shorter ones are kernels, features and numbers of devices.
_LARGE: Final = 4
#: A fault needs some memory of its own.
_ROOM: Final = 2


def compiled(name: str, devices: int, factor: int, folder: Path) -> tuple[Module, Module]:
    """A program made larger, before and after optimisation."""
    with tempfile.TemporaryDirectory() as dump:
        command = [sys.executable, "-m", "benchmarks.scaled.devices", "--compile", name, str(devices), dump]
        subprocess.run([*command, str(factor)], check=True, capture_output=True, cwd=ROOT)
        owner = max(
            (o for o in open_dump(Path(dump)).modules if o.after is not None),
            key=lambda o: len(load_stage(o, o.stages[0]).entry.instructions),
        )
        assert owner.after is not None
        before, after = load_stage(owner, owner.stages[0]), load_stage(owner, owner.after)
    folder.mkdir(parents=True)
    (folder / BEFORE).write_text(before.to_text())
    (folder / AFTER).write_text(after.to_text())
    return before, after


def compile_here(name: str, devices: int, dump: str, factor: int) -> None:
    """The work of the process that `compiled` starts."""
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["XLA_FLAGS"] = (
        f"--xla_force_host_platform_device_count={devices} --xla_dump_to={dump} "
        "--xla_dump_hlo_as_text --xla_dump_large_constants"
    )

    def larger(*dims: int, seed: int = 0) -> Any:
        made = [size * factor if size >= _LARGE else size for size in dims]
        return np.random.default_rng(seed).standard_normal(made).astype(np.float32)

    device_programs._array = larger
    device_programs.run(name, devices)


def least_memory(before: Module, after: Module) -> int:
    """What a comparison with the smallest sizes that can be told takes; 0 where nothing becomes smaller."""
    classes = classes_of([before, after])
    *_, chosen = ({}, *choices(classes))
    copies = [Rewrite(module, classes) for module in (before, after)]
    for copy in copies:
        copy.set_sizes(chosen)
    small = max(need_of(copy.module).memory for copy in copies)
    full = max(need_of(module).memory for module in (before, after))
    return COPIES * min(_ROOM * small, full - 1) if small < full else 0


def replayed(folder: Path, scale: str) -> dict[str, Any]:
    """The verdict on a folder, and the instruction that is named first."""
    began = time.perf_counter()
    [row] = hlotool.replay(str(folder), cache=False, scale=scale, first_divergence=True).rows
    return {
        "verdict": str(row.verdict.value),
        "reason": row.reason,
        "seconds": round(time.perf_counter() - began, 2),
        "scaled": row.scaled.text if row.scaled is not None else "",
        "named": row.divergence.source.instruction if row.divergence is not None else "",
    }


def accepted(folder: Path, memory: int) -> list[bool]:
    """Whether XLA compiles the scaled program before; nothing where it refuses the program as it is, too."""
    module = parse_module((folder / BEFORE).read_text(), BEFORE)
    after = parse_module((folder / AFTER).read_text(), AFTER)
    found = scaled({BEFORE: module, AFTER: after}, str(memory), Limits(float("inf"), float("inf")))
    if found is None or not _is_accepted(module):
        return []
    return [_is_accepted(found.programs[BEFORE])]


def _is_accepted(module: Module) -> bool:
    try:
        optimised(module, "xla")
    except HlotoolError as error:
        print(f"  not accepted: {error}", file=sys.stderr)
        return False
    return True


def planted(
    folder: Path, after: Module, memory: int, cases: int, rng: random.Random
) -> Iterator[dict[str, Any]]:
    """Faults in the optimised text of full size, judged in full and scaled."""
    pools = [[(kind, site) for kind in kinds for site in kind.sites(after)] for kinds in (DEVICES, CATALOGUE)]
    for _ in range(cases):
        pool = pools[0] if pools[0] and rng.random() < _OF_EXCHANGES else pools[1]
        if not pool:
            continue
        kind, site = pool.pop(rng.randrange(len(pool)))
        with tempfile.TemporaryDirectory() as name:
            other = Path(name)
            (other / BEFORE).write_text((folder / BEFORE).read_text())
            (other / AFTER).write_text(kind.plant(after, site, rng.randrange(1 << 30)).to_text())
            rows = {scale: replayed(other, scale) for scale in ("never", str(memory))}
        full, small = rows["never"], rows[str(memory)]
        yield {"fault": kind.name, "site": site.instruction, "full": full, "scaled": small}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--cases", type=int, default=3, help="faults planted in each program")
    parser.add_argument("--seed", type=int, default=0, help="of factors and faults")
    parser.add_argument("--only", default="", help="regular expression of names")
    parser.add_argument("--json", type=Path, help="file for all figures")
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for name in device_programs.PROGRAMS:
        for devices in _DEVICES:
            if not re.search(arguments.only, f"{name}/{devices}"):
                continue
            rng = random.Random(f"{arguments.seed} {name} {devices}")
            with tempfile.TemporaryDirectory() as root:
                folder = Path(root) / "dump"
                before, after = compiled(name, devices, rng.randrange(5, 14), folder)
                row: dict[str, Any] = {"name": f"{name}/{devices}", "full": replayed(folder, "never")}
                memory = least_memory(before, after)
                if memory:
                    row["scaled"] = replayed(folder, str(memory))
                    row["xla"] = accepted(folder, memory)
                    row["faults"] = list(planted(folder, after, memory, arguments.cases, rng))
            rows.append(row)
            print(row["name"], row["full"]["verdict"], row.get("scaled"), row.get("xla"), flush=True)
            for fault in row.get("faults", []):
                print("   ", fault, flush=True)
    summary = summed(rows)
    print(json.dumps(summary, indent=1))
    if arguments.json:
        arguments.json.write_text(json.dumps({"rows": rows, "summary": summary}, indent=1))


def summed(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """What all rows come to."""
    small = [row for row in rows if "scaled" in row]
    faults = [fault for row in small for fault in row["faults"]]
    shown = [fault for fault in faults if fault["full"]["verdict"] == "wrong"]
    both = [fault for fault in shown if fault["scaled"]["verdict"] == "wrong"]
    return {
        "programs": len(rows),
        "scaled": len(small),
        "asked XLA": sum(bool(row["xla"]) for row in small),
        "accepted": sum(row["xla"] == [True] for row in small),
        "verdicts": Counter(row["scaled"]["verdict"] for row in small),
        "verdicts in full": Counter(row["full"]["verdict"] for row in small),
        "faults": len(faults),
        "wrong in full": len(shown),
        "wrong in both": len(both),
        "wrong scaled only": sum(
            f["scaled"]["verdict"] == "wrong" and f["full"]["verdict"] != "wrong" for f in faults
        ),
        "located in full": sum(bool(f["full"]["named"]) for f in both),
        "the same instruction": sum(
            bool(f["full"]["named"]) and f["full"]["named"] == f["scaled"]["named"] for f in both
        ),
        "load": os.getloadavg()[0],
    }


if __name__ == "__main__":
    if "--compile" in sys.argv:
        compile_here(sys.argv[2], int(sys.argv[3]), sys.argv[4], int(sys.argv[5]))
    else:
        main()
