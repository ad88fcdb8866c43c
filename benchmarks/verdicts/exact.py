"""What exact arithmetic changes about verdicts: on legal pairs, and on faults below rounding.

    python -m benchmarks.verdicts.exact [--only REGEX] [--faults N] [--seed N] [--thresholds]

Legal pairs are the programs of the corpus before and after optimisation, on three generated inputs each.
Faults are one float constant of an optimised program that is lost, or off by a millionth to a hundredth: many
of them are too small for a test of values. Each pair is judged by values alone and with the comparison as
functions; those whose bits are equal are not asked about, as in `hlotool run`.

With `--thresholds` the numbers that decide about the comparison are halved and doubled.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from msgspec import structs

from benchmarks.verdicts.programs import Subject, subjects
from hlotool.backends.numpy import NumpyBackend
from hlotool.errors import HlotoolError
from hlotool.facts import thresholds
from hlotool.facts.thresholds import Threshold
from hlotool.ir.arrays import Literal, dtype_of
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ArrayShape
from hlotool.judge.comparison import Comparison
from hlotool.judge.rules.judge import judge
from hlotool.judge.rules.judgement import judgement_of
from hlotool.lab.faults import CATALOGUE
from hlotool.lab.faults.edit import Edit
from hlotool.runs.exact.task import programs
from hlotool.runs.exact.within import comparing

#: What a constant is multiplied with.
FACTORS = (0.0, 1 + 1e-2, 1 + 1e-3, 1 + 1e-4, 1 + 1e-5, 1 + 1e-6)
#: Inputs of each legal pair.
SEEDS = 3


@dataclass(frozen=True, eq=False)
class Question:
    """Two programs and what both are run on.

    Attributes:
        name: of the program.
        change: of the tested program; empty where it is legal.
        reference: before optimisation.
        tested: after it.
        arguments: of both.
        seed: of the arguments.
    """

    name: str
    change: str
    reference: Module
    tested: Module
    arguments: list[Any]
    seed: int = 0

    def judged(self, exactly: bool) -> Comparison:
        """The verdict, by values alone or with the comparison as functions."""
        actual = NumpyBackend().compile(self.tested).run(self.arguments)
        arbiter = None
        if exactly:
            sides = programs(self.reference, self.tested)
            arbiter = comparing(*sides, seed=self.seed, arguments=self.arguments)
        judgement = judgement_of(
            self.reference, self.arguments, actual, tested=self.tested, compare_exactly=arbiter
        )
        return judge(judgement)


def legal_questions(chosen: Sequence[Subject], seed: int) -> Iterator[Question]:
    """Programs before and after optimisation."""
    for subject in chosen:
        for number in range(seed, seed + SEEDS):
            arguments = subject.arguments(number)
            yield Question(subject.name, "", subject.module, _optimized(subject), arguments, number)


def fault_questions(chosen: Sequence[Subject], seed: int, count: int) -> Iterator[Question]:
    """So many programs with one constant changed; the same for the same seed."""
    sites = [(subject, site) for subject in chosen for site in KIND.sites(_optimized(subject))]
    order = np.random.default_rng(seed).permutation(len(sites))[:count]
    for number, (subject, site) in enumerate(sites[n] for n in order):
        tested = KIND.plant(_optimized(subject), site, seed + number)
        yield Question(subject.name, str(site), subject.module, tested, subject.arguments(seed), seed)


def _optimized(subject: Subject) -> Module:
    module = subject.optimized_module
    assert module is not None
    return module


def _a_little(edit: Edit, constant: Instruction) -> None:
    shape, literal = constant.shape, constant.literal
    assert isinstance(shape, ArrayShape)
    assert literal is not None
    changed = literal.array.astype(np.float64) * edit.choose(FACTORS)
    constant.literal = Literal(shape, changed.astype(dtype_of(shape.element_type)))


#: As `constant 1 % off`, by other factors.
KIND = replace(next(kind for kind in CATALOGUE if kind.name == "constant 1 % off"), rewrite=_a_little)


def ask(questions: Sequence[Question], exactly: bool = True) -> list[str]:
    """The verdicts; `no verdict` where a program cannot be judged."""
    return [_verdict(question, exactly) for question in questions]


def _verdict(question: Question, exactly: bool) -> str:
    try:
        return question.judged(exactly).verdict.value
    except HlotoolError:
        return "no verdict"


def print_transitions(title: str, questions: Sequence[Question]) -> None:
    """Verdicts by values alone against those with exact arithmetic, and the time of both."""
    began = time.process_time()
    alone = ask(questions, exactly=False)
    middle = time.process_time()
    both = ask(questions)
    times = middle - began, time.process_time() - middle
    counts = Counter(zip(alone, both))
    columns = sorted(set(both))
    print(
        f"{title}: {len(questions)}; {times[0]:.1f} s by values alone, {times[1]:.1f} s with the comparison\n"
    )
    print("| by values | " + " | ".join(columns) + " |\n|---" * 1 + "|---" * len(columns) + "|")
    for row in sorted(set(alone)):
        print(f"| {row} | " + " | ".join(str(counts[row, column] or "") for column in columns) + " |")
    print()
    for question, verdict in zip(questions, both):
        if not question.change and verdict in ("differs", "wrong"):
            print(f"legal, and {verdict}: {question.name}, seed {question.seed}", file=sys.stderr)


def print_thresholds(questions: Sequence[Question]) -> None:
    """How many verdicts change when a threshold is halved or doubled."""
    usual = ask(questions)
    print(f"{len(questions)} pairs whose bits are not equal\n")
    print("| threshold | value | half | double |\n|---|---|---|---|")
    for name, value in vars(thresholds).items():
        if isinstance(value, Threshold) and value.table == thresholds.ARBITER:
            changed = [_changed(name, value, factor, questions, usual) for factor in (0.5, 2.0)]
            print(f"| {name} | {value.value:g} | {changed[0]} | {changed[1]} |", flush=True)


def _changed(
    name: str, value: Threshold, factor: float, questions: Sequence[Question], usual: Sequence[str]
) -> str:
    setattr(thresholds, name, structs.replace(value, value=value.value * factor))
    try:
        now = ask(questions)
    finally:
        setattr(thresholds, name, value)
    counts = Counter((before, after) for before, after in zip(usual, now) if before != after)
    return ", ".join(f"{n} {before} → {after}" for (before, after), n in counts.items()) or "0"


def main() -> int:
    """Print the tables; 1 when a legal pair differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", default="", help="regular expression for programs")
    parser.add_argument("--faults", type=int, default=200, help="how many are planted [200]")
    parser.add_argument("--seed", type=int, default=0, help="of inputs and faults [0]")
    parser.add_argument("--thresholds", action="store_true", help="halve and double what decides")
    arguments = parser.parse_args()
    chosen = [s for s in subjects(arguments.only) if s.optimized_module is not None]
    legal = list(legal_questions(chosen, arguments.seed))
    faults = list(fault_questions(chosen, arguments.seed, arguments.faults))
    if arguments.thresholds:
        everything = [*legal, *faults]
        said = ask(everything, exactly=False)
        print_thresholds([q for q, verdict in zip(everything, said) if verdict != "identical"])
        return 0
    print_transitions("legal pairs", legal)
    print_transitions("faults", faults)
    return 0


if __name__ == "__main__":
    sys.exit(main())
