"""How many pairs of an alignment are right, and what each kind of evidence contributes to that.

    python -m benchmarks.blame.alignment            what the table of points in results/blame.md says

Two truths that the alignment does not see. Before and after optimisation: both programs are executed on the
same inputs, and a pair is right when its first values agree, wrong when they do not. From pass to pass: a
pair is wrong when there is a namesake of the same opcode on the other side, and that is not the partner.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import ROOT
from hlotool.backends.numpy import NumpyBackend
from hlotool.errors import HlotoolError
from hlotool.facts.alignment import similarity
from hlotool.facts.alignment.align import align
from hlotool.inputs.generate import generate_inputs
from hlotool.ir.edit_programs import flatten_calls
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ArrayShape
from hlotool.parser.reader import parse_module
from hlotool.system.resources import TooSlow, time_limit

CORPUS = ROOT / "corpus"
#: Programs of more instructions, and executions of more seconds, are left out: they take most of the time.
MOST_INSTRUCTIONS, MOST_SECONDS = 1500, 20.0
#: Elements of a value that are compared, and how far they may be apart: legal rewrites round differently.
ELEMENTS, RELATIVE = 512, 1e-3
#: What each weight is multiplied by to see what it decides.
FACTORS = (0.0, 0.5, 2.0)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two programs, and the first value of each instruction where they were executed.

    Attributes:
        left: one program, every call with a computation of its own.
        right: the other.
        values: of instructions of both; empty for stages of one compilation.
    """

    left: Module
    right: Module
    values: Mapping[Instruction, Any]


class FirstValues:
    """A probe that keeps a few elements of the first value of each instruction."""

    def __init__(self) -> None:
        self.found: dict[Instruction, Any] = {}

    def __call__(self, instruction: Instruction, value: Any) -> None:
        """Keep the value, if it is the first."""
        if instruction not in self.found and isinstance(value, np.ndarray | np.generic):
            flat = np.asarray(value).reshape(-1)
            sample = flat[:: max(1, flat.size // ELEMENTS)]
            self.found[instruction] = sample.astype(np.complex128)


def optimised_pairs() -> Iterator[Pair]:
    """Every program of the corpus before and after optimisation, executed on the same inputs."""
    for path in sorted(CORPUS.rglob("*before_optimizations.txt")):
        for other in sorted(path.parent.glob(path.name.replace("before", "*after", 1))):
            try:
                with time_limit(MOST_SECONDS):
                    pair = _executed(path, other)
            except (HlotoolError, TooSlow, ValueError, MemoryError):
                continue
            if pair is not None:
                yield pair


def _executed(path: Path, other: Path) -> Pair | None:
    modules = [flatten_calls(parse_module(p.read_text(), str(p))).module for p in (path, other)]
    if max(sum(1 for _ in module.instructions()) for module in modules) > MOST_INSTRUCTIONS:
        return None
    inputs = generate_inputs(modules[0]).values
    probe = FirstValues()
    for module in modules:
        NumpyBackend().compile(module).run(inputs, probe)
    return Pair(modules[0], modules[1], probe.found)


def pass_pairs() -> Iterator[Pair]:
    """Neighbouring dumps of the passes of one compilation."""
    for folder in sorted({path.parent for path in CORPUS.rglob("*.0001.*.txt")}):
        stages = [parse_module(path.read_text(), str(path)) for path in sorted(folder.glob("*.0*.txt"))]
        yield from (Pair(one, other, {}) for one, other in pairwise(stages) if one.name == other.name)


def judge(pair: Pair) -> Counter[str]:
    """How many pairs are right and wrong."""
    alignment = align(pair.left, pair.right)
    found: Counter[str] = Counter()
    if not pair.values:
        names = [{(i.opcode, i.name) for i in m.entry.instructions} for m in (pair.left, pair.right)]
        kept = names[0] & names[1]
        for one, other in alignment.pairs:
            if (one.opcode, one.name) in kept:
                found["kept" if one.name == other.name else "strange"] += 1
        return found
    for one, other in alignment.pairs:
        found.update(_agreement(pair, one, other))
    return found


def _agreement(pair: Pair, one: Instruction, other: Instruction) -> list[str]:
    """Whether their values agree; of other dimensions nothing can be said."""
    left, right = pair.values.get(one), pair.values.get(other)
    if left is None or right is None or left.size != right.size or _dims(one) != _dims(other):
        return []
    with np.errstate(all="ignore"):
        scale = np.nanmax(np.abs(left), initial=0.0)
        is_right = np.allclose(left, right, RELATIVE, RELATIVE * scale if np.isfinite(scale) else 0.0, True)
    return [f"pair {'right' if is_right else 'wrong'}"]


def _dims(instruction: Instruction) -> tuple[int, ...] | None:
    return instruction.shape.dims if isinstance(instruction.shape, ArrayShape) else None


def measure(pairs: list[Pair]) -> Counter[str]:
    """The sums over all pairs of programs."""
    total: Counter[str] = Counter()
    for pair in pairs:
        total.update(judge(pair))
    return total


#: What is counted, in the order of the table.
COLUMNS = ("pair right", "pair wrong", "kept", "strange")


def main() -> None:
    """Print a table: as it is, then with each weight left out, halved and doubled."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="*", help="these weights; none for the alignment as it is")
    parser.add_argument(
        "--factors", nargs="*", type=float, default=FACTORS, help="by which they are multiplied"
    )
    arguments = parser.parse_args()
    pairs = [*optimised_pairs(), *pass_pairs()]
    executed = sum(bool(pair.values) for pair in pairs)
    print(f"{executed} programs before and after optimisation, {len(pairs) - executed} pairs of passes")
    print(f"| weight | value | {' | '.join(COLUMNS)} |\n|---|--:|{'--:|' * len(COLUMNS)}")
    _row("as it is", "", measure(pairs))
    weights = {name: value for name, value in vars(similarity).items() if isinstance(value, float)}
    for name in weights if arguments.only is None else arguments.only:
        for factor in arguments.factors:
            setattr(similarity, name, weights[name] * factor)
            _row(name, f"{weights[name] * factor:g}", measure(pairs))
        setattr(similarity, name, weights[name])


def _row(name: str, value: str, found: Counter[str]) -> None:
    print(f"| {name} | {value} | {' | '.join(str(found[column]) for column in COLUMNS)} |")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
