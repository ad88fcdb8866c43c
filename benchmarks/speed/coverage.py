"""What it costs to see which outcomes the decisions of a program have, and how many there are.

    python -m benchmarks.speed.coverage [PATH…] [--repeats N] [--only REGEX] [--seed S] [--json]

PATH: as `replay.py`; by default single operations on much data, JAX programs and the corpus. A row: processor
time of a plain run and of an observed one, in milliseconds, least of several, one right after the other; the
observed one sees a program for the first time, so that nothing is known yet. `facts` is found out once
per program: decisions, and which outcomes are unreachable.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from statistics import geometric_mean
from typing import Any

from benchmarks.common.modules import BenchmarkModule, benchmark_modules
from hlotool.backends.numpy import NumpyBackend
from hlotool.errors import HlotoolError
from hlotool.inputs.coverage.observer import Instrumented
from hlotool.inputs.generate import generate_inputs
from hlotool.parser.reader import parse_module

#: Milliseconds from which a run counts as long: below, what is set up for a run is most of it.
_LONG = 5.0


@dataclass(frozen=True, slots=True)
class Row:
    """One program.

    Attributes:
        group: of `benchmark_modules`.
        name: of the program.
        covered: decisions of which every sensible outcome occurred, or cannot.
        decisions: that sensible inputs may answer in several ways.
        plain: milliseconds of a run.
        observed: of an observed one.
        facts: of what is found out once per program.
    """

    group: str
    name: str
    covered: int
    decisions: int
    plain: float
    observed: float
    facts: float

    @property
    def ratio(self) -> float:
        """Observed over plain."""
        return self.observed / self.plain


def measure(module: BenchmarkModule, repeats: int, seed: int) -> Row:
    """One row; raises HlotoolError where the program cannot be run here."""
    program = parse_module(module.text)
    arguments = list(generate_inputs(program, seed).values)
    executable = NumpyBackend().compile(program)
    began = time.process_time()
    instrumented = Instrumented(program)
    known = instrumented.program.settled, instrumented.program.unreachable
    facts = 1e3 * (time.process_time() - began)
    assert known is not None
    coverage = instrumented.run(arguments)
    plain, observed = [], []
    for _ in range(repeats):
        plain.append(_milliseconds(lambda: executable.run(arguments)))
        observed.append(_milliseconds(lambda: instrumented.run(arguments)))
    return Row(module.group, module.name, coverage.covered, coverage.total, min(plain), min(observed), facts)


def _milliseconds(run: Callable[[], Any]) -> float:
    began = time.process_time()
    run()
    return 1e3 * (time.process_time() - began)


def rows(options: argparse.Namespace) -> Iterator[Row]:
    """Every program that runs."""
    for module in benchmark_modules(options.paths, options.only):
        try:
            yield measure(module, options.repeats, options.seed)
        except HlotoolError as error:
            print(f"{module.name}: {error}"[:110], file=sys.stderr)


def summary(found: Sequence[Row]) -> dict[str, float]:
    """Figures over all rows."""
    long = [row for row in found if row.plain >= _LONG]
    plain, observed = sum(r.plain for r in found), sum(r.observed for r in found)
    return {
        "programs": len(found),
        "decisions": sum(row.decisions for row in found),
        "covered": sum(row.covered for row in found),
        "all_runs_ratio": observed / plain if plain else 0.0,
        "long_programs": len(long),
        "long_ratio": geometric_mean([row.ratio for row in long]) if long else 0.0,
        "long_worst": max((row.ratio for row in long), default=0.0),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("paths", nargs="*")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", default="")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found: list[Row] = []
    for row in rows(options):
        found.append(row)
        if not options.json:
            print(
                f"{row.name[-50:]:50} {row.covered:5} of {row.decisions:<5} {row.plain:9.2f} "
                f"{row.observed:9.2f} {row.ratio:7.2f} {row.facts:8.1f}",
                flush=True,
            )
    figures = summary(found)
    if options.json:
        print(json.dumps({**figures, "rows": [asdict(row) for row in found]}))
    else:
        print(*(f"{name}: {value:.4g}" for name, value in figures.items()), sep="\n")


if __name__ == "__main__":
    main()
