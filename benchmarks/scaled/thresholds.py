"""What other values of each threshold of smaller sizes do: false alarms, programs that stay, sizes.

    python -m benchmarks.scaled.thresholds [--seed S] [--only REGEX] [--models WORK --models-only REGEX]

The programs are those of `places.py` at the places of a seed, without a fault: whatever is `wrong`
there is a false alarm, and what is not scaled is not looked at. Of models that `models.py --work WORK` has
compiled nothing runs: what counts is what becomes of their sizes and constants.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from benchmarks.scaled.models import AFTER, BEFORE
from benchmarks.scaled.places import write_programs
from hlotool.errors import HlotoolError
from hlotool.ir.module import Module
from hlotool.parser.reader import parse_module
from hlotool.rewrite.scale import constraints, cut_points, mean_divisors, plan
from hlotool.rewrite.scale.limits import Limits
from hlotool.rewrite.scale.plan import scaled
from hlotool.runs.options.kept import RunOptions
from hlotool.runs.run import replay_module
from hlotool.runs.task import find_tasks

#: Where each threshold stands: modules that have it, its name, and on what it is tried.
_THRESHOLDS = (
    ((cut_points, constraints), "NEAR", ("places", "models")),
    ((cut_points,), "_MOST_SHARED", ("places", "models")),
    ((mean_divisors,), "_LEAST", ("models",)),
    ((mean_divisors,), "_ROUNDINGS", ("models",)),
    ((plan,), "RUNS_AT_LAST", ("models",)),
)
#: Of their values.
_FACTORS = (0, 0.5, 1, 2, 8)
_MEMORY, _SECONDS = 8 << 30, 120


@contextmanager
def changed(modules: tuple[ModuleType, ...], name: str, factor: float) -> Iterator[int]:
    """A threshold at some multiple of its value."""
    old: int = getattr(modules[0], name)
    new = round(old * factor)
    try:
        for module in modules:
            setattr(module, name, new)
        yield new
    finally:
        for module in modules:
            setattr(module, name, old)


def of_places(folder: str, seed: int) -> str:
    """Verdicts of the programs with the sizes that fit into little memory, in this process."""
    found = Counter[str]()
    for task in find_tasks([folder], RunOptions(scale="100K", seed=seed, first_divergence=False), []):
        for row in replay_module(task):
            found[row.verdict.value if row.scaled else "not scaled"] += 1
            found["bytes"] += row.scaled.scaled_memory if row.scaled else 0
    return ", ".join(f"{count:,} {what}" for what, count in sorted(found.items()))


def of_models(models: dict[str, dict[str, Module]]) -> str:
    """Constants that follow, and what executions of all of them are."""
    constants = work = places = 0
    failed = list[str]()
    for name, programs in models.items():
        try:
            found = scaled(programs, "auto", Limits(_MEMORY, _SECONDS))
        except HlotoolError:
            failed.append(name)
            continue
        if found is not None:
            constants += found.record.constants
            places += len(found.record.unseen)
            work += found.record.scaled_work
    said = f"{constants} constants follow, {places} places not seen, work {work:.3g}"
    return f"{said}; does not fit: {', '.join(failed)}" if failed else said


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seed", type=int, default=0, help="of places")
    parser.add_argument("--only", default="", help="regular expression of thresholds")
    parser.add_argument("--models", type=Path, help="folder of compiled models")
    parser.add_argument("--models-only", default="", help="regular expression of models")
    arguments = parser.parse_args()
    models = {
        folder.name: {name: parse_module((folder / name).read_text(), name) for name in (BEFORE, AFTER)}
        for folder in (sorted(arguments.models.iterdir()) if arguments.models else ())
        if (folder / AFTER).exists() and re.search(arguments.models_only, folder.name)
    }
    with tempfile.TemporaryDirectory() as folder:
        write_programs(Path(folder), arguments.seed)
        for modules, name, on in _THRESHOLDS:
            for factor in _FACTORS if re.search(arguments.only, name) else ():
                with changed(modules, name, factor) as value:
                    if "places" in on:
                        print(name, value, "places:", of_places(folder, arguments.seed), flush=True)
                    if models:
                        print(name, value, "models:", of_models(models), flush=True)


if __name__ == "__main__":
    main()
