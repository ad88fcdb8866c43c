"""What two programs are given at the points at which they are compared, and how many points it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, Final, Protocol

import numpy as np

from hlotool.backends.base import Backend
from hlotool.backends.field.constants import Constants
from hlotool.backends.field.meeting import meeting_numbers, with_meeting_floats
from hlotool.backends.field.unknown import with_drawn_floats
from hlotool.facts import thresholds
from hlotool.facts.decisions import Decision, Kind, decisions
from hlotool.facts.flow import CallGraph
from hlotool.inputs.generate import InputGenerator
from hlotool.ir.module import Instruction, Module
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import ArrayShape, ElementType, Shape, TupleShape, array_shapes
from hlotool.ir.walk import Context, context_of_callees, reachable
from hlotool.runs.device_arguments import arguments_by_part, device_arguments
from hlotool.runs.runners import Runner


class Side(Protocol):
    """One program of a pair, such as `runs.program.Program`."""

    @property
    def module(self) -> Module:
        """The program."""

    @property
    def compiled_by(self) -> Callable[[Backend], Runner]:
        """Compiles it, as a replay would run it."""


@dataclass(frozen=True, slots=True)
class Meeting:
    """A point at which numbers meet (`backends.field.meeting`).

    Attributes:
        number: of the point.
        specials: some of its numbers are NaN and infinity.
        words: the arguments, where they were solved for (`solving`).
    """

    number: int
    specials: bool = False
    words: Sequence[Any] | None = None


@dataclass(frozen=True, slots=True)
class Options:
    """How two programs are compared.

    Attributes:
        trials: points; `compare` takes more where few elements decide (`points`).
        seed: of the first one; the others follow.
        time_limit: for all of it, in seconds.
        most_points: that are taken for decisions of few elements; None for as many as these take.
        given: arguments whose integers and preds are taken in place of generated ones, in the first trials;
            where each device has its own, a tuple for each device.
        around: binary logarithm of the sizes that numbers have at the points, up to a factor of 2^8.
        covers: decisions that went one way get further points, on their other sides.
        meets: those get points at which numbers meet, too, and what decides by ties and NaN is asked.
        point_work: units of work that a point may be, and all of them three times as much: more of them are
            left out; None for no limit.
        meeting: what kind of such a point this one is; None for ordinary ones.
    """

    trials: int = 2
    seed: int = 0
    time_limit: float = 60.0
    given: Sequence[Sequence[Any]] = ()
    most_points: int | None = None
    around: float = 0.0
    covers: bool = True
    meets: bool = False
    point_work: float | None = None
    meeting: Meeting | None = None


def point_arguments(
    inputs: InputGenerator, runner: Runner, options: Options, number: int, constants: Constants | None = None
) -> Sequence[Any]:
    """What both programs are given at one point: one value per parameter, or a tuple for each device.

    Devices that hold the same part of a parameter get the same words.

    Args:
        inputs: of the reference.
        runner: of the reference.
        options: of the comparison.
        number: of the point.
        constants: of the trial, which points need at which numbers meet.
    """
    module, seed = inputs.module, options.seed + number
    if options.meeting is not None and options.meeting.words is not None:
        return options.meeting.words
    numbers = number_arguments(inputs, runner, options, number)

    def words(values: Sequence[Any], seed: int) -> tuple[Any, ...]:
        meeting = options.meeting
        if meeting is None:
            return with_drawn_floats(module, values, seed)
        assert constants is not None
        few = meeting_numbers(constants)
        return with_meeting_floats(module, values, seed, meeting.number, few, meeting.specials)

    if runner.copies == 1:
        return words(numbers, seed)
    return arguments_by_part(module, lambda device, part: words(numbers[device], seed + part))


def number_arguments(inputs: InputGenerator, runner: Runner, options: Options, number: int) -> Sequence[Any]:
    """The same before words take the place of floats: what to execute both programs on, to show numbers.

    Integers and preds repeat themselves after `trials` points, given ones are those of the first ones: what
    they show must not vanish at further points.
    """
    trial = number % options.trials
    if trial < len(options.given):
        return options.given[trial]
    seed = options.seed + trial
    if runner.copies == 1:
        return inputs.draw(seed).values
    return device_arguments(inputs.module, lambda part: inputs.draw(seed + part).values)


def sample_arguments(
    inputs: InputGenerator, runner: Runner, options: Options, number: int, apart: bool = False
) -> Sequence[Any]:
    """The same as numbers, and others for every `number`: what both programs are executed on, not proved.

    Floats become smaller from one to the next, and large again: beside large ones an epsilon shows nowhere.
    Those of different arguments have different sizes where they are to be `apart`: beside a parameter of 1
    an update of a millionth hides what made it.
    """
    numbers = number_arguments(inputs, runner, replace(options, trials=number + 1), number)
    factors = np.full(len(numbers), _FACTORS[number % len(_FACTORS)])
    if apart:
        drawn = np.random.default_rng((options.seed, number))
        factors *= 2.0 ** -drawn.integers(0, _BITS_APART, len(numbers))
    return [_scaled(value, *rest) for value, *rest in zip(numbers, runner.parameters, factors.tolist())]


#: By which floats are multiplied.
_FACTORS: Final = (1.0, 0.1, 0.01, 0.001)
#: Bits by which arguments are apart at most: rates of learning begin at a hundred-millionth.
_BITS_APART: Final = 30


def _scaled(value: Any, shape: Shape, factor: float) -> Any:
    """A value with its floats times a factor."""
    if isinstance(shape, TupleShape):
        return tuple(_scaled(part, element, factor) for part, element in zip(value, shape.elements))
    if not isinstance(shape, ArrayShape) or not shape.element_type.is_inexact:
        return value
    array = np.asarray(value)
    return (array * array.dtype.type(factor)).astype(array.dtype)


#: What looks at the sizes of floats. Where integers decide, all points of a kind decide alike.
_OF_SIZES: Final = frozenset(
    {
        Kind.CLAMPING,
        Kind.COMPARISON,
        Kind.CONVERSION,
        Kind.EXTREMUM,
        Kind.ORDER,
        Kind.SIGN,
        Kind.TIES,
    }
)


def points_for(*modules: Module) -> int:
    """How many points it takes to see what every decision of the programs does (`thresholds.DECISIONS`)."""
    return _for_so_many(thresholds.DECISIONS.value, (size for module in modules for size in _decided(module)))


def points_for_integers(module: Module) -> int:
    """How many points it takes to see what integers and preds in the arguments do (`thresholds.INTEGERS`).

    A number stands for all of a field, an integer only for itself. A single pred is both at any two points.
    """
    shapes = [shape for parameter in module.entry.parameters for shape in array_shapes(parameter.shape)]
    sizes = [shape.size for shape in shapes if _is_sampled(shape)]
    return _for_so_many(thresholds.INTEGERS.value, (size for size in sizes if size > 0))


def _is_sampled(shape: ArrayShape) -> bool:
    if shape.element_type is ElementType.PRED:
        return shape.size > 1
    return not shape.element_type.is_inexact


def _for_so_many(elements: float, sizes: Iterable[int]) -> int:
    """At how many points at least `elements` of each are looked at, as far as `most_points` allows."""
    fewest = min(sizes, default=None)
    return 1 if fewest is None else min(ceil(elements / max(1, fewest)), most_points())


def most_points() -> int:
    """See `thresholds.MOST_POINTS`.

    At other points than those at which programs were unequal, what showed there must not be missed; and
    modulo Q the root of a square has either sign by chance: one element shows it in every second point.
    """
    return int(thresholds.MOST_POINTS.value)


def _decided(module: Module) -> Iterator[int]:
    """The elements of each decision about floats that arguments have a part in; those of reducers apart."""
    calls = CallGraph(module)
    applied = {
        callee
        for instruction in calls.home
        if context_of_callees(instruction) is Context.EMBEDDED
        for called in instruction.called
        for callee in reachable(called)
    }
    for decision in decisions(calls):
        if calls.home[decision.instruction] in applied:
            continue
        if decision.kind in _OF_SIZES and any(map(_is_open, _operands(decision))):
            yield max(o.array_shape.size for o in _operands(decision))


def _operands(decision: Decision) -> list[Instruction]:
    """The floats that decide; those of a conversion from one float type to another do not."""
    result = decision.instruction.shape
    if decision.kind is Kind.CONVERSION and isinstance(result, ArrayShape) and result.element_type.is_inexact:
        return []
    operands = [decision.instruction.operands[number] for number in decision.operands]
    return [o for o in operands if isinstance(o.shape, ArrayShape) and o.shape.element_type.is_floating]


def _is_open(operand: Instruction) -> bool:
    while operand.opcode in opcodes_with(Trait.REGROUPS) | {"convert"}:
        (operand,) = operand.operands
    return operand.opcode != "constant"
