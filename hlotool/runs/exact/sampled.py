"""What is sampled and not proved: integers and preds on the sets of a replay; distances on its arguments.

What exact arithmetic calls another function may rest on a law that it does not know. But a law of real
numbers holds in f64, too, up to its roundings: where both programs are far apart there, whatever roundings
their constants may have, no law explains it.

No field decides which branch an integer takes, where an index leads or how often a loop goes round. What is
equal at the points that were drawn is therefore compared at one more point for each further set of inputs
(`directed`) whose integers and preds are others.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final

import numpy as np

from hlotool.backends.field.snapping import Tables
from hlotool.errors import BackendFailed, HlotoolError
from hlotool.facts import thresholds
from hlotool.facts.trip_counts import static_trip_count
from hlotool.inputs.adversarial.integer_extents import extent_sets
from hlotool.inputs.adversarial.sets import InputSet
from hlotool.inputs.generate import InputGenerator
from hlotool.ir.arrays import flatten
from hlotool.ir.module import Instruction, Module
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import ArrayShape, ShapeIndex, array_shapes
from hlotool.runs.device_arguments import further_sets
from hlotool.runs.exact.compare import compare
from hlotool.runs.exact.points import Options, Side, number_arguments
from hlotool.runs.exact.result import ExactResult, Relation
from hlotool.runs.exact.rounded import MOST_CONSTANTS, Samples, constants_of
from hlotool.runs.exact.sides import both
from hlotool.runs.other_inputs import Allowed, Limits
from hlotool.runs.program import Program
from hlotool.runs.runners import Runner
from hlotool.system.resources import UNITS_PER_SECOND, TooMuchWork, TooSlow, spend, work_limit

#: How many times as far off as any is known to be each constant may be: this accuses.
_MARGIN: Final = 4
#: Leaves that are apart after which no more are asked about.
_FEW: Final = 4
_STEPPING: Final = opcodes_with(Trait.TO_INTEGER) | {"remainder", "stochastic-convert"}
#: Work that it may be.
_WORK: Final = 2.0 * UNITS_PER_SECOND


def with_distance(reference: Side, tested: Side, result: ExactResult, options: Options) -> ExactResult:
    """`result`, of which some unequal leaves say how far they are apart in f64 on the first arguments.

    A program with tables of its own says nothing: a compiler may have computed and rounded each element. Nor
    do programs with steps: 10 · 0.7 is 7 in f32, and less in f64, where the constant is that of f32.

    Args:
        reference: as it should be.
        tested: the other one.
        result: of their comparison.
        options: of it.
    """
    accused = {leaf.index for leaf in result.leaves if leaf.relation is Relation.UNEQUAL and leaf.witness}
    constants = [
        replace(one, most=_MARGIN * one.most) for one in constants_of(reference.module, tested.module)
    ]
    modules = reference.module, tested.module
    if not accused or len(constants) > MOST_CONSTANTS or Tables(*modules).sizes or any(map(_steps, modules)):
        return result
    deadline = time.monotonic() + options.time_limit
    unit, least = thresholds.SAME_FIT.value, thresholds.APART_IN_F64.value
    apart: dict[ShapeIndex, float] = {}
    try:
        with work_limit(_WORK):
            samples = Samples(reference, tested, constants, options, deadline, is_smooth=False)
            for index in sorted(accused, key=samples.distance, reverse=True):
                if unit * samples.distance(index) <= least or sum(o > least for o in apart.values()) >= _FEW:
                    break
                apart[index] = unit * samples.unexplained(index)
    except HlotoolError as error:
        if isinstance(error, BackendFailed) and error.here:
            raise
    except TooMuchWork:
        spend(0)  # raises again where somebody else's limit is reached
    leaves = [replace(leaf, apart=apart.get(leaf.index, 0.0)) for leaf in result.leaves]
    return replace(result, leaves=leaves)


def _steps(module: Module) -> bool:
    """Whether something makes integers of floats, in whatever type."""
    return any(
        i.opcode in _STEPPING or (i.opcode == "convert" and _is_float(i.operands[0]) and not _is_float(i))
        for i in module.instructions()
    )


def _is_float(instruction: Instruction) -> bool:
    return any(part.element_type.is_inexact for part in array_shapes(instruction.shape))


#: Sets that are compared: each is a point.
_MOST: Final = 16
#: Work of making them: so many times what the comparison was, and as much in any case.
_FACTOR: Final = 1.0
_LEAST: Final = 0.5 * UNITS_PER_SECOND
#: Sets of integers where widths end.
_MOST_EXTENTS: Final = 64
#: Where loops count them: what a counter of 16 bits does not hold comes last, and may be too much work.
_MOST_TRIPS: Final = 1 << 16
#: Work that one set may be, beyond the least of several comparisons at ordinary points.
_SET_WORK: Final = 0.06 * UNITS_PER_SECOND
#: The share of the time that is left that each of the steps may take.
_SHARE: Final = 0.25


@dataclass(frozen=True, slots=True)
class Sampled:
    """What further sets say of two programs that are equal at random points.

    Attributes:
        result: of the points together, or of the one that shows the programs to be unequal.
        sets: on which both were compared.
        shown_by: the set that shows them to be unequal, if any does.
        options: of the comparison at that point.
    """

    result: ExactResult
    sets: int = 0
    shown_by: InputSet | None = None
    options: Options | None = None


def on_further_sets(
    reference: Program, tested: Side, result: ExactResult, options: Options, work: int
) -> Sampled:
    """The result of `compare` after the further sets; the same where these have no other integers.

    Args:
        reference: the program as it should be.
        tested: the other one.
        result: both are equal.
        options: of that comparison.
        work: units that it was.
    """
    result = replace(result, counts_integers=True)
    options = replace(options, point_work=max(_SET_WORK, work))
    end = time.monotonic() + options.time_limit - result.seconds
    limits = Limits(Allowed(_LEAST + _FACTOR * work, _SHARE * (end - time.monotonic())))
    sets = list(_others(reference, max(1, result.trials), options, limits))
    return _on_sets(reference, tested, result, options, [*_extents(reference, tested, options), *sets], end)


def _on_sets(
    reference: Program,
    tested: Side,
    result: ExactResult,
    options: Options,
    sets: Sequence[InputSet],
    end: float,
) -> Sampled:
    """`result`, of equal programs, after some sets, until `end` in `time.monotonic`."""
    if not sets or time.monotonic() >= end:
        return Sampled(result)
    together = compare(
        reference, tested, _options(options, sets, options.seed, _SHARE * (end - time.monotonic()))
    )
    if together.is_equal:
        seconds = result.seconds + together.seconds
        sides = both(result.one_sided, together.one_sided)
        return Sampled(replace(result, seconds=seconds, one_sided=sides), together.trials)
    # One of them shows it, or cannot be evaluated, which says nothing of the others.
    count = 0
    shown = [leaf.witness.seed - options.seed for leaf in together.leaves if leaf.witness is not None]
    for number in dict.fromkeys([*(n for n in shown if 0 <= n < len(sets)), *range(len(sets))]):
        one = sets[number]
        left = end - time.monotonic()
        if left <= 0:
            break
        alone = _options(options, [one], options.seed + number, left)
        found = compare(reference, tested, alone)
        count += found.relation is not Relation.REFUSED
        if found.relation is Relation.UNEQUAL:
            return Sampled(found, count, one, alone)
        if found.is_equal:
            result = replace(result, one_sided=both(result.one_sided, found.one_sided))
    return Sampled(result, count)


def _extents(reference: Program, tested: Side, options: Options) -> list[InputSet]:
    """Sets of integers where widths and signs end, small ones first.

    There are none for devices with arguments of their own. Where arguments decide how often a loop goes
    round, numbers are no larger than what is counted in a moment.
    """
    modules = (reference.module, tested.module)
    if reference.runner.copies > 1:
        return []
    plain = number_arguments(InputGenerator(reference.module), reference.runner, options, 0)
    most = _MOST_TRIPS if any(map(_has_open_loops, modules)) else None
    return list(islice(extent_sets(modules, plain, most), _MOST_EXTENTS))


def _has_open_loops(module: Module) -> bool:
    return any(i.opcode == "while" and static_trip_count(i) is None for i in module.instructions())


def _options(options: Options, sets: Sequence[InputSet], seed: int, seconds: float) -> Options:
    """A point for each set and no more."""
    count = len(sets)
    given = [one.values for one in sets]
    return replace(
        options,
        trials=count,
        most_points=count,
        seed=seed,
        time_limit=seconds,
        given=given,
        covers=False,
        point_work=options.point_work,
    )


def _others(reference: Program, points: int, options: Options, limits: Limits) -> Iterator[InputSet]:
    """Sets whose integers and preds none before has, nor any of so many points."""
    runner = reference.runner
    inputs = InputGenerator(reference.module)
    plain = [number_arguments(inputs, runner, replace(options, trials=points), n) for n in range(points)]
    seen = {_decisive(runner, values) for values in plain}
    if seen == {b""}:
        return
    sets = further_sets(reference.module, plain[0], options.seed, copies=runner.copies)
    count = 0
    while count < _MOST and not limits.are_reached():
        try:
            with limits.hold():
                one = next(sets, None)
        except (TooMuchWork, TooSlow):
            return
        if one is None:
            return
        if (integers := _decisive(runner, one.values)) not in seen:
            seen.add(integers)
            count += 1
            yield one


def _decisive(runner: Runner, values: Sequence[Any]) -> bytes:
    """What no field draws: the arrays of integers and preds."""
    return b"".join(
        np.asarray(array).tobytes()
        for parameter, value in zip(runner.parameters, values)
        for _, shape, array in flatten(parameter, value)
        if isinstance(shape, ArrayShape) and not shape.element_type.is_inexact
    )
