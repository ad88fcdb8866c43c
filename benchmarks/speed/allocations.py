"""What `inspect --memory` says of the peak, from a program's text alone, beside what XLA allocated for it.

    python -m benchmarks.gpu.dump_programs FOLDER --seed N --platform cpu
    python -m benchmarks.speed.allocations FOLDER … [--least 256K]

The truth is the buffer assignment in the same dump: all allocations in the device's own memory, but not
what threads keep for themselves. In programs smaller than `--least`, which are left out, the unit of
addresses decides.
"""

from __future__ import annotations

import argparse

from hlotool.checks.inspect.allocations import allocated_for
from hlotool.facts.memory import memory_of
from hlotool.runs.options.parsers import byte_size
from hlotool.sources.directory import open_dump
from hlotool.sources.stages import read_stage

#: How far the estimate may be off.
_NEAR = 0.05


def main() -> None:
    """Print a row for each program, and how many are near."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--least", type=byte_size, default=256 << 10, help="bytes of a program [256K]")
    options = parser.parse_args()
    print(f"{'program':40}{'allocated':>12}{'estimate':>12}{'ratio':>8}")
    for folder in options.folders:
        ratios = []
        for module in open_dump(folder).modules:
            allocated, _ = allocated_for(module)
            if module.after is None or allocated is None or allocated < options.least:
                continue
            estimate = memory_of(read_stage(module.after, reads_literals=False)).peak
            ratios.append(estimate / allocated)
            off = "" if abs(ratios[-1] - 1) <= _NEAR else " *"
            print(f"{module.name[:39]:40}{allocated:12}{estimate:12}{ratios[-1]:8.3f}{off}", flush=True)
        near = sum(abs(ratio - 1) <= _NEAR for ratio in ratios)
        print(f"{folder}: {near} of {len(ratios)} within {_NEAR:.0%}")


if __name__ == "__main__":
    main()
