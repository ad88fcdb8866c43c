"""Evaluates two programs at the same random points and compares what they return, leaf by leaf."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import inf
from typing import Any, Final

from hlotool.backends.field.constants import Constants, constant_values
from hlotool.backends.field.executable import FieldBackend
from hlotool.backends.field.meeting import meeting_numbers, turns, with_simple_floats
from hlotool.backends.field.snapping import Rule
from hlotool.backends.field.trial import Trial
from hlotool.backends.field.unknown import BlackBox
from hlotool.errors import BackendFailed, BackendTimeout, HlotoolError
from hlotool.facts import thresholds
from hlotool.facts.absorbed import absorbed_constants
from hlotool.inputs.generate import InputGenerator
from hlotool.ir.arrays import flatten
from hlotool.ir.module import Module
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import array_shapes, leaves
from hlotool.runs.exact.further_points import Further, Meetings, Start, on_other_sides, one_sided
from hlotool.runs.exact.numbers import OnNumbers, without_own_order
from hlotool.runs.exact.points import (
    Options,
    Side,
    most_points,
    point_arguments,
    points_for,
    points_for_integers,
)
from hlotool.runs.exact.result import ExactResult, LeafResult, Relation, compared, explained, worst
from hlotool.runs.exact.rounded import excused
from hlotool.runs.exact.sides import Watched
from hlotool.runs.runners import Runner, parameter_difference
from hlotool.system.resources import TooMuchWork, spend, work_done, work_limit

#: The part of the time that is left to see whether an unequal output is no more than rounded constants.
_FOR_NUMBERS: Final = 0.2
#: See `Options.point_work`.
_POINTS: Final = 3


def compare(reference: Side, tested: Side, options: Options | None = None) -> ExactResult:
    """Whether `tested` computes the same function of real numbers as `reference`.

    What is refused is part of the result; errors of other kinds than HlotoolError are bugs and raise.
    """
    options = options or Options()
    began = time.monotonic()
    end = began + options.time_limit
    deadline = end - _FOR_NUMBERS * options.time_limit
    least, for_roots = options.trials, with_points(options, reference.module, tested.module, integers=False)
    options = with_points(options, reference.module, tested.module)
    further = attempts(reference.module, tested.module)
    first = next(further)
    own = trial_of(reference.module, tested.module, first)
    result = _attempt(reference, tested, options, least, deadline, first, own)
    doubt = ""
    # What the others assume is looked for only where the first one leaves something open.
    while not (result.is_equal or result.refused or result.structural):
        assumed = next(further, None)
        if assumed is None:
            break
        if assumed.zeros and (result.around or result.meeting is not None):
            continue  # elsewhere both are equal with the constants as they are: something decides by them
        if assumed.roots and result.relation is not Relation.UNEQUAL:
            continue  # it takes long, and what is refused for an unknown function hardly ever needs it
        # Few points serve roots; to ask for all integers as well leaves none.
        other = _attempt(reference, tested, for_roots if assumed.roots else options, least, deadline, assumed)
        doubt = other.refused if assumed.roots else ""
        result = _united(result, other)
    result = excused(reference, tested, result, options, end, doubt)
    if result.relation is Relation.UNEQUAL and result.decides_by_floats:
        result = without_own_order(reference, tested, result, options, own)
    return replace(result, seconds=time.monotonic() - began)


def with_points(options: Options, reference: Module, tested: Module, *, integers: bool = True) -> Options:
    """With as many trials as it takes to see what few elements of the programs decide, and few integers."""
    wanted = max(points_for(reference, tested), points_for_integers(reference) if integers else 1)
    return replace(options, trials=max(options.trials, min(wanted, options.most_points or most_points())))


@dataclass(frozen=True, slots=True)
class Assumed:
    """What an attempt assumes beyond the laws of the field.

    Attributes:
        zeros: sizes of constants too small to matter, which are 0, as where 1 - 1e-38 was folded to 1.
        inequalities: of real numbers, by which |x| is x where x is known not to be negative. They are not
            assumed at once: what only one of two programs shows would tell them apart.
        logarithms: log(a b) = log(a) + log(b), in place of exp(a + b) = exp(a) exp(b).
        roots: √x √x = x, at points where all that is under a root is a square.
    """

    zeros: frozenset[float] = frozenset()
    inequalities: bool = False
    logarithms: bool = False
    roots: bool = False


_LOGARITHMS = frozenset({"log", "log-plus-one"})
#: They compute exponentials.
_EXPONENTIALS = opcodes_with(Trait.EXPONENTIAL)
#: They take roots.
_ROOTS = opcodes_with(Trait.ROOT)


def _united(result: ExactResult, other: ExactResult) -> ExactResult:
    """Leaves that are equal by either attempt are equal: each is a proof."""
    proved = {leaf.index: leaf for leaf in other.leaves if leaf.relation is Relation.EQUAL}
    leaves = [
        leaf if leaf.relation is Relation.EQUAL else proved.get(leaf.index, leaf) for leaf in result.leaves
    ]
    if leaves == list(result.leaves):
        return result
    return replace(
        result,
        leaves=leaves,
        trials=min(result.trials, other.trials),
        laws=list(dict.fromkeys([*result.laws, *other.laws])),
        constants=list(dict.fromkeys([*result.constants, *other.constants])),
        one_sided=list({side.identity: side for side in (*result.one_sided, *other.one_sided)}.values()),
    )


def attempts(*modules: Module) -> Iterator[Assumed]:
    """Nothing is assumed at first, then what it takes where programs are unequal without."""
    yield Assumed()
    zeros = _negligible(*modules)
    yield from [Assumed(zeros=zeros)] if zeros else []
    if _takes_logarithms(*modules):
        yield Assumed(logarithms=True)
    yield Assumed(inequalities=True)
    yield from [Assumed(zeros=zeros, inequalities=True)] if zeros else []
    if any(i.opcode in _ROOTS for module in modules for i in module.instructions()):
        yield Assumed(roots=True)


def _negligible(*modules: Module) -> frozenset[float]:
    """The sizes of constants too small to matter: anywhere, or beside those that they are added to."""
    values = [{abs(value) for value in constant_values(module)} for module in modules]
    tiny = {value for value in set().union(*values) if 0 < value < thresholds.TINY_CONSTANT.value}
    absorbed = [absorbed_constants(module) for module in modules]
    # What one program uses otherwise stays in both.
    others = [sizes - own for sizes, own in zip(values, absorbed)]
    return frozenset(tiny | set().union(*absorbed).difference(*others))


def _attempt(
    reference: Side,
    tested: Side,
    options: Options,
    least: int,
    deadline: float,
    assumed: Assumed,
    trial: Trial | None = None,
) -> ExactResult:
    """What is found at the options' points, or at as many as there is time for, but at `least` so many."""
    trial = trial or trial_of(reference.module, tested.module, assumed)
    watched: list[Watched] = []

    def watching(module: Module, is_reference: bool) -> Watched:
        watched.append(Watched(module, trial, is_reference))
        return watched[-1]

    engine = FieldBackend(trial, deadline, assumed.inequalities, watching)
    try:
        runners = reference.compiled_by(engine), tested.compiled_by(engine)
        if difference := _structural_difference(*runners):
            return ExactResult(structural=difference)
        if assumed.inequalities and not engine.laws:
            return ExactResult(refused="no inequality is known")
        found = _at_points(*runners, trial, assumed, reference.module, options, least, watched)
        if not found:
            return ExactResult(refused=f"{trial.roots} roots: at no point all that is under them is a square")
        further = Further()
        if all(leaf.relation is Relation.EQUAL for leaves in found for leaf in leaves):
            numbers = cache(lambda: OnNumbers(reference, tested))
            further = _further(*runners, trial, reference.module, options, watched, assumed, numbers)
    except HlotoolError as error:
        if isinstance(error, BackendFailed) and error.here:
            raise
        return ExactResult(refused=str(error))
    boxes = _boxes(engine)
    laws = [f"{', '.join(f'{zero:.6g}' for zero in sorted(assumed.zeros))} is 0"] if assumed.zeros else []
    laws += ["log(a b) = log(a) + log(b)"] if assumed.logarithms else []
    laws += ["√x √x = x"] if assumed.roots else []
    laws += sorted(law.value for law in engine.laws)
    return ExactResult(
        leaves=explained([worst(leaf) for leaf in zip(*found, *further.found)], *boxes),
        trials=len(found) + len(further.found),
        laws=laws,
        constants=_readings(trial.constants),
        boxes=boxes,
        one_sided=further.one_sided,
        around=further.around,
        meeting=further.meeting,
        decides_by_floats=any(program.asks_of_floats for program in watched),
    )


