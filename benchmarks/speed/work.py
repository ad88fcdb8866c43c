"""Work beside the clock: are a module's units of work about nanoseconds, whatever it does?

    python -m benchmarks.speed.work [PATH…] [--sets 12] [--seed 0] [--each]

What a replay of each module does, part by part: programs are read, arguments drawn, run; further sets are
made in the order of a replay, the reference runs on them and is observed. For each part the processor's time
per unit of work: the sum over all modules, and how modules spread around it. The prices stand in
`hlotool/facts/work.py` and where they are spent.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import count
from typing import TypeVar

import numpy as np

from benchmarks import ROOT
from hlotool.errors import HlotoolError
from hlotool.inputs.adversarial.plan import directed_sets
from hlotool.inputs.adversarial.solved import solved_sets
from hlotool.inputs.coverage.observer import Instrumented
from hlotool.runs.options.kept import ReplayOptions
from hlotool.runs.program import load_program
from hlotool.runs.runners import OneDevice
from hlotool.runs.trials import trials
from hlotool.sources.directory import open_dump
from hlotool.sources.records import DumpModule
from hlotool.system.resources import work_done

T = TypeVar("T")


class Parts:
    """Nanoseconds of the processor and units of work, by part."""

    def __init__(self) -> None:
        self.took: dict[str, tuple[float, int]] = defaultdict(lambda: (0.0, 0))

    def part(self, name: str, do: Callable[[], T]) -> T:
        """Do something that belongs to a part."""
        began, done = time.process_time_ns(), work_done()
        try:
            return do()
        finally:
            seconds, work = self.took[name]
            self.took[name] = seconds + time.process_time_ns() - began, work + work_done() - done


def measured(module: DumpModule, seed: int, sets: int) -> Parts:
    """The parts of one module's replay."""
    parts = Parts()
    options = ReplayOptions(seed=seed)
    reference = parts.part("read", lambda: load_program(module, module.stages[0], "numpy"))
    if not isinstance(reference.runner, OneDevice):
        return parts
    trial = parts.part("drawn", lambda: next(trials(module, reference.module, options)))
    parts.part("run", lambda: reference.runner.run(trial.arguments))
    observing = parts.part("prepared", lambda: Instrumented(reference.module))
    parts.part("observed first", lambda: observing.run(trial.arguments))
    every = directed_sets(reference.module, trial.arguments, seed)
    for _ in range(sets):
        one = parts.part("set made", lambda: next(every, None))
        if one is None:
            break
        values = one.values
        parts.part("run", lambda values=values: reference.runner.run(values))
        parts.part("observed", lambda values=values: observing.run(values))
    parts.part("solved", lambda: list(solved_sets(reference.module, trial.arguments, seed)))
    return parts


def modules(paths: list[str]) -> Iterator[DumpModule]:
    """All modules with a program."""
    for path in paths:
        yield from (module for module in open_dump(path).modules if module.stages)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paths", nargs="*", default=[str(ROOT / "corpus" / name) for name in ("jax", "tf")])
    parser.add_argument("--sets", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--each", action="store_true", help="a line for each module and part, too")
    arguments = parser.parse_args()
    rows: dict[str, list[tuple[float, int]]] = defaultdict(list)
    number = count()
    for module in modules(arguments.paths):
        try:
            found = measured(module, arguments.seed, arguments.sets)
        except HlotoolError as error:
            print(f"left out: {module.title}: {error}")
            continue
        next(number)
        for name, took in found.took.items():
            rows[name].append(took)
            if arguments.each:
                print(f"{module.title:50} {name:15} {took[0] / 1e6:9.2f} ms {took[1] / 1e6:9.2f} M")
    print(f"{next(number)} modules\n")
    print("part             ns/unit  10 % of modules  median  90 %    all: ms")
    for name, own in rows.items():
        took, work = np.array([one for one in own if one[1]], float).reshape(-1, 2).T
        if not work.size:
            print(f"{name:15}  no work is counted; {sum(one[0] for one in own) / 1e6:.0f} ms")
            continue
        low, middle, high = np.quantile(took / work, [0.1, 0.5, 0.9])
        ratio = took.sum() / work.sum()
        print(f"{name:15} {ratio:8.2f} {low:16.2f} {middle:7.2f} {high:5.2f} {took.sum() / 1e6:10.0f}")


if __name__ == "__main__":
    main()
