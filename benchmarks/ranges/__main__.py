"""Does `prove` see what differs only in a range, a guard, a counter or a tie? Pairs drawn by seed.

Half of the pairs are written in another way and mean the same; half part where no ordinary point is, which a
witness shows: both programs are executed on it, by the NumPy backend in f32 and integers as they are.

    python -m benchmarks.ranges --seed 1 --pairs 320

False `equal`: said of programs that differ. False `unequal`: said of programs that are the same function.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.ranges.floats import FLOATS, in_context
from benchmarks.ranges.integers import INTEGERS
from benchmarks.ranges.orders import ORDERS
from benchmarks.ranges.text import Pair
from hlotool.backends.numpy import NumpyBackend
from hlotool.parser.reader import parse_module
from hlotool.runs.exact.records import ProvedRecord
from hlotool.runs.exact.sides import one_sided_text
from hlotool.runs.exact.task import ProveTask, prove
from hlotool.sources.directory import open_dump


def pairs(seed: int, count: int) -> Iterator[Pair]:
    """`count` pairs, every second one of programs that differ; the families take turns."""
    others = {**INTEGERS, **ORDERS}
    families = [*FLOATS, *others]
    for number in range(count):
        name, differs = families[number // 2 % len(families)], number % 2 == 0
        draw = random.Random(f"{seed} {number} {name}")
        if name in others:
            yield others[name](draw, differs)
            continue
        cores = FLOATS[name](draw, differs)
        if draw.random() < 0.5:
            cores = cores[1], cores[0], cores[2]
        yield in_context(draw, name, cores, differs, is_special=differs and name == "finite")


def shows(pair: Pair) -> bool:
    """Whether the two return different values for a witness."""
    programs = [NumpyBackend().compile(parse_module(text)) for text in (pair.left, pair.right)]
    for witness in pair.witnesses:
        one, other = (np.asarray(program.run(list(witness)), np.float64) for program in programs)
        with np.errstate(all="ignore"):
            if not np.allclose(one, other, rtol=1e-7, atol=0, equal_nan=True):
                return True
    return False


def verdict(pair: Pair, folder: Path, seed: int) -> ProvedRecord:
    """What `prove` says of it."""
    folder.mkdir(parents=True)
    for stage, text in (("before_optimizations", pair.left), ("cpu_after_optimizations", pair.right)):
        (folder / f"module_0000.m.{stage}.txt").write_text(text)
    [module] = open_dump(folder).modules
    assert module.pair is not None
    return prove(ProveTask("m", (module, module), *module.pair, trials=2, seed=seed, time_limit=60.0))


def main() -> None:
    """Print what is false, and a table of what was said."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pairs", type=int, default=320)
    parser.add_argument("--only", default="")
    parser.add_argument("--show", action="store_true", help="print the texts of what is false")
    parser.add_argument(
        "--verbose", action="store_true", help="print why pairs are neither equal nor unequal"
    )
    options = parser.parse_args()
    said: Counter[tuple[bool, str]] = Counter()
    by_family: Counter[tuple[str, str, bool]] = Counter()
    false: list[str] = []
    seconds, slowest = 0.0, 0.0
    with tempfile.TemporaryDirectory() as folder:
        for number, pair in enumerate(pairs(options.seed, options.pairs)):
            if options.only and not pair.family.startswith(options.only):
                continue
            if not pair.is_free and shows(pair) is not pair.differs:
                text = "\n".join([pair.left, pair.right, str(pair.witnesses)])
                raise AssertionError(f"pair {number} ({pair.family}) is not what it should be:\n{text}")
            began = time.perf_counter()
            try:
                record = verdict(pair, Path(folder) / str(number), options.seed)
            except Exception:
                print(number, pair.family, pair.left, pair.right, sep="\n")
                traceback.print_exc()
                false.append(f"{number} {pair.family}: internal error")
                continue
            spent = time.perf_counter() - began
            seconds, slowest = seconds + spent, max(slowest, spent)
            said[pair.differs, record.relation] += 1
            by_family[pair.family, record.relation, pair.differs] += 1
            is_false = record.relation == ("equal" if pair.differs else "unequal")
            is_false |= pair.is_special and record.relation == "unequal"
            if options.verbose and record.relation in ("equal where", "refused"):
                sides = [("first", one) for one in record.left_one_sided]
                sides += [("second", one) for one in record.right_one_sided]
                why = [one_sided_text(*side) for side in sides] or [leaf.reason for leaf in record.leaves]
                print(number, pair.family, "differ" if pair.differs else "same", *why, sep="\n    ")
            if options.verbose and spent > 5:
                print(number, pair.family, f"{spent:.1f} s")
            if is_false:
                false.append(f"{number} {pair.family}: {record.relation}")
                if options.show:
                    print(pair.left, pair.right, pair.witnesses, record, sep="\n")
    for (family, relation, differs), count in sorted(by_family.items()):
        print(f"{family:20} {'differ' if differs else 'same':8} {relation:12} {count}")
    print()
    for (differs, relation), count in sorted(said.items()):
        print(f"{'differ' if differs else 'same':8} {relation:12} {count}")
    print(
        f"{sum(said.values())} pairs, {seconds:.1f} s, the slowest {slowest:.1f} s; false: {len(false)}",
        *false,
        sep="\n  ",
    )


if __name__ == "__main__":
    main()
