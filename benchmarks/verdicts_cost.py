"""What an ensemble costs on programs of one operation on much data, over one run of the reference.

    python benchmarks/verdicts_cost.py [--only REGEX]

Four members are what nearly every verdict needs; a member more is what the others pay. On small programs the
fixed cost of planning the other executions shows instead; `verdicts.py` prints that.
"""

from __future__ import annotations

import argparse
import time
from statistics import median
from typing import Any

from modules import benchmark_modules

from hlotool.backends.numpy import NumpyBackend
from hlotool.parse.reader import parse_module
from hlotool.replay.judge.ensemble import Ensemble
from hlotool.replay.judge.judgement import side_of
from hlotool.values.generate import generate_inputs

_FIRST, _ALL = 4, 16


def measured(text: str, repeats: int = 5) -> tuple[float, float, float]:
    """Seconds of one run, of the first four members with planning, and of each further member."""
    module = parse_module(text)
    arguments: list[Any] = list(generate_inputs(module, 0).values)
    executable = NumpyBackend().compile(module)
    runs = []
    for _ in range(repeats):
        began = time.perf_counter()
        executable.run(arguments)
        runs.append(time.perf_counter() - began)
    times = [time.perf_counter()]
    ensemble = Ensemble(side_of(module, arguments), 0)
    for count in (_FIRST, _ALL):
        ensemble.members(count)
        times.append(time.perf_counter())
    return min(runs), times[1] - times[0], (times[2] - times[1]) / (_ALL - _FIRST)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", default="", help="regular expression for names")
    only: str = parser.parse_args().only
    ratios = []
    print("| program | one run, ms | four members, ms | ratio | a further member |\n|---|---|---|---|---|")
    for module in benchmark_modules([], only):
        if module.group == "bulk":
            run, first, further = measured(module.text)
            ratios.append(first / run)
            numbers = f"{1e3 * run:.2f} | {1e3 * first:.1f} | {first / run:.1f} | {further / run:.1f}"
            print(f"| {module.name} | {numbers} |", flush=True)
    print(f"\nmedian ratio {median(ratios):.1f}")


if __name__ == "__main__":
    main()
