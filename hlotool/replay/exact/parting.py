"""The instruction at which two programs part as functions of real numbers.

The one search for faults (`hlotool.locate`) executes both at a random point of the field, where two values
correspond or do not: no rounding hides a difference, and none looks like one. What it finds it shows in
numbers, from a second execution of both.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from hlotool.backends.field.executable import FieldBackend
from hlotool.errors import Unsupported
from hlotool.ir.types import ShapeIndex
from hlotool.locate.execution import Subject
from hlotool.locate.locator import Search
from hlotool.locate.store import Budget
from hlotool.replay.devices.looking import leaves_of, subjects
from hlotool.replay.exact.arguments import Options, number_arguments, point_arguments
from hlotool.replay.exact.compare import Assumed, at_point, attempts, trial_of, with_points
from hlotool.replay.exact.result import Relation
from hlotool.replay.exact.subjects import Points
from hlotool.replay.program import Program
from hlotool.values.generate import InputGenerator


def open_search(
    reference: Program,
    tested: Program,
    outputs: Collection[ShapeIndex],
    options: Options,
    budget: Budget,
) -> tuple[Search, tuple[ShapeIndex, ...]]:
    """Two programs that are different functions, open for questions, and the outputs that show it.

    Args:
        reference: the program as it should be.
        tested: the other one.
        outputs: leaves of the result, of which one must differ.
        options: of `compare`; the budget takes the place of its time limit.
        budget: how much may be kept, and how many seconds each part of the search may take.

    Raises:
        BackendTimeout: finding a point takes too long.
        OutOfTime: recording an execution takes too long.
        Unsupported: as `parting`, or the calls of a program cannot be flattened.
    """
    found = parting(reference, tested, outputs, replace(options, time_limit=budget.seconds))
    return Search(*found.words, budget, numbers=found.numbers), found.outputs


@dataclass(frozen=True, slots=True)
class Parting:
    """Two programs that are different functions, and a point that shows it.

    Attributes:
        outputs: the leaves of the programs' own results that differ there, on whichever device.
        words: the reference and the tested program, computing with exact words.
        numbers: both, computing with numbers.
    """

    outputs: tuple[ShapeIndex, ...]
    words: tuple[Subject, Subject]
    numbers: tuple[Subject, Subject]


def parting(
    reference: Program, tested: Program, outputs: Collection[ShapeIndex], options: Options
) -> Parting:
    """The first point at which two programs differ, under what lets fewest of their results differ.

    Args:
        reference: the program as it should be.
        tested: the other one.
        outputs: leaves of the result, of which one must differ.
        options: of `compare`.

    Raises:
        BackendTimeout: the time limit is over.
        Unsupported: they have no meaning in the field, or no output is known to differ.
    """
    options = with_points(options, reference.module, tested.module)
    number, assumed, differing = next(_differences(reference, tested, outputs, options), (0, Assumed(), ()))
    if not differing:
        raise Unsupported("the programs are not known to be different functions")
    words = Points(reference, tested, options, number, assumed).subjects()
    given = number_arguments(InputGenerator(reference.module), reference.runner, options, number)
    return Parting(tuple(leaves_of(reference, differing)), words, subjects(reference, tested, given))


def _differences(
    reference: Program, tested: Program, outputs: Collection[ShapeIndex], options: Options
) -> Iterator[tuple[int, Assumed, tuple[ShapeIndex, ...]]]:
    """The points at which outputs differ, the assumption by which fewest do, and these outputs."""
    deadline = time.monotonic() + options.time_limit
    for number in range(options.trials):
        best: tuple[Assumed, tuple[ShapeIndex, ...]] | None = None
        for assumed in attempts(reference.module, tested.module):
            if assumed.roots:
                continue  # it has points of its own
            found = _differing(reference, tested, options, number, assumed, deadline)
            differing = tuple(index for index in found or () if index in outputs)
            if not differing and best is None:
                break
            # One point at which nothing differs by an assumption proves nothing: the outputs are unequal.
            if differing and (best is None or len(differing) < len(best[1])):
                best = assumed, differing
        if best is not None:
            yield number, *best


def _differing(
    reference: Program, tested: Program, options: Options, number: int, assumed: Assumed, deadline: float
) -> list[ShapeIndex] | None:
    """The leaves that differ at a point; None where there is nothing to assume."""
    trial = trial_of(reference.module, tested.module, assumed)
    engine = FieldBackend(trial, deadline, assumed.inequalities)
    runners = reference.compiled_by(engine), tested.compiled_by(engine)
    if assumed.inequalities and not engine.laws:
        return None
    inputs = InputGenerator(reference.module)
    arguments = point_arguments(inputs, runners[0], options, number, trial.constants)
    leaves = at_point(*runners, arguments, trial, options.seed + number, options.around)
    return [leaf.index for leaf in leaves if leaf.relation is Relation.UNEQUAL]