def _at_points(
    reference: Runner,
    tested: Runner,
    trial: Trial,
    assumed: Assumed,
    module: Module,
    options: Options,
    least: int,
    watched: Sequence[Watched],
) -> list[list[LeafResult]]:
    """What every leaf is at each point; nothing where no points are found that serve.

    Where one point shows every leaf to be unequal there are no more.
    """
    wanted = options.trials
    if assumed.logarithms or assumed.roots:
        wanted = max(wanted, most_points())
    found: list[list[LeafResult]] = []
    missing = set(range(options.trials)) if _takes_integers(module) else set()
    tried = int(thresholds.POINTS_FOR_ROOTS.value) if assumed.roots else wanted
    inputs = InputGenerator(module)
    end = inf if options.point_work is None else work_done() + _POINTS * options.point_work
    for number in range(tried):
        if work_done() > end:
            return found
        forget = [program.remembered() for program in watched] if options.point_work is not None else []
        try:
            arguments = point_arguments(inputs, reference, options, number, trial.constants)
            with work_limit(options.point_work or inf):
                leaves = at_point(reference, tested, arguments, trial, options.seed + number, options.around)
        except (BackendTimeout, TooMuchWork) as error:
            if options.point_work is not None and isinstance(error, TooMuchWork):
                spend(0)  # raises again where somebody else's limit is reached
                for one in forget:
                    one(0)
                continue
            if assumed.roots or len(found) < least:
                raise
            return found
        if not trial.imaginary_roots:
            found.append(leaves)
            missing.discard(number % options.trials)
            if leaves and all(leaf.relation is Relation.UNEQUAL for leaf in leaves):
                return found
        if len(found) >= wanted and not missing:
            return found
        is_hopeless = number >= tried // 4 and 8 * len(found) < wanted
        if trial.roots > thresholds.ROOTS.value or (assumed.roots and is_hopeless):
            break
    return found if options.point_work is not None else []


