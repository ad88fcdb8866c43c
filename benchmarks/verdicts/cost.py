"""What verdicts cost: an ensemble over one run of the reference, a wrong program over the healthy one.

    python -m benchmarks.verdicts.cost [ensemble] [wrong] [--only REGEX] [--seed N] [--faults N]
                                       [--dumps DIR …]

*ensemble*: programs of one operation on much data. Four members are what nearly every verdict needs; a member
more is what the others pay. On small programs the fixed cost of planning the other executions shows instead;
`benchmarks.verdicts` prints that.

*wrong*: programs with many outputs, of the corpus, of JAX and in `--dumps`, with an early fault planted in
the optimised text (`wrong_cost`), judged alone and with the search for the first wrong instruction.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from statistics import median
from typing import Any

from benchmarks.common.modules import benchmark_modules
from benchmarks.verdicts.wrong_cost import costs
from hlotool.backends.numpy import NumpyBackend
from hlotool.inputs.generate import generate_inputs
from hlotool.judge.rules.ensemble import Ensemble
from hlotool.judge.rules.judgement import side_of
from hlotool.parser.reader import parse_module
from hlotool.system.pool import worker_environment

_FIRST, _ALL = 4, 16


def measured(text: str, repeats: int = 5) -> tuple[float, float, float, float]:
    """Seconds of one run, of planning it, of the first four members with planning, of each further member."""
    module = parse_module(text)
    arguments: list[Any] = list(generate_inputs(module, 0).values)
    began = time.perf_counter()
    executable = NumpyBackend().compile(module)
    planning = time.perf_counter() - began
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
    return min(runs), planning, times[1] - times[0], (times[2] - times[1]) / (_ALL - _FIRST)


def print_ensembles(only: str) -> None:
    """The table of programs of one operation."""
    ratios = []
    print("| program | one run, ms | four members, ms | ratio | over plan and run | a further member |")
    print("|---|---|---|---|---|---|")
    for module in benchmark_modules([], only):
        if module.group == "bulk":
            run, planned, first, further = measured(module.text)
            ratios.append((first / run, first / (run + planned)))
            numbers = (
                f"{1e3 * run:.2f} | {1e3 * first:.1f} | {first / run:.1f} | {first / (run + planned):.1f}"
            )
            print(f"| {module.name} | {numbers} | {further / run:.1f} |", flush=True)
    runs, plans = zip(*ratios)
    print(f"\nmedian ratio {median(runs):.1f}, over plan and run {median(plans):.1f}")


def print_wrong_programs(dumps: list[str], only: str, seed: int, faults: int) -> None:
    """The table of programs with many outputs."""
    found: list[tuple[float, float]] = []
    print("| program | fault | outputs | wrong | healthy, s | judged, s | ratio | located, too, s | ratio |")
    print("|---|---|---|---|---|---|---|---|---|")
    for cost in costs(dumps, only, seed, faults):
        judged, whole = cost.judged / cost.healthy, cost.whole / cost.healthy
        numbers = f"{cost.outputs} | {cost.wrong} | {cost.healthy:.2f} | {cost.judged:.2f} | {judged:.1f}"
        print(f"| {cost.name} | {cost.fault} | {numbers} | {cost.whole:.2f} | {whole:.1f} |", flush=True)
        found.append((judged, whole))
    print(f"\n{len(found)} wrong programs")
    for what, ratios in zip(("judged", "located, too"), zip(*found)):
        print(f"{what}: {median(ratios):.1f} times the healthy one in the median, {max(ratios):.1f} at most")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="ensemble|wrong", help="both by default")
    parser.add_argument("--only", default="", help="regular expression for names")
    parser.add_argument("--seed", type=int, default=0, help="of the faults")
    parser.add_argument("--faults", type=int, default=6, help="per program")
    parser.add_argument("--dumps", nargs="*", default=[], metavar="DIR", help="more dumps")
    arguments = parser.parse_args()
    # What BLAS and the memory allocator read once is as in a worker. With threads of BLAS' own their waiting
    # for each other, and without arrays that are kept their way to the system and back, was most of what was
    # measured.
    if not worker_environment(1).keys() <= os.environ.keys():
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], worker_environment(1))
    parts = arguments.parts or ["ensemble", "wrong"]
    if "ensemble" in parts:
        print_ensembles(arguments.only)
    if "wrong" in parts:
        print_wrong_programs(arguments.dumps, arguments.only, arguments.seed, arguments.faults)


if __name__ == "__main__":
    main()
