"""Pairs of legal executions of one program: whoever calls one of them wrong raises a false alarm."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from verdicts_programs import NEEDED_PASSES, Subject
from verdicts_runs import PLAIN, Leaves, Runs, cut, leaves_of

from hlotool.backends.numpy import NumpyBackend
from hlotool.errors import HlotoolError
from hlotool.ir.module import Module
from hlotool.ir.types import strip_layouts
from hlotool.parse.reader import parse_module

#: Inputs per program; fewer where every pair costs a compilation.
SEEDS = 5
SEEDS_PER_PASS = 2

#: Passes disabled per program.
PASSES = 8


@dataclass(frozen=True, eq=False)
class Pair:
    """Two executions to compare.

    Attributes:
        way: what differs, such as `numpy vs xla`.
        detail: of the way, such as the pass that was disabled.
        seed: of the inputs.
        module: the reference.
        arguments: of both.
        expected: result of the reference.
        actual: result of the other one.
        tested: the other program, where it is one.
    """

    way: str
    detail: str
    seed: int
    module: Module
    arguments: list[Any]
    expected: Leaves
    actual: Leaves
    tested: Module | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """An execution that could not be had, with the reason."""

    way: str
    detail: str
    reason: str


def legal_pairs(
    subject: Subject, runs: Runs, other_python: str, first_seed: int = 0
) -> Iterator[Pair | Failure]:
    """All pairs of a program.

    Args:
        subject: the program.
        runs: where executions come from.
        other_python: interpreter that has another version of jaxlib; empty for none.
        first_seed: of the inputs; those after it follow.
    """
    arguments = [subject.arguments(first_seed + number) for number in range(SEEDS)]
    try:
        executable = NumpyBackend().compile(subject.module)
        reference = [leaves_of(subject.module, executable.run(a)) for a in arguments]
    except HlotoolError as error:
        yield Failure("numpy", "", str(error))
        return
    plain: Sequence[Leaves] = ()
    for way, detail, spec, count in _variants(subject, runs, other_python):
        actual = runs.results(subject.module, subject.text, spec, arguments[:count])
        if isinstance(actual, str):
            yield Failure(way, detail, actual)
            continue
        results = [cut(a, r) for a, r in zip(actual, reference)]
        for seed, result in enumerate(results):
            yield Pair(way, detail, seed, subject.module, arguments[seed], reference[seed], result)
        if spec == PLAIN:
            plain = results
        elif plain:
            yield Pair("xla vs xla", spec, 0, subject.module, arguments[0], plain[0], results[0])
    if subject.optimized_module is not None:
        yield from _stages(subject, "before vs after", "", subject.optimized_module, arguments, reference)
    for path in subject.passes:
        tested = parse_module(path.read_text(encoding="utf-8"), path.name)
        yield from _stages(subject, "before vs every pass", path.name, tested, arguments[:1], reference[:1])


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
    subject: Subject,
    way: str,
    detail: str,
    tested: Module,
    arguments: list[list[Any]],
    reference: list[Leaves],
) -> Iterator[Pair | Failure]:
    """Another stage of the program in the same dump, on the numpy backend."""
    shapes = [[strip_layouts(p.shape) for p in m.entry.parameters] for m in (subject.module, tested)]
    if shapes[0] != shapes[1]:
        yield Failure(way, detail, "the parameters differ")
        return
    try:
        executable = NumpyBackend().compile(tested)
        results = [leaves_of(tested, executable.run(a)) for a in arguments]
    except HlotoolError as error:
        yield Failure(way, detail, str(error))
        return
    for seed, (values, expected, actual) in enumerate(zip(arguments, reference, results)):
        yield Pair(way, detail, seed, subject.module, values, expected, actual, tested)
