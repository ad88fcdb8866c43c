"""Evaluates two programs at the same random points and compares what they return, leaf by leaf."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, Protocol

from hlotool.analysis.decisions import fewest_decided
from hlotool.backends.base import Backend
from hlotool.backends.field.black_boxes import BlackBox
from hlotool.backends.field.constants import Constants, constant_values
from hlotool.backends.field.drawing import with_drawn_floats
from hlotool.backends.field.executable import FieldBackend
from hlotool.backends.field.snapping import Rule
from hlotool.backends.field.trial import Trial
from hlotool.errors import BackendFailed, BackendTimeout, HlotoolError
from hlotool.ir.module import Module
from hlotool.ir.types import leaves
from hlotool.numerics import thresholds
from hlotool.replay.devices.arguments import device_arguments
from hlotool.replay.devices.runners import Runner
from hlotool.replay.exact.leaves import compared, explained, worst
from hlotool.replay.exact.result import ExactResult, LeafResult, Relation
from hlotool.replay.rows import parameter_difference
from hlotool.values.flatten import flatten
from hlotool.values.generate import generate_inputs


class Side(Protocol):
    """One program of a pair, such as `replay.program.Program`."""

    @property
    def module(self) -> Module:
        """The program."""

    @property
    def compiled_by(self) -> Callable[[Backend], Runner]:
        """Compiles it, as a replay would run it."""


@dataclass(frozen=True, slots=True)
class Options:
    """How two programs are compared.

    Attributes:
        trials: points; more where few elements decide (`thresholds.DECISIONS`).
        seed: of the first one; the others follow.
        time_limit: for all of it, in seconds.
        arguments: whose integers and preds are taken in place of generated ones, in the first trial.
    """

    trials: int = 2
    seed: int = 0
    time_limit: float = 60.0
    arguments: Sequence[Any] | None = None


def compare(reference: Side, tested: Side, options: Options | None = None) -> ExactResult:
    """Whether `tested` computes the same function of real numbers as `reference`.

    What is refused is part of the result; errors of other kinds than HlotoolError are bugs and raise.
    """
    options = options or Options()
    points = max(options.trials, _points(reference.module, tested.module))
    began = time.monotonic()
    deadline = began + options.time_limit
    result = _attempt(reference, tested, options, points, deadline, _Assumed())
    for assumed in _further(reference.module, tested.module):
        if result.relation is not Relation.UNEQUAL or result.structural:
            break
        result = _united(result, _attempt(reference, tested, options, points, deadline, assumed))
    return replace(result, seconds=time.monotonic() - began)


@dataclass(frozen=True, slots=True)
class _Assumed:
    """What an attempt assumes beyond the laws of the field.

    Attributes:
        tiny: constants too small to matter are 0, as where 1 - 1e-38 was folded to 1.
        inequalities: of real numbers, by which |x| is x where x is known not to be negative. They are not
            assumed at once: what only one of two programs shows would tell them apart.
        logarithms: log(a b) = log(a) + log(b), in place of exp(a + b) = exp(a) exp(b).
        roots: √x √x = x, at points where all that is under a root is a square.
    """

    tiny: bool = False
    inequalities: bool = False
    logarithms: bool = False
    roots: bool = False


#: They take roots.
_ROOTS = frozenset(
    {"batch-norm-grad", "batch-norm-inference", "batch-norm-training", "cholesky", "rsqrt", "sqrt"}
)


def _points(*modules: Module) -> int:
    """How many points it takes to see what decisions about few elements do."""
    sizes = [size for module in modules if (size := fewest_decided(module)) is not None]
    wanted = ceil(thresholds.DECISIONS.value / max(1, min(sizes))) if sizes else 1
    return min(wanted, _most_points())


def _most_points() -> int:
    """See `thresholds.MOST_POINTS`.

    Modulo Q the root of a square has either sign by chance: one element alone shows it in every second trial.
    And at others points than those at which programs were unequal, what showed there must not be missed.
    """
    return int(thresholds.MOST_POINTS.value)


def _united(result: ExactResult, other: ExactResult) -> ExactResult:
    """Leaves that are equal by either attempt are equal: each is a proof."""
    proved = {leaf.index: leaf for leaf in other.leaves if leaf.relation is Relation.EQUAL}
    leaves = [
        proved.get(leaf.index, leaf) if leaf.relation is Relation.UNEQUAL else leaf for leaf in result.leaves
    ]
    if leaves == list(result.leaves):
        return result
    return replace(
        result,
        leaves=leaves,
        trials=min(result.trials, other.trials),
        laws=list(dict.fromkeys([*result.laws, *other.laws])),
        constants=list(dict.fromkeys([*result.constants, *other.constants])),
    )


def _further(*modules: Module) -> Iterator[_Assumed]:
    """What to assume where programs are unequal without."""
    tiny = thresholds.TINY_CONSTANT.value
    has_tiny = any(0 < abs(value) < tiny for module in modules for value in constant_values(module))
    yield from [_Assumed(tiny=True)] if has_tiny else []
    if _takes_logarithms(*modules):
        yield _Assumed(logarithms=True)
    yield _Assumed(inequalities=True)
    yield from [_Assumed(tiny=True, inequalities=True)] if has_tiny else []
    if any(i.opcode in _ROOTS for module in modules for i in module.instructions()):
        yield _Assumed(roots=True)


def _attempt(
    reference: Side, tested: Side, options: Options, points: int, deadline: float, assumed: _Assumed
) -> ExactResult:
    """Both programs at `points` points, or as many of them as there is time for, but the options' trials."""
    constants = Constants(
        reference.module, tested.module, thresholds.TINY_CONSTANT.value if assumed.tiny else 0.0
    )
    takes_logarithms = _takes_logarithms(reference.module, tested.module)
    half = int(assumed.logarithms)
    trial = Trial(constants, remembers_exp=takes_logarithms, watches_roots=assumed.roots, half=half)
    engine = FieldBackend(trial, deadline, assumed.inequalities)
    try:
        runners = reference.compiled_by(engine), tested.compiled_by(engine)
        if difference := _structural_difference(*runners):
            return ExactResult(structural=difference)
        if assumed.inequalities and not engine.laws:
            return ExactResult(refused="no inequality is known")
        found = _at_points(*runners, trial, assumed, reference.module, options, points)
        if not found:
            return ExactResult(refused="no points at which all that is under a root is a square")
    except HlotoolError as error:
        if isinstance(error, BackendFailed) and error.here:
            raise
        return ExactResult(refused=str(error))
    boxes = _boxes(engine)
    laws = [f"constants below {thresholds.TINY_CONSTANT.value:g} are 0"] if assumed.tiny else []
    laws += ["log(a b) = log(a) + log(b)"] if assumed.logarithms else []
    laws += ["√x √x = x"] if assumed.roots else []
    laws += sorted(law.value for law in engine.laws)
    return ExactResult(
        leaves=explained([worst(leaf) for leaf in zip(*found)], *boxes),
        trials=len(found),
        laws=laws,
        constants=_readings(constants),
        boxes=boxes,
    )


