"""How long the command line takes to answer: wall and processor time of fresh processes.

    python -m benchmarks.speed.startup [--repeat N]

Run it on a copy that is installed, or with bytecode caches: compiling the sources costs a third more.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_SMALL = "HloModule small\nENTRY e {\n  x = f32[100] parameter(0)\n  ROOT y = f32[100] add(x, x)\n}\n"


def measure(command: list[str], repeat: int) -> tuple[list[float], list[float]]:
    """Milliseconds of wall and of processor time, workers included, of each run."""
    walls, processors = [], []
    for _ in range(repeat):
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        walls.append((time.perf_counter() - start) * 1e3)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
        processors.append(used * 1e3)
    return walls, processors


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeat", type=int, default=15)
    repeat = parser.parse_args().repeat
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(f"{'ms':32}{'wall min':>10}{'median':>10}{'cpu min':>10}{'median':>10}")
    with tempfile.TemporaryDirectory() as folder:
        small = Path(folder) / "small.hlo"
        small.write_text(_SMALL, encoding="utf-8")
        hlotool = [sys.executable, "-m", "hlotool"]
        commands = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "python -c 'import numpy'": [sys.executable, "-c", "import numpy"],
            "hlotool --help": [*hlotool, "--help"],
            "hlotool run --help": [*hlotool, "run", "--help"],
            "hlotool run small.hlo": [*hlotool, "run", str(small)],
        }
        for title, command in commands.items():
            walls, processors = measure(command, repeat)
            numbers = (f(times) for times in (walls, processors) for f in (min, statistics.median))
            print(f"{title:32}" + "".join(f"{n:10.0f}" for n in numbers), flush=True)


if __name__ == "__main__":
    main()
