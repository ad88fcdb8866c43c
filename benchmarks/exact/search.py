"""Searches in exact arithmetic, measured on planted faults.

    python -m benchmarks.exact.search hidden [--cases 100] [--seed 0] [--json FILE]
    python -m benchmarks.exact.search catalogue [--cases 100] [--seed 0] [--json FILE]

`hidden`: faults that rounding hides, each planted in one stage of a dump of all passes: by their values
neither that stage nor the last one is wrong. `bisect --exact` is asked for the pass and the instruction; the
bundle of what it finds is written and verified. Faults that show in values, or that are none of the function
(one ulp of a constant, what only a NaN would show), are counted and drawn again. The edit is made again in
later stages as long as that gives the same function.

`catalogue`: faults that show in values. The locator is asked on numbers and in exact arithmetic, from the
stage before the fault to the stage with it, and from the first stage to the last; where the programs are
the same function of real numbers, exact arithmetic has nothing to say.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import numpy as np

from benchmarks.blame.bisection import (
    Planted,
    Results,
    bisect,
    draw,
    judge,
    rows_of,
    sources,
    summary,
)
from benchmarks.blame.locate import Asked, Setting, asked, count
from benchmarks.blame.locate import summary as table
from hlotool.blame.bisection.records import CulpritRecord
from hlotool.blame.repro.bundle import write_bundle
from hlotool.blame.repro.making import bundle_of
from hlotool.blame.repro.verify import verify
from hlotool.errors import HlotoolError
from hlotool.inputs.recorded_values import Budget
from hlotool.judge.locate.report import divergence_record
from hlotool.judge.records import DivergenceRecord
from hlotool.judge.verdicts import Verdict
from hlotool.lab.faults import BELOW_ROUNDING, CATALOGUE
from hlotool.runs.exact.compare import compare
from hlotool.runs.exact.parting import open_search
from hlotool.runs.exact.points import Options
from hlotool.runs.exact.result import Relation
from hlotool.runs.options.kept import ReplayOptions

#: Seconds for each part of a search.
_SECONDS = 20.0


def is_hidden(case: Planted) -> bool:
    """Whether the programs are other functions where the fault came in and at the end, and no value is wrong.

    What is wrong by its values stays `wrong` where the same function is asked for.
    """
    return all(row.verdict is Verdict.UNEQUAL for row in rows_of(case, exact=True))


def hidden(cases: int, seed: int) -> tuple[Results, int]:
    """The cases, and of how many the bundle fails again in the same way."""
    results, verified = Results(), 0
    rng, folders = np.random.default_rng(seed), sources()
    for folder in folders:
        results.healthy += 1
        results.false_accusations += len(bisect(folder, exact=True).culprits)
    with tempfile.TemporaryDirectory() as root:
        number = 0
        while results.cases < cases:
            kind = BELOW_ROUNDING[number % len(BELOW_ROUNDING)]
            place = Path(root, str(number))
            case = draw(kind, folders, place, rng, results, is_hidden, exact=True)
            number += 1
            if case is not None:
                culprit = judge(case, results, exact=True)
                verified += culprit is not None and fails_again(culprit, place / "bundle")
                if results.cases % 10 == 0:
                    print(summary(results), file=sys.stderr, flush=True)
    return results, verified


def fails_again(culprit: CulpritRecord, folder: Path) -> bool:
    """Whether the bundle of a culprit, written and read, fails in the same way."""
    bundle = bundle_of(culprit, ReplayOptions(exact=True), {})
    if bundle is None:
        return False
    write_bundle(bundle, folder)
    return verify(folder).same


def catalogue(cases: int, seed: int) -> dict[str, Setting]:
    """What both locators find of faults that show in values."""
    rng, folders, drawn = np.random.default_rng(seed), sources(), Results()
    settings = ("adjacent stages", "first against last")
    found = {f"{name}, {how}": Setting() for name in settings for how in ("numbers", "exact")}
    done = number = 0
    with tempfile.TemporaryDirectory() as root:
        while done < cases:
            kind = CATALOGUE[int(rng.integers(len(CATALOGUE)))]
            case = draw(kind, folders, Path(root, str(number)), rng, drawn)
            number += 1
            if case is None:
                continue
            done += 1
            for one in asked(case):
                options = Options(given=(one.trial.arguments,))
                result = compare(*one.sides, options)
                if result.relation is Relation.UNEQUAL and not result.structural:
                    outputs = [leaf.index for leaf in result.leaves if leaf.relation is Relation.UNEQUAL]
                    one.count(found[f"{one.setting}, numbers"])
                    count_exact(one, outputs, options, found[f"{one.setting}, exact"])
    return found


def count_exact(one: Asked, outputs: list[tuple[int, ...]], options: Options, setting: Setting) -> None:
    """What the locator says in exact arithmetic."""
    began = time.perf_counter()
    record: DivergenceRecord | None = None
    try:
        search, differing = open_search(*one.sides, outputs, options, Budget(seconds=_SECONDS))
        with closing(search):
            record = divergence_record(search, search.first(differing), differing)
    except HlotoolError as error:
        print(one.case.source, one.case.kind.name, error, file=sys.stderr)
    setting.seconds.append(time.perf_counter() - began)
    count(setting, record, one.planted, one.sides[1].module, f"{one.case.source}, {one.case.kind.name}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("part", choices=["hidden", "catalogue"])
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", metavar="FILE")
    arguments = parser.parse_args()
    began = time.perf_counter()
    if arguments.part == "hidden":
        results, verified = hidden(arguments.cases, arguments.seed)
        print(summary(results))
        print(f"bundles that fail again in the same way: {verified} of {results.cases}")
        misses = results.misses
        data: dict[str, object] = {**vars(results), "verified": verified}
    else:
        found = catalogue(arguments.cases, arguments.seed)
        print(table(found))
        misses = [f"{name}: {miss}" for name, setting in found.items() for miss in setting.misses]
        data = {name: vars(setting) for name, setting in found.items()}
    print(f"seconds: {time.perf_counter() - began:.0f}")
    for miss in misses:
        print("miss:", miss)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(data, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