def _at_points(
    reference: Runner,
    tested: Runner,
    trial: Trial,
    assumed: _Assumed,
    module: Module,
    options: Options,
    points: int,
) -> list[list[LeafResult]]:
    """What every leaf is at each point; nothing where no points are found that serve.

    Where one point shows every leaf to be unequal there are no more.
    """
    wanted, tried = points, points
    if assumed.logarithms or assumed.roots:
        wanted = tried = max(points, _most_points())
    if assumed.roots:
        tried = int(thresholds.POINTS_FOR_ROOTS.value)
    found: list[list[LeafResult]] = []
    missing = set(range(points))
    for number in range(tried):
        arguments = _arguments(module, reference, options, number, points)
        try:
            leaves = _at_point(reference, tested, arguments, trial, options.seed + number)
        except BackendTimeout:
            if assumed.roots or len(found) < options.trials:
                raise
            return found
        if not trial.imaginary_roots:
            found.append(leaves)
            missing.discard(number % points)
            if leaves and all(leaf.relation is Relation.UNEQUAL for leaf in leaves):
                return found
        if len(found) >= wanted and not missing:
            return found
        if trial.roots > thresholds.ROOTS.value:
            break
    return []


def _readings(constants: Constants) -> list[tuple[str, str, str]]:
    """The constants that were read as something else than the number that they are."""
    plain = (Rule.SHORT, Rule.DYADIC)
    return [
        (f"{value:.9g}", reading.text, reading.rule.value)
        for value, reading in constants.readings.items()
        if reading.rule not in plain
    ]


def _takes_logarithms(*modules: Module) -> bool:
    return any(i.opcode in ("log", "log-plus-one") for module in modules for i in module.instructions())


def _arguments(module: Module, runner: Runner, options: Options, number: int, points: int) -> Sequence[Any]:
    """What both programs are given at one point: one value per parameter, or a tuple for each device.

    Integers and preds repeat themselves after `points` points, given ones are those of the first: what they
    show must not vanish at further points.
    """
    seed, trial = options.seed + number, number % points

    def drawn(device: int) -> Sequence[Any]:
        integers = generate_inputs(module, options.seed + trial + device).values
        return with_drawn_floats(module, integers, seed + device)

    if runner.copies > 1:
        return device_arguments(module, drawn)
    if options.arguments is not None and trial == 0:
        return with_drawn_floats(module, options.arguments, seed)
    return drawn(0)


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


def _at_point(
    reference: Runner, tested: Runner, arguments: Sequence[Any], trial: Trial, seed: int
) -> list[LeafResult]:
    """What every leaf of the result is at the point of `seed`."""
    trial.restart(seed)
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
