"""Pairs of legal executions of one program: whoever calls one of them wrong raises a false alarm."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.verdicts.inputs import Case, further_cases, plain_cases
from benchmarks.verdicts.programs import NEEDED_PASSES, Subject
from benchmarks.verdicts.runs import PLAIN, Leaves, Runs, cut, leaves_of
from hlotool.backends.numpy import NumpyBackend
from hlotool.errors import HlotoolError
from hlotool.ir.module import Module
from hlotool.ir.types import strip_layouts
from hlotool.parser.reader import parse_module
from hlotool.system.resources import TooSlow, time_limit

#: Plain inputs per program; fewer where there are many programs to compare it with.
SEEDS = 5
SEEDS_PER_PASS = 2

#: Passes disabled per program.
PASSES = 8

#: Seconds for a run of another stage on inputs on which the reference comes to an end.
_SECONDS = 20.0


@dataclass(frozen=True, eq=False)
class Pair:
    """Two executions to compare.

    Attributes:
        way: what differs, such as `numpy vs xla`.
        detail: of the way, such as the pass that was disabled.
        case: the inputs of both.
        module: the reference.
        expected: result of the reference, or of the first of two others.
        actual: result of the other one.
        tested: the other program, where it is one.
    """

    way: str
    detail: str
    case: Case
    module: Module
    expected: Leaves
    actual: Leaves
    tested: Module | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """An execution that could not be had, with the reason; on one set of inputs, or on all of them."""

    way: str
    detail: str
    reason: str
    case: Case | None = None


def legal_pairs(
    subject: Subject, runs: Runs, other_python: str, first_seed: int = 0, sets: tuple[int, int] = (0, 0)
) -> Iterator[Pair | Failure]:
    """All pairs of a program.

    Args:
        subject: the program.
        runs: where executions come from.
        other_python: interpreter that has another version of jaxlib; empty for none.
        first_seed: of the inputs; those after it follow.
        sets: how many further sets every pair is run on: of those that suit other backends, and of others.
    """
    try:
        executable = NumpyBackend().compile(subject.module)
        plain = list(plain_cases(subject, executable, range(first_seed, first_seed + SEEDS)))
        further = further_cases(subject, executable, first_seed, *sets) if any(sets) else []
    except HlotoolError as error:
        yield Failure("numpy", "", str(error))
        return
    first: dict[Case, Leaves] = {}
    for way, detail, spec, count in _variants(subject, runs, other_python):
        cases = [*plain[:count], *further]
        actual = runs.results(subject.module, subject.text, spec, [case.arguments for case in cases])
        if isinstance(actual, str):
            yield Failure(way, detail, actual)
            continue
        for case, found in zip(cases, actual):
            if isinstance(found, str):
                yield Failure(way, detail, found, case)
                continue
            result = cut(found, case.expected)
            yield Pair(way, detail, case, subject.module, case.expected, result)
            if spec == PLAIN:
                first[case] = result
            elif case in first and case in (plain[0], *further):
                yield Pair("xla vs xla", spec, case, subject.module, first[case], result)
    if subject.optimized_module is not None:
        yield from _stages(subject, "before vs after", "", subject.optimized_module, [*plain, *further])
    for path in subject.passes:
        tested = parse_module(path.read_text(encoding="utf-8"), path.name)
        yield from _stages(subject, "before vs every pass", path.name, tested, [*plain[:1], *further])


def _variants(subject: Subject, runs: Runs, other_python: str) -> Iterator[tuple[str, str, str, int]]:
    """Way, detail, spec of the backend, number of inputs."""
    yield "numpy vs xla", "", PLAIN, SEEDS
    for level in (0, 1):
        yield f"optimisation level {level}", "", f"{PLAIN},opt={level}", SEEDS
    if other_python:
        yield "another jaxlib", "", f"{PLAIN},python={other_python}", SEEDS
    for name in _some_passes(subject, runs):
        yield "disabled pass", name, f"{PLAIN},disable={name}", SEEDS_PER_PASS


def _some_passes(subject: Subject, runs: Runs) -> list[str]:
    """Some of the passes that change the program: others for each program, the same every time."""
    names = [n for n in runs.effective_passes(subject.module, subject.text) if n not in NEEDED_PASSES]
    return sorted(names, key=lambda n: hashlib.sha256(f"{subject.name} {n}".encode()).digest())[:PASSES]


def _stages(
    subject: Subject, way: str, detail: str, tested: Module, cases: Sequence[Case]
) -> Iterator[Pair | Failure]:
    """Another stage of the program in the same dump, on the numpy backend."""
    shapes = [[strip_layouts(p.shape) for p in m.entry.parameters] for m in (subject.module, tested)]
    if shapes[0] != shapes[1]:
        yield Failure(way, detail, "the parameters differ")
        return
    try:
        executable = NumpyBackend().compile(tested)
    except HlotoolError as error:
        yield Failure(way, detail, str(error))
        return
    for case in cases:
        try:
            with time_limit(_SECONDS):
                result = leaves_of(tested, executable.run(case.arguments))
        except (HlotoolError, TooSlow) as error:
            yield Failure(way, detail, str(error), case)
            continue
        yield Pair(way, detail, case, subject.module, case.expected, result, tested)
