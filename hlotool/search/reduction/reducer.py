"""The order of a reduction: what removes most comes first, and again after whatever opened new ways."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hlotool.errors import Unsupported
from hlotool.search.reduction.case import Case
from hlotool.search.reduction.case_worker import Outcome
from hlotool.search.reduction.devices import drop_devices
from hlotool.search.reduction.flatten import flatten
from hlotool.search.reduction.nested import simplify_nested
from hlotool.search.reduction.oracle import CaseOracle
from hlotool.search.reduction.shapes import shrink_shapes
from hlotool.search.reduction.subgraph import minimize_entry
from hlotool.search.reduction.values import simplify_types, simplify_values

_Step = Callable[[Case, CaseOracle], Case]

#: What a reduction does to the graph, until none of it makes the program smaller.
_GRAPH: tuple[tuple[str, _Step], ...] = (
    ("instructions", minimize_entry),
    ("calls and loops", flatten),
    ("nested computations", simplify_nested),
    ("devices", drop_devices),
)

#: What it does to the data, each until nothing gets smaller.
_DATA: tuple[tuple[str, _Step], ...] = (
    ("shapes", shrink_shapes),
    ("types", simplify_types),
    ("values", simplify_values),
)


@dataclass(frozen=True, slots=True)
class Reduction:
    """What a reduction came to.

    Attributes:
        case: the smallest program found that fails in the same way.
        before: instructions of the original.
        failure: how it fails.
        reason: in one line.
        passing: a program that does not fail and is nearest to it; None when none was seen.
        notes: what could not be tried.
    """

    case: Case
    before: int
    failure: str
    reason: str
    passing: Case | None
    notes: tuple[str, ...] = ()


def reduce_case(case: Case, oracle: CaseOracle) -> Reduction:
    """Make a failing program small.

    Args:
        case: the program; it must fail.
        oracle: judges programs.

    Raises:
        UsageError: it does not fail.
    """
    oracle.steps.listener.phase("does it fail?", 1)
    first = oracle.lock(case)
    case.device = _failing_device(case, first)
    before, notes = case.size, dict[str, None]()
    while True:
        known = case.key
        case = _until_stable(case, oracle, _GRAPH, notes)
        case = _until_stable(case, oracle, _DATA, notes)
        if case.key == known:
            break
    passing = oracle.closest_passing(case)
    reason = oracle.reason or first.reason
    return Reduction(case, before, str(oracle.locked), reason, passing, tuple(notes))


def _failing_device(case: Case, outcome: Outcome) -> int:
    """The first of the devices whose result is wrong, where that is known."""
    outputs = outcome.row.signature.outputs if outcome.row is not None else ()
    return outputs[0][0] if case.copies > 1 and outputs else 0


def _until_stable(
    case: Case, oracle: CaseOracle, steps: tuple[tuple[str, _Step], ...], notes: dict[str, None]
) -> Case:
    while True:
        known = case.key
        for name, step in steps:
            oracle.steps.listener.phase(f"{name}: {case.size} instructions")
            try:
                case = step(case, oracle)
            except Unsupported as error:
                notes[f"{name}: {error}"] = None
        if case.key == known:
            return case
