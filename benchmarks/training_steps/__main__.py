"""Ordinary training steps under hlotool: what is said of programs that are right, and of planted faults.

    python -m benchmarks.training_steps [--seed 0] [--only REGEX] [--steps 3] [--ways captured,text,generated]
                                        [--faults N] [--json FILE] [--out DIR]

Each script of `scripts_*.py` is drawn by the seed and runs under `hlotool exec`; its main step is judged
captured, text against text on the captured arguments, and on generated ones. Nothing of it is wrong, so every
verdict but an agreement is one too many. With `--faults N` faults are planted in the tested texts. `--out`
keeps the dumps; a script whose dump is there already is not run again for `--faults` with `--ways none`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

from benchmarks.training_steps.catalogue import SCRIPTS
from benchmarks.training_steps.faults import Planted, planted
from benchmarks.training_steps.measure import Row, measure
from benchmarks.training_steps.table import fault_table, header, line, totals


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", metavar="REGEX")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--ways", default="captured,text,generated")
    parser.add_argument("--faults", type=int, default=0, metavar="N")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where the dumps stay")
    arguments = parser.parse_args()
    began = time.monotonic()
    out = arguments.out or Path(tempfile.mkdtemp(prefix="training-steps-"))
    chosen = [script for name, script in sorted(SCRIPTS.items()) if re.search(arguments.only, name)]
    rows: list[Row] = []
    faults: list[Planted] = []

    def keep() -> None:
        if arguments.json is not None:
            record = {
                "seed": arguments.seed,
                "rows": list(map(asdict, rows)),
                "faults": list(map(asdict, faults)),
            }
            arguments.json.write_text(json.dumps(record), encoding="utf-8")

    if arguments.ways != "none":
        print(*header(), sep="\n", flush=True)
        for script in chosen:
            folder = out / script.name
            shutil.rmtree(folder, ignore_errors=True)
            for row in measure(script, arguments.seed, arguments.steps, folder, arguments.ways.split(",")):
                rows.append(row)
                print(line(row), flush=True)
            keep()
        print("", *totals(rows), sep="\n", flush=True)
    if arguments.faults:
        dumps = [out / script.name for script in chosen if (out / script.name).is_dir()]
        for fault in planted(dumps, arguments.faults, arguments.seed):
            faults.append(fault)
            keep()
        print("", *fault_table(faults), sep="\n")
    seconds = time.monotonic() - began
    on = f"Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}"
    print(f"\nseed {arguments.seed}, {len(chosen)} scripts, {seconds:.0f} s, {on}")
    if arguments.out is None:
        shutil.rmtree(out, ignore_errors=True)


if __name__ == "__main__":
    main()
