"""Plants faults of every kind at random instructions and random passes, and asks `bisect` who did it.

    python -m benchmarks.blame.bisection [--cases 500] [--seed 0] [--json FILE]

A case is a dump with the program after every pass. From a random pass on, a fault of the catalogue is in the
program: at the same instruction in later stages, as long as they have it, and then the rest of the history
stands still. A fault that the verdict does not see at the end of the history is no case for a bisection: it
is counted and drawn again. What is measured: the share of cases in which the accused pass is the planted one
and the instructions named hold a planted one; culprits on healthy dumps; comparisons against 3·log2(stages);
sizes of the reduced programs.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

import hlotool
from benchmarks import ROOT
from hlotool.blame.bisection.directory import Findings, bisect_directory
from hlotool.blame.bisection.records import CulpritRecord
from hlotool.blame.bisection.stages import (
    Question,
    StageOracle,
    judge_stage,
)
from hlotool.blame.reduction.case import Case, executed, terminates
from hlotool.blame.steps import Steps
from hlotool.errors import HlotoolError
from hlotool.inputs.generate import generate_inputs
from hlotool.inputs.given import npz_bytes
from hlotool.ir.module import Instruction, Module
from hlotool.ir.verifier import verify_or_raise
from hlotool.judge.verdicts import Answer
from hlotool.lab.faults import CATALOGUE, FaultKind, Site, poisoned
from hlotool.runs.exact.task import compare_modules
from hlotool.runs.options.kept import ReplayOptions
from hlotool.runs.records import ModuleRecord
from hlotool.runs.task import Task
from hlotool.sources.directory import open_dump
from hlotool.sources.loading import load_stage
from hlotool.sources.records import DumpModule
from hlotool.system.executor import Done
from hlotool.system.pool import Pool

CORPUS = ROOT / "corpus"

#: Draws of a place for one kind of fault before it is given up.
_DRAWS = 15

#: Verdicts on two results that are one.
_SAME = frozenset({"identical", "agree", "rounding"})


class Here(Pool):
    """In place of a pool of workers: everything runs in this process."""

    def __init__(self) -> None:
        self.notes = []

    def run(self, function: str, arguments: Iterable[object]) -> Iterator[Done]:
        module, _, name = function.partition(":")
        called = getattr(import_module(module), name)
        for index, argument in enumerate(arguments):
            yield Done(index, msgspec.msgpack.encode(called(argument)), 0.0)


@dataclass
class Planted:
    """A planted dump.

    Attributes:
        folder: of the dump.
        source: of the healthy one.
        kind: of fault.
        stage: label of the first wrong stage.
        names: instructions that the fault changed or added there.
        last_names: likewise in the last stage.
    """

    folder: Path
    source: str
    kind: FaultKind
    stage: str
    names: frozenset[str]
    last_names: frozenset[str]


@dataclass
class Results:
    """What the cases came to."""

    cases: int = 0
    module: int = 0
    right_pass: int = 0
    right_instruction: int = 0
    within_budget: int = 0
    invisible: int = 0
    false_accusations: int = 0
    healthy: int = 0
    sizes: list[int] = field(default_factory=list)
    judged: list[float] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)
    misses: list[str] = field(default_factory=list)

    def miss(self, text: str) -> None:
        self.misses.append(text)
        print("miss:", text, file=sys.stderr, flush=True)


def sources() -> list[Path]:
    """Dumps with the program after every pass, of one module and for one device."""
    found = []
    for folder in sorted([*(CORPUS / "jax").iterdir(), *(CORPUS / "tf").iterdir()]):
        if not folder.is_dir() or folder.name == "int4_product":
            continue
        modules = open_dump(folder).modules
        if len(modules) == 1 and len(modules[0].passes) > 5:
            found.append(folder)
    return found


@cache
def opened(folder: Path) -> DumpModule:
    return open_dump(folder).modules[0]


@lru_cache(maxsize=1024)
def loaded(folder: Path, number: int) -> Module:
    owner = opened(folder)
    return load_stage(owner, owner.stages[number])


def plant(
    kind: FaultKind, folder: Path, target: Path, rng: np.random.Generator, exact: bool = False
) -> Planted | None:
    """A dump with a fault at a random place; None when this kind does not fit there.

    Args:
        kind: of fault.
        folder: of the healthy dump.
        target: gets the planted one.
        rng: chooses.
        exact: the faulty stages are one function of real numbers, not only close to each other.
    """
    stages = opened(folder).stages
    first = int(rng.integers(1, len(stages)))
    module = loaded(folder, first)
    sites = kind.sites(module)
    if not sites:
        return None
    site = sites[int(rng.integers(len(sites)))]
    seed = int(rng.integers(1 << 30))
    try:
        arguments = poisoned(generate_inputs(loaded(folder, 0), 0).values, kind.poison)
        texts, last_names = planted_texts(kind, folder, first, site, seed, arguments, exact)
    except (HlotoolError, KeyError, ValueError, TypeError):
        return None
    target.mkdir(parents=True)
    for number, stage in enumerate(stages):
        content = texts.get(number)
        (target / stage.source.name).write_bytes(
            content.encode() if content is not None else stage.source.read_bytes()
        )
    (target / "inputs.npz").write_bytes(npz_bytes(arguments))
    names = changed_names(module, kind.plant(module, site, seed)) | {site.instruction}
    return Planted(target, folder.name, kind, stages[first].label, frozenset(names), last_names)


def changed_names(right: Module, wrong: Module) -> set[str]:
    """Instructions that are new or read, call or return something else."""
    old = {(c.name, i.name): described(i) for c in right.computations for i in c.instructions}
    roots = {c.name: c.root.name for c in right.computations}
    changed = {
        i.name
        for c in wrong.computations
        for i in c.instructions
        if old.get((c.name, i.name)) != described(i)
    }
    touched = {
        c.name
        for c in wrong.computations
        if roots.get(c.name) != c.root.name or changed & {i.name for i in c.instructions}
    }
    callers = {i.name for i in wrong.instructions() if touched & {c.name for c in i.called}}
    new_roots = {c.root.name for c in wrong.computations if roots.get(c.name) != c.root.name}
    return changed | callers | new_roots


def described(instruction: Instruction) -> tuple[object, ...]:
    """What an instruction does, by names."""
    plain = [(k, v) for k, v in instruction.attributes.items() if not list(instruction.called)]
    value = instruction.literal.array.tobytes() if instruction.opcode == "constant" else b""
    return instruction.opcode, tuple(o.name for o in instruction.operands), str(plain), value


def planted_texts(
    kind: FaultKind, folder: Path, first: int, site: Site, seed: int, arguments: Sequence[Any], exact: bool
) -> tuple[dict[int, str], frozenset[str]]:
    """The texts of the stages from `first` on, and what the fault changed in the last of them."""
    last = ""
    names: set[str] = set()
    texts: dict[int, str] = {}
    result: list[Any] = []
    for number in range(first, len(opened(folder).stages)):
        module = loaded(folder, number)
        if number == first or (result and site in kind.sites(module)):
            wrong = kind.plant(module, site, seed)
            verify_or_raise(wrong)
            if not terminates(Case(wrong, tuple(arguments)), 20 * executed(Case(module, tuple(arguments)))):
                raise ValueError("the faulty program does not end")
            made = hlotool.run(wrong, arguments)
            if number == first and all(map(same_bits, made, hlotool.run(module, arguments))):
                raise ValueError("the fault changes nothing")
            is_same = number == first or hlotool.compare(result, made, module=wrong).verdict.value in _SAME
            if is_same and exact and number > first:
                is_same = compare_modules(hlotool.parse(last), wrong).relation.value == "equal"
            if is_same:
                last, result = wrong.to_text(), made
                names = changed_names(module, wrong) | {site.instruction}
            else:
                # The same edit means another thing here: an inlined copy, another layout of the loop.
                result = []
        else:
            result = []
        texts[number] = last
    return texts, frozenset(names)


def same_bits(one: Any, other: Any) -> bool:
    return bool(one.tobytes() == other.tobytes())


def task_of(folder: Path, exact: bool = False) -> Task:
    inputs = folder / "inputs.npz"
    options = ReplayOptions(inputs=str(inputs) if inputs.exists() else None, exact=exact)
    return Task(replace(open_dump(folder).modules[0], artefacts=()), options)


def is_visible(case: Planted) -> bool:
    """Whether the verdict sees the fault where it came in, and at the end of the history."""
    return all(row.verdict.answer is Answer.BAD for row in rows_of(case))


def rows_of(case: Planted, exact: bool = False) -> Iterator[ModuleRecord]:
    """The stage with the fault and the last one, each compared with the first."""
    task = task_of(case.folder, exact)
    for number in sorted({first_wrong(case, task), len(task.module.stages) - 1}):
        yield judge_stage(Question(task, number))


def first_wrong(case: Planted, task: Task) -> int:
    """The number of the stage in which the fault comes in."""
    return next(n for n, stage in enumerate(task.module.stages) if stage.label == case.stage and n)


def bisect(folder: Path, exhaustive: bool = False, exact: bool = False) -> Findings:
    oracle = StageOracle(Here(), Steps())
    findings = Findings()
    bisect_directory([task_of(folder, exact)], oracle, findings, exhaustive)
    return findings


def judge(case: Planted, results: Results, exact: bool = False) -> CulpritRecord | None:
    """Bisect a case, count what came out, and return the first culprit."""
    results.cases += 1
    results.kinds[case.kind.name] += 1
    findings = bisect(case.folder, exact=exact)
    culprits = findings.culprits
    if not culprits:
        results.miss(f"{case.source}, {case.kind.name}, {case.stage}: nothing found")
        return None
    results.module += 1
    culprit = culprits[0]
    is_pass = len(culprits) == 1 and culprit.stage == case.stage
    is_instruction = is_pass and bool(named(culprit) & case.names)
    results.right_pass += is_pass
    results.right_instruction += is_instruction
    if not is_instruction:
        found = f"{[c.stage for c in culprits]} {culprit.instructions[-4:]} {culprit.evidence[-1][:80]}"
        results.miss(f"{case.source}, {case.kind.name}, {case.stage}, {sorted(case.names)[:4]}: {found}")
    if culprit.reduced_instructions is not None:
        results.sizes.append(culprit.reduced_instructions)
    [module] = findings.modules
    budget = 3 * math.log2(module.stages)
    results.judged.append(module.judged / budget)
    results.within_budget += module.judged <= budget
    return culprit


def named(culprit: CulpritRecord) -> set[str]:
    calls = {word.split(",")[0] for line in culprit.place for word in line.split("%")[1:]}
    return {*culprit.instructions, *calls, *([culprit.spot.inside] if culprit.spot else [])}


def run(cases: int, seed: int) -> Results:
    results = Results()
    folders = sources()
    for folder in folders:
        results.healthy += 1
        results.false_accusations += len(bisect(folder, exhaustive=True).culprits)
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as root:
        number = 0
        while results.cases < cases:
            kind = CATALOGUE[number % len(CATALOGUE)]
            case = draw(kind, folders, Path(root, str(number)), rng, results)
            number += 1
            if case is not None:
                judge(case, results)
                if results.cases % 25 == 0:
                    print(summary(results), file=sys.stderr, flush=True)
    return results


def draw(
    kind: FaultKind,
    folders: Sequence[Path],
    root: Path,
    rng: np.random.Generator,
    results: Results,
    suits: Callable[[Planted], bool] = is_visible,
    exact: bool = False,
) -> Planted | None:
    """A case whose fault shows, or that suits otherwise; `exact` as for `plant`."""
    for attempt in range(_DRAWS):
        folder = folders[int(rng.integers(len(folders)))]
        case = plant(kind, folder, root / str(attempt), rng, exact)
        if case is None:
            continue
        if suits(case):
            return case
        results.invisible += 1
    return None


def summary(results: Results) -> str:
    def share(count: int) -> str:
        return f"{count} of {results.cases} ({100 * count / max(results.cases, 1):.1f} %)"

    lines = [
        f"cases {results.cases}, kinds {len(results.kinds)}, drawn again as invisible {results.invisible}",
        f"module named       {share(results.module)}",
        f"pass named         {share(results.right_pass)}",
        f"instruction named  {share(results.right_instruction)}",
        f"healthy dumps {results.healthy}, accused on them {results.false_accusations}",
    ]
    if results.sizes:
        lines.append(
            f"reduced size: median {statistics.median(results.sizes):g}, largest {max(results.sizes)}"
        )
    if results.judged:
        lines.append(
            f"comparisons: within 3·log2(stages) {share(results.within_budget)}, "
            f"at most {max(results.judged):.2f} of it"
        )
    return "\n".join(lines)


def command_line(
    about: str | None,
    cases: int,
    run: Callable[[int, int], Any],
    summary: Callable[[Any], str],
    shares: Callable[[Any], dict[str, float]] = lambda results: {},
) -> None:
    """What benchmarks of planted cases are asked and print; `shares` of the results go into the JSON, too."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--cases", type=int, default=cases)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", metavar="FILE")
    arguments = parser.parse_args()
    start = time.perf_counter()
    results = run(arguments.cases, arguments.seed)
    print(summary(results))
    print(f"seconds: {time.perf_counter() - start:.0f}")
    for miss in results.misses:
        print("miss:", miss)
    if arguments.json:
        data = {**vars(results), **shares(results)}
        Path(arguments.json).write_text(json.dumps(data, indent=1), encoding="utf-8")


if __name__ == "__main__":
    command_line(__doc__, 500, run, summary)
