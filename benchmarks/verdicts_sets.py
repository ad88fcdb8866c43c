"""Do further sets of inputs raise false alarms? Legal pairs of programs, on every set that there is.

    python benchmarks/verdicts_sets.py [--stages] [--passes] [--xla N] [--seed N] [--seconds S] [--only REGEX]

The pairs are those of `verdicts.py`, run on the sets of `hlotool run --thorough`, odd ones included, and
judged as it judges them:

- `--stages`: every program of the corpus before optimisation and after it, by numpy;
- `--passes`: before optimisation and after each pass of the dumps that have them, by numpy;
- `--xla N`: N programs of the corpus in a random order, numpy against real XLA, on the sets that suit other
  backends.

Whatever is called `wrong` is listed: it is a false alarm, or a fault of XLA's own that the sets have found.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
from verdicts_programs import NOT_HEALTHY, subjects

from hlotool.dump.directory import open_dump
from hlotool.findings.verdict import Answer
from hlotool.replay.options import RunOptions
from hlotool.replay.records import ModuleRecord
from hlotool.replay.run import replay_module
from hlotool.replay.task import Task

ROOT = Path(__file__).parents[1]


def tasks(arguments: argparse.Namespace, folder: Path) -> Iterator[tuple[str, Task]]:
    """The way of each pair, and the replay that judges it.

    Args:
        arguments: of the command line.
        folder: for the programs that XLA is given.
    """
    plain = RunOptions(
        seed=arguments.seed, budget=f"{arguments.seconds}", first_divergence=False, coverage=False
    )
    modules = [m for name in ("jax", "tf") for m in open_dump(str(ROOT / "corpus" / name)).modules]
    modules = [m for m in modules if m.pair is not None and re.search(arguments.only, m.title)]
    healthy = [m for m in modules if not NOT_HEALTHY.keys() & set(m.title.split("/"))]
    if arguments.stages:
        yield from (("before vs after", Task(m, plain)) for m in healthy)
    if arguments.passes:
        every = msgspec.structs.replace(plain, stages=("before_optimizations", "*"))
        yield from (("before vs every pass", Task(m, every)) for m in healthy if len(m.stages) > 2)
    on_xla = msgspec.structs.replace(plain, backend="xla")
    known = [subject for subject in subjects(arguments.only) if arguments.xla]
    for number in np.random.default_rng(arguments.seed).permutation(len(known))[: arguments.xla]:
        path = folder / f"{known[number].name.replace('/', '.')}.hlo"
        path.write_text(known[number].text, encoding="utf-8")
        [module] = open_dump(str(path)).modules
        yield "numpy vs xla", Task(module, on_xla)


def main() -> int:
    """Print the table; 1 where something is called wrong."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("--stages", action="store_true")
    parser.add_argument("--passes", action="store_true")
    parser.add_argument("--xla", type=int, metavar="N", default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=10.0, help="for the sets of one pair [10]")
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    pairs: Counter[str] = Counter()
    verdicts: dict[str, Counter[str]] = defaultdict(Counter)
    alarms = 0
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for way, task in tasks(arguments, Path(folder)):
            for row in replay_module(task):
                pairs[way] += row.inputs is not None
                sets = row.inputs.sets if row.inputs is not None else []
                verdicts[way].update(one.verdict.value for one in sets)
                if row.verdict.answer is Answer.BAD:
                    alarms += 1
                    print(f"alarm: {way}: {row.name} {row.stage_tested}: {_of(row)}", flush=True)
    print("| pairs | programs | on sets | verdicts |\n|---|---|---|---|")
    for way, counts in verdicts.items():
        words = ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())
        print(f"| {way} | {pairs[way]} | {counts.total()} | {words} |")
    print(f"\n{alarms} called wrong")
    return min(1, alarms)


def _of(row: ModuleRecord) -> str:
    inputs = row.inputs.description if row.inputs is not None else ""
    return f"{inputs}: {row.reason}"


if __name__ == "__main__":
    sys.exit(main())
