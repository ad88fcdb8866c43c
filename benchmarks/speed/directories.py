"""How fast the stages of one module are read: file by file, as a directory, and by XLA's parser; CPU time.

    python -m benchmarks.speed.directories [DIRECTORY ...] [--repeat N] [--json]

"File by file" forgets after each file what was learnt from it, as a process that reads one file does; the
directory's first pass also pays for what short texts can do without. Every pass has a process of its own,
which has read one small text (and so loaded NumPy) before; the least of N counts. Without a directory: those
of corpus/ with the most stages.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from benchmarks import ROOT

_DEFAULT = ("jax/collatz", "jax/top_k", "tf/while_gradient", "jax/train_mnist_mlp", "jax/fizzbuzz")
_WAYS = ("alone", "together", "xla")
_SMALL = "HloModule first\n\nENTRY e {\n  ROOT c = f32[] constant(0)\n}\n"


def texts(directory: Path) -> list[str]:
    """Every stage in text."""
    contents = (path.read_text(encoding="utf-8") for path in sorted(directory.glob("*.txt")))
    return [content for content in contents if content.startswith("HloModule")]


def pass_seconds(directory: Path, way: str) -> float:
    """CPU time of reading all stages once, in this process."""
    from hlotool.parser.reader import forget_texts, parse_module

    parse: Callable[[str], object] = parse_module
    if way == "xla":
        parse = import_module("jaxlib._hlo").hlo_module_from_text
    contents = texts(directory)
    parse(_SMALL)
    begin = time.process_time()
    for content in contents:
        if way == "alone":
            forget_texts()
        parse(content)
    return time.process_time() - begin


def measured(directory: Path, way: str, repeat: int) -> float:
    """The least of `repeat` passes, each in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.speed.directories", str(directory.resolve()), "--pass", way]
    runs = (
        subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT) for _ in range(repeat)
    )
    return min(float(run.stdout) for run in runs)


def main() -> int:
    """Run, print a table or JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("directories", nargs="*", type=Path, metavar="DIRECTORY")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--pass", dest="way", choices=_WAYS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    directories = options.directories or [ROOT / "corpus" / name for name in _DEFAULT]
    if options.way:
        print(pass_seconds(directories[0], options.way))
        return 0
    rows = []
    for directory in directories:
        found = {way: measured(directory, way, options.repeat) for way in _WAYS}
        stages = texts(directory)
        rows.append(
            {
                "directory": directory.name,
                "stages": len(stages),
                "megabytes": sum(map(len, stages)) / 1e6,
                **found,
                "ratio": found["alone"] / found["together"],
            }
        )
    if options.json:
        print(json.dumps(rows, indent=1))
        return 0
    print("stages     MB  file by file  directory  ratio     XLA  directory")
    for row in rows:
        print(
            f"{row['stages']:>6} {row['megabytes']:>6.2f} {row['alone']:>11.3f} s {row['together']:>8.3f} s"
            f" {row['ratio']:>6.1f} {row['xla']:>5.3f} s  {row['directory']}"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
