"""Do further sets of inputs raise false alarms where programs run on several devices?

    python -m benchmarks.verdicts.sets [--seed N] [--seconds S] [--only REGEX]

Every program of the corpus for several devices, before optimisation and after it, by numpy, on the sets of
`hlotool run --thorough`. All others are pairs of `benchmarks.verdicts`, and are run on such sets there.

Whatever is called `wrong` is listed: it is a false alarm, or a fault of XLA's own that the sets have found.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator

from benchmarks import ROOT
from hlotool.errors import HlotoolError
from hlotool.judge.verdicts import Answer
from hlotool.runs.options.kept import RunOptions
from hlotool.runs.run import replay_module
from hlotool.runs.task import Task
from hlotool.sources.directory import open_dump
from hlotool.sources.loading import load_stage
from hlotool.sources.records import DumpModule


def programs(only: str) -> Iterator[DumpModule]:
    """Programs with two stages for several devices, whose names match."""
    for name in ("jax", "tf"):
        for module in open_dump(str(ROOT / "corpus" / name)).modules:
            if module.pair is None or not re.search(only, module.title):
                continue
            with contextlib.suppress(HlotoolError):
                text = load_stage(module, module.pair[0])
                if text.replica_count * text.num_partitions > 1:
                    yield module


def main() -> int:
    """Print the table; 1 where something is called wrong."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=10.0, help="for the sets of one pair [10]")
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    options = RunOptions(
        seed=arguments.seed, budget=f"{arguments.seconds}", first_divergence=False, coverage=False
    )
    verdicts: Counter[str] = Counter()
    pairs = alarms = 0
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for row in (
            row for module in programs(arguments.only) for row in replay_module(Task(module, options))
        ):
            pairs += row.inputs is not None
            verdicts.update(one.verdict.value for one in (row.inputs.sets if row.inputs is not None else []))
            if row.verdict.answer is Answer.BAD:
                alarms += 1
                on = row.inputs.description if row.inputs is not None else ""
                print(f"alarm: {row.name} {row.stage_tested}: {on}: {row.reason}", flush=True)
    words = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common())
    print(f"{pairs} programs, {verdicts.total()} runs on sets: {words}; {alarms} called wrong")
    return min(1, alarms)


if __name__ == "__main__":
    sys.exit(main())
