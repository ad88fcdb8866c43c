"""Whose lines reports show: of real programs, how many instructions come from installed packages.

    python -m benchmarks.dumps.sources FOLDER [--most N] [--json]

FOLDER holds dumps; the programs before optimizations that are smaller than 2 MB are read.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

import hlotool
from hlotool.errors import HlotoolError
from hlotool.facts.dataflow import source_of
from hlotool.ir.module import Module
from hlotool.ir.printed_annotations import is_installed, source_position

#: Larger ones say the same, and take long.
_MOST_BYTES = 2_000_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--most", type=int, default=30, help="programs")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    paths = sorted(options.folder.rglob("*before_optimizations.txt"))
    small = [path for path in paths if path.stat().st_size < _MOST_BYTES][: options.most]
    counts: Counter[str] = Counter()
    for path in small:
        try:
            counts.update(counted(hlotool.load(path)))
        except HlotoolError:
            counts["unread"] += 1
    print(json.dumps(counts) if options.json else "\n".join(f"{n:8} {name}" for name, n in counts.items()))


def counted(module: Module) -> Counter[str]:
    """Instructions of a program by what is known, and shown, of where they come from."""
    counts = Counter({"programs": 1})
    for instruction in module.instructions():
        if instruction.metadata is None:
            continue
        innermost = source_position(instruction.metadata, module.stack_frames)
        if innermost is None:
            counts["without a position"] += 1
            continue
        shown = source_of(module, [instruction])
        counts["with a position"] += 1
        if innermost.is_installed:
            counts["innermost frame in a package"] += 1
            counts["shown with the user's line" if shown.file else "shown with the operation's path"] += 1
        counts["a package's line shown as the user's"] += is_installed(shown.file)
    return counts


if __name__ == "__main__":
    main()
