"""Disasters: commands that are killed, full and read-only disks, workers out of memory, jumping clocks.

    PYTHONPATH=tests python -m benchmarks.disasters [--trials 50] [--seed 0] [--only NAME ...]
                                                   [--keep DIR] [--json]

Kills are by SIGKILL, of the first process or of all at once, at a moment between the start and the end of an
undisturbed run; then the same command is given again. Its record has to be that of the undisturbed run but
for times; nothing that was kept is executed again; what lies in the cache can be read; no process lives on.
Prints a line for each command and each other disaster, and what went wrong; ends with 1 if anything did.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.disasters.kills import killed
from benchmarks.disasters.places import DISASTERS, happened
from benchmarks.disasters.subjects import SUBJECTS


def main() -> None:
    """Let them happen, print what became of the commands."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--trials", type=int, default=50, help="kills of each command")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=[*SUBJECTS, *DISASTERS], default=[*SUBJECTS, *DISASTERS])
    parser.add_argument("--keep", type=Path, help="folder that keeps the trials with faults")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="disasters-") as passing:
        folder = given.keep or Path(passing)
        figures: dict[str, Any] = {}
        for number, name in enumerate(given.only):
            place = folder / f"{number}"
            if name in SUBJECTS:
                figures[name] = asdict(killed(SUBJECTS[name], place, range(given.trials), given.seed))
            else:
                figures[name] = asdict(happened(name, place, given.seed))
            if not given.json:
                shown = {key: value for key, value in figures[name].items() if key != "faults"}
                print(name, *(f"{key}={value}" for key, value in shown.items()), sep="  ", flush=True)
                print(*(f"    {fault}" for fault in figures[name]["faults"]), sep="\n", flush=True)
    if given.json:
        print(json.dumps({"seed": given.seed, **figures}))
    sys.exit(any(part["faults"] for part in figures.values()))


if __name__ == "__main__":
    main()
