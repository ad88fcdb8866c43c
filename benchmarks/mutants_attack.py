"""Is what is proved equivalent the same? Mutants that no input should show, attacked by many of them.

    python benchmarks/mutants_attack.py [--programs corpus,generated] [--cases 300] [--seed 0] [--of-one 12]
                                        [--inputs 200] [--kinds FAMILY,…]

Mutants are drawn as by `mutants.py`; those with a proof (`hlotool.search.mutation.equivalence`) are run
beside the program that they were made from: on every directed set, odd ones included, then on arguments of
other seeds, until each was run so often. Results have to be the same but for the signs of zeros; what is
not, as where a sum has another order, is judged as a replay judges it. Whatever is called `wrong` is listed:
a proof that is none.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np
from mutants import Source, sources

from hlotool.backends.base import Value
from hlotool.directed.plan import directed_sets
from hlotool.directed.sets import PLAIN, InputSet
from hlotool.errors import HlotoolError
from hlotool.faults import FaultKind
from hlotool.faults.families import family_of
from hlotool.findings.verdict import Answer
from hlotool.replay.options import ReplayOptions
from hlotool.replay.program import Program, compile_program
from hlotool.search.comparing import compare_results
from hlotool.search.mutation.equivalence import same_at_ties, same_of_reals, same_to_the_bit
from hlotool.search.mutation.mutants import KINDS, Mutant, draw
from hlotool.values.generate import InputGenerator
from hlotool.values.npz import arrays_in
from hlotool.workers.work_limit import TooSlow, time_limit

#: Seconds for the runs of one mutant, and for a proof.
_SECONDS = 60.0


def arguments_of(program: Program, seed: int) -> Iterator[InputSet]:
    """The plain set, all directed ones, then plain ones of other seeds without end."""
    generator = InputGenerator(program.module)
    plain: tuple[Value, ...] = tuple(generator.draw(seed).values)
    yield InputSet(PLAIN, plain)
    yield from directed_sets(program.module, plain, seed)
    number = 3
    while plain:
        yield InputSet(f"seed +{number}", tuple(generator.draw(seed + number).values))
        number += 1


def proof_of(reference: Program, mutant: Mutant, sets: Sequence[InputSet]) -> str:
    """In words; empty without one."""
    if proof := same_to_the_bit(mutant):
        return proof
    tested = compile_program("mutant", "", mutant.module, "numpy", reference)
    return same_of_reals(reference, mutant, tested) or same_at_ties(reference, mutant, sets)


def same_but_for_zeros(one: Value, other: Value) -> bool:
    """Whether all arrays hold the same numbers, NaN where the other one has NaN."""
    pairs = zip(arrays_in(one), arrays_in(other), strict=True)
    return all(np.array_equal(a, b, equal_nan=a.dtype.kind in "fcV") for a, b in pairs)


def attack(mutant: Mutant, runs: Sequence[tuple[InputSet, Value]], right: Program) -> tuple[int, int, str]:
    """How often a mutant was run, how often its results were other ones, and the set that shows that it is
    wrong, empty without one."""
    tested = compile_program("mutant", "", mutant.module, "numpy", right)
    others = 0
    for number, (one, expected) in enumerate(runs):
        try:
            outcome = tested.runner.run(one.values, expected)
        except HlotoolError as error:
            return number, others, f"{one.name}: {error}"
        if same_but_for_zeros(outcome.value, expected):
            continue
        others += 1
        options = ReplayOptions(budget="5", first_divergence=False)
        row = compare_results(right, tested, one.values, expected, outcome, options)
        if row.verdict.answer is Answer.BAD:
            return number, others, f"{one.name}: {row.reason}"
    return len(runs), others, ""


def proved(
    source: Source, seed: int, kinds: Sequence[FaultKind], most: int, inputs: int
) -> Iterator[tuple[Mutant, str, Sequence[tuple[InputSet, Value]], Program]]:
    """Mutants of a program that have a proof, with the proof and the runs of the program."""
    rng = np.random.default_rng([seed, len(source.name)])
    for module in filter(None, (source.before, source.after)):
        program = compile_program("right", "", module, "numpy")
        if program.runner.copies > 1:
            return
        runs: list[tuple[InputSet, Value]] = []
        for mutant in draw(module, most, int(rng.integers(1 << 30)), kinds):
            if not runs:
                with time_limit(_SECONDS):
                    runs = list(islice(_runs(program, seed), inputs))
            with time_limit(_SECONDS):
                proof = proof_of(program, mutant, [one for one, _ in runs])
            if not proof:
                continue
            yield mutant, proof, runs, program


def _runs(program: Program, seed: int) -> Iterator[tuple[InputSet, Value]]:
    failures = 0
    for one in arguments_of(program, seed):
        try:
            yield one, program.runner.run(one.values).value
        except HlotoolError:
            failures += 1
            if failures > 1000:
                return


def main() -> int:
    """Print how many there were; 1 where a proof is none."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--programs", default="corpus,generated")
    parser.add_argument("--cases", type=int, default=300, help="mutants with a proof")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--of-one", type=int, default=12, help="mutants that are drawn of one program")
    parser.add_argument("--inputs", type=int, default=200, help="runs of each mutant")
    parser.add_argument("--kinds", metavar="FAMILY,…", help="families of faults; all by default")
    arguments = parser.parse_args()
    families = arguments.kinds.split(",") if arguments.kinds else [family_of(kind) for kind in KINDS]
    kinds = [kind for kind in KINDS if family_of(kind) in families]
    proofs: Counter[str] = Counter()
    by_family: Counter[str] = Counter()
    count = runs = others = wrong = fewest = programs = 0
    began = time.perf_counter()
    # Interrupted, it reports what was attacked until then.
    with contextlib.suppress(KeyboardInterrupt):
        for source in sources(arguments.programs.split(","), arguments.seed, arguments.cases):
            before = count
            try:
                for mutant, proof, known, right in proved(
                    source, arguments.seed, kinds, arguments.of_one, arguments.inputs
                ):
                    with time_limit(_SECONDS):
                        ran, differing, shown = attack(mutant, known, right)
                    count, runs, others = count + 1, runs + ran, others + (differing > 0)
                    fewest = ran if count == 1 else min(fewest, ran)
                    proofs[proof] += 1
                    by_family[family_of(mutant.kind)] += 1
                    if shown:
                        wrong += 1
                        where = f"{source.name} {mutant.site}"
                        print(f"no proof: {mutant.kind.name} at {where} ({proof}): {shown}", flush=True)
            except (HlotoolError, TooSlow) as error:
                print(f"left out: {source.name}: {error}", file=sys.stderr, flush=True)
            programs += count > before
            if count >= arguments.cases:
                break
    seconds = time.perf_counter() - began
    print(f"seed {arguments.seed}, {seconds:.0f} s, load {os.getloadavg()[0]:.1f}")
    print(f"{count} proved mutants of {programs} programs, {runs} runs, at least {fewest} of each")
    print(f"{others} differ by rounding somewhere, {wrong} are wrong")
    for what in (proofs, by_family):
        print("; ".join(f"{name}: {number}" for name, number in what.most_common()))
    return min(1, wrong)


if __name__ == "__main__":
    sys.exit(main())
