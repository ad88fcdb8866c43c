"""Passes whose absence repairs a result: every smallest set of them.

That a pass repairs by its absence does not prove it guilty (it may only have opened the way for the fault);
it confirms what the stages say, and tells people how to live with the fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TypeVar

import msgspec

from hlotool._version import __version__
from hlotool.cache.fingerprint import digest
from hlotool.dump.names import Kind
from hlotool.dump.records import DumpModule
from hlotool.errors import HlotoolError
from hlotool.findings.verdict import Answer
from hlotool.replay.keys import context_key
from hlotool.replay.program import compile_program
from hlotool.replay.records import ModuleRecord
from hlotool.replay.rows import Actual, compare_row
from hlotool.replay.task import Task, failed_row
from hlotool.search.bisection.stage_oracle import StageOracle
from hlotool.search.bisection.stage_worker import stage_program, stage_trials
from hlotool.search.ddmin import minimize

FUNCTION = "hlotool.search.bisection.disabling:judge_without"

#: XLA cannot compile most programs without these (jaxlib 0.10.2), so they are left on unless accused.
NEEDED = frozenset(
    {
        "batched_gather_scatter_normalizer",
        "convolution-group-converter",
        "copy-insertion",
        "dot_decomposer",
        "flatten-call-graph",
        "fusion-wrapper",
        "gather_simplifier",
        "layout-assignment",
        "scatter_simplifier",
        "select_and_scatter_expander",
        "sub-byte-size-setter",
        "topk-decomposer",
    }
)

#: Sets that are looked for.
_LIMIT = 8


@dataclass(frozen=True, slots=True)
class WithoutQuestion:
    """Is the result right when a backend goes without some passes?

    Attributes:
        task: the module; its first stage is compiled.
        backend: spec of the backend, with the passes switched off.
        attempt: counts confirmations.
    """

    task: Task
    backend: str
    attempt: int = 0


def judge_without(question: WithoutQuestion) -> ModuleRecord:
    """Compile the first stage without the passes and compare its result with the reference's."""
    task = question.task
    try:
        reference = stage_program(task, 0)
        trial = stage_trials(task)[0]
        expected = reference.runner.run(trial.arguments).value
        tested = compile_program(question.backend, reference.path, reference.module, question.backend)
        outcome = tested.runner.run(trial.arguments, expected)
        return compare_row(task, reference, trial, expected, Actual.computed(tested, outcome))
    except HlotoolError as error:
        return failed_row(task, error, 0.0)


def without(backend: str, passes: Sequence[str]) -> str:
    """The spec of a backend that does not run `passes`: `xla:disable=algsimp+cse`."""
    separator = "," if ":" in backend else ":"
    return f"{backend}{separator}disable={'+'.join(passes)}" if passes else backend


def passes_that_changed(module: DumpModule) -> list[str]:
    """Names of the passes that left a dump, in order of first appearance."""
    stages = (s for s in module.stages if s.kind is Kind.PASS)
    found = dict.fromkeys(s.after_pass for s in stages if s.before_pass or not s.pipeline)
    return [name for name in found if name and name != "pipeline-start" and " " not in name]


@dataclass(frozen=True, slots=True)
class Repairs:
    """What switching passes off does.

    Attributes:
        sets: every smallest set of passes (up to a limit) without which the result is right.
        accused_alone: switching off the accused pass alone repairs the result.
    """

    sets: tuple[tuple[str, ...], ...]
    accused_alone: bool

    def evidence(self, accused: str) -> Iterator[str]:
        """Sentences for the report: without which passes the result is right."""
        if self.accused_alone:
            yield f"without {accused} (xla_disable_hlo_passes) the result is right: asked twice"
        for names in self.sets:
            if names != (accused,):
                together = " and ".join(names)
                yield f"without {together} the result is right as well; every smaller set leaves it wrong"
        if not self.sets:
            yield "no set of the passes that changed the program repairs the result by its absence"


def find_repairs(origin: Task, dump: DumpModule, backend: str, accused: str, oracle: StageOracle) -> Repairs:
    """Switch off passes until the result is right.

    Args:
        origin: the module as given.
        dump: of its compilation, which tells the passes that did something.
        backend: that gives the wrong result.
        accused: the pass that the stages accuse; empty when they accuse none.
        oracle: whose workers judge.
    """
    names = [name for name in passes_that_changed(dump) if name not in NEEDED and name != accused]
    if accused:
        names.append(accused)
    order = {name: number for number, name in enumerate(names)}

    def repaired(chosen: frozenset[str], attempt: int = 0) -> bool:
        spec = without(backend, sorted(chosen, key=order.__getitem__))
        key = digest(__version__, "without", context_key(origin.module, origin.options), spec, str(attempt))
        question = WithoutQuestion(origin, spec, attempt)
        value = oracle.call(key, f"without {', '.join(chosen) or 'nothing'}", FUNCTION, question)
        return value is not None and msgspec.convert(value, ModuleRecord).verdict.answer is Answer.GOOD

    attempts = count(1)
    sets = minimal_sets(names, repaired, lambda chosen: repaired(chosen, next(attempts)), _LIMIT)
    ordered = tuple(tuple(sorted(s, key=order.__getitem__)) for s in sets)
    return Repairs(ordered, (accused,) in ordered)


# All minimal sets with a property, such as: the passes that must be off for the failure to vanish.
#
# One minimal set hides the others. Every other minimal set lacks at least one of its members, so the search
# is repeated without each of them in turn (Reiter, A Theory of Diagnosis from First Principles, 1987).

T = TypeVar("T")

#: Times that a set is asked about again before it is believed.
CONFIRMATIONS = 2


def minimal_sets(
    items: Sequence[T],
    holds: Callable[[frozenset[T]], bool],
    confirm: Callable[[frozenset[T]], bool],
    limit: int = 16,
) -> list[frozenset[T]]:
    """The minimal subsets of `items` that have a property.

    Args:
        items: the whole set.
        holds: does the set have the property? Sets that contain one with the property should have it too.
        confirm: asks again, without any memory of earlier answers.
        limit: of the number of sets.

    Returns:
        the sets, in the order found, each confirmed `CONFIRMATIONS` times; empty when `items` has not got
        the property.
    """
    found: list[frozenset[T]] = []
    seen: set[frozenset[T]] = set()
    waiting: list[frozenset[T]] = [frozenset()]
    while waiting and len(found) < limit:
        excluded = waiting.pop(0)
        if excluded in seen:
            continue
        seen.add(excluded)
        known = next((s for s in found if not s & excluded), None)
        minimal = known or _one([item for item in items if item not in excluded], holds)
        if minimal is None:
            continue
        if minimal not in found and all(confirm(minimal) for _ in range(CONFIRMATIONS)):
            found.append(minimal)
        waiting += [excluded | {item} for item in items if item in minimal]
    return found


def _one(items: Sequence[T], holds: Callable[[frozenset[T]], bool]) -> frozenset[T] | None:
    """One minimal subset with the property."""
    if not holds(frozenset(items)):
        return None

    def first_holding(candidates: Sequence[tuple[T, ...]]) -> int | None:
        return next((i for i, c in enumerate(candidates) if holds(frozenset(c))), None)

    return frozenset(minimize(items, first_holding))