def _further(
    reference: Runner,
    tested: Runner,
    trial: Trial,
    module: Module,
    options: Options,
    watched: Sequence[Watched],
    assumed: Assumed,
    numbers: Callable[[], OnNumbers],
) -> Further:
    """What points on the other sides of decisions show of programs that are equal so far.

    There are none where all that is under a root has to be a square: such points are searched for elsewhere.
    """
    if not options.covers or assumed.roots:
        return Further(one_sided=one_sided(watched))
    inputs = InputGenerator(module)

    def at(point: Options) -> Sequence[LeafResult]:
        arguments = point_arguments(inputs, reference, point, 0, trial.constants)
        leaves = at_point(reference, tested, arguments, trial, point.seed, point.around)
        if point.meeting is None or all(leaf.relation is Relation.EQUAL for leaf in leaves):
            return leaves
        if point.meeting.specials or any(program.leaves_order_open for program in watched):
            return ()  # a sort says nothing of the order that it leaves open
        # Real numbers say nothing of x / 0, and words nothing that numbers do not show.
        trial.watches_infinities = True
        at_point(reference, tested, arguments, trial, point.seed, point.around)
        trial.watches_infinities = False
        if trial.has_infinities:
            return ()
        unequal = {leaf.index for leaf in leaves if leaf.relation is not Relation.EQUAL}
        return () if unequal <= numbers().compared(arguments, trial).near else leaves

    further = on_other_sides(at, watched, options)
    unequal = any(leaf.relation is not Relation.EQUAL for leaves in further.found for leaf in leaves)
    if unequal or not options.meets:
        return further
    numbers_there = meeting_numbers(trial.constants)
    arguments = point_arguments(inputs, reference, options, 0, trial.constants)
    start = None
    if reference.copies == 1:
        simple = with_simple_floats(module, arguments, options.seed)
        start = Start(module, replace(options, trials=1), simple, numbers_there)
    count = turns(module, arguments if start else arguments[0], numbers_there)
    return Meetings(at, watched, options, further).further(count, start)


def _takes_integers(module: Module) -> bool:
    shapes = [shape for parameter in module.entry.parameters for shape in array_shapes(parameter.shape)]
    return any(not shape.element_type.is_inexact for shape in shapes)


def trial_of(reference: Module, tested: Module, assumed: Assumed) -> Trial:
    """A point at which both programs can be evaluated."""
    constants = Constants(reference, tested, assumed.zeros)
    return Trial(
        constants,
        remembers_exp=_takes_logarithms(reference, tested),
        nests_exp=any(_count(module, _EXPONENTIALS) > 1 for module in (reference, tested)),
        watches_roots=assumed.roots,
        half=int(assumed.logarithms),
    )


def _readings(constants: Constants) -> list[tuple[str, str, str]]:
    """The constants that were read as something else than the number that they are."""
    plain = (Rule.SHORT, Rule.DYADIC)
    return [
        (f"{value:.9g}", reading.text, reading.rule.value)
        for value, reading in constants.readings.items()
        if reading.rule not in plain
    ]


def _takes_logarithms(*modules: Module) -> bool:
    return any(_count(module, _LOGARITHMS) for module in modules)


def _count(module: Module, opcodes: frozenset[str]) -> int:
    return sum(i.opcode in opcodes for i in module.instructions())


def _structural_difference(reference: Runner, tested: Runner) -> str:
    """Why the programs are not even functions of the same arguments, or of results of one structure."""
    if difference := parameter_difference(reference, tested):
        return difference
    left, right = ([index for index, _ in leaves(runner.result)] for runner in (reference, tested))
    if left == right:
        return ""
    if len(left) == len(right):
        return "tuples of another structure are returned"
    return f"results of {len(left)} and of {len(right)} leaves"


def at_point(
    reference: Runner, tested: Runner, arguments: Sequence[Any], trial: Trial, seed: int, around: float
) -> list[LeafResult]:
    """What every leaf of the result is at the point of `seed`, with numbers of sizes `around`."""
    trial.restart(seed, around)
    expected = reference.run(arguments)
    actual = tested.run(arguments, expected.value)
    left = list(flatten(reference.result, expected.value))
    right = list(flatten(tested.result, actual.value))
    return [
        compared(index, (shape, value), (other_shape, other), actual, seed)
        for (index, shape, value), (_, other_shape, other) in zip(left, right)
    ]


def _boxes(engine: FieldBackend) -> tuple[Sequence[BlackBox], Sequence[BlackBox]]:
    reference, *_, tested = engine.boxes
    return reference, tested
