"""Evaluates two programs at the same random points and compares what they return, leaf by leaf."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from hlotool.backends.base import Backend
from hlotool.backends.field.black_boxes import BlackBox
from hlotool.backends.field.constants import Constants, constant_values
from hlotool.backends.field.drawing import with_drawn_floats
from hlotool.backends.field.executable import FieldBackend
from hlotool.backends.field.snapping import Rule
from hlotool.backends.field.trial import Trial
from hlotool.errors import BackendFailed, HlotoolError
from hlotool.ir.module import Module
from hlotool.ir.types import ArrayShape, Shape, ShapeIndex, leaves
from hlotool.numerics import thresholds
from hlotool.replay.devices.arguments import device_arguments
from hlotool.replay.devices.runners import Outcome, Runner
from hlotool.replay.exact.result import ExactResult, LeafResult, Relation, Witness
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
        trials: points.
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
    began = time.monotonic()
    deadline = began + options.time_limit
    result = _attempt(reference, tested, options, deadline, _Assumed())
    for assumed in _further(reference.module, tested.module):
        if result.relation is not Relation.UNEQUAL or result.structural:
            break
        result = _united(result, _attempt(reference, tested, options, deadline, assumed))
    return replace(result, seconds=time.monotonic() - began)


@dataclass(frozen=True, slots=True)
class _Assumed:
    """What an attempt assumes beyond the laws of the field.

    Attributes:
        tiny: constants too small to matter are 0, as where 1 - 1e-38 was folded to 1.
        inequalities: of real numbers, by which |x| is x where x is known not to be negative. They are not
            assumed at once: what only one of two programs shows would tell them apart.
        logarithms: log(a b) = log(a) + log(b), in place of exp(a + b) = exp(a) exp(b).
    """

    tiny: bool = False
    inequalities: bool = False
    logarithms: bool = False


#: Modulo Q the root of a square has either sign by chance: one element alone shows it in every second trial.
_TRIALS_MODULO_Q = 8


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


def _attempt(
    reference: Side, tested: Side, options: Options, deadline: float, assumed: _Assumed
) -> ExactResult:
    constants = Constants(
        reference.module, tested.module, thresholds.TINY_CONSTANT.value if assumed.tiny else 0.0
    )
    takes_logarithms = _takes_logarithms(reference.module, tested.module)
    trial = Trial(constants, remembers_exp=takes_logarithms, half=int(assumed.logarithms))
    trials = max(options.trials, _TRIALS_MODULO_Q) if assumed.logarithms else options.trials
    engine = FieldBackend(trial, deadline, assumed.inequalities)
    try:
        runners = reference.compiled_by(engine), tested.compiled_by(engine)
        if difference := _structural_difference(*runners):
            return ExactResult(structural=difference)
        if assumed.inequalities and not engine.laws:
            return ExactResult(refused="no inequality is known")
        found = [
            _at_point(*runners, _arguments(reference.module, runners[0], options, number), trial, seed)
            for number, seed in enumerate(range(options.seed, options.seed + trials))
        ]
    except HlotoolError as error:
        if isinstance(error, BackendFailed) and error.here:
            raise
        return ExactResult(refused=str(error))
    boxes = _boxes(engine)
    laws = [f"constants below {thresholds.TINY_CONSTANT.value:g} are 0"] if assumed.tiny else []
    laws += ["log(a b) = log(a) + log(b)"] if assumed.logarithms else []
    laws += sorted(law.value for law in engine.laws)
    return ExactResult(
        leaves=_explained([_worst(leaf) for leaf in zip(*found)], *boxes),
        trials=trials,
        laws=laws,
        constants=_readings(constants),
        boxes=boxes,
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
    return any(i.opcode in ("log", "log-plus-one") for module in modules for i in module.instructions())


def _arguments(module: Module, runner: Runner, options: Options, number: int) -> Sequence[Any]:
    """What both programs are given in one trial: one value per parameter, or a tuple for each device."""
    seed = options.seed + number

    def drawn(seed: int) -> Sequence[Any]:
        return with_drawn_floats(module, generate_inputs(module, seed).values, seed)

    if runner.copies > 1:
        return device_arguments(module, lambda device: drawn(seed + device))
    if options.arguments is not None and number == 0:
        return with_drawn_floats(module, options.arguments, seed)
    return drawn(seed)


def _structural_difference(reference: Runner, tested: Runner) -> str:
    """Why the programs are not even functions of the same arguments, or of results of one structure."""
    if difference := parameter_difference(reference, tested):
        return difference
    left, right = ([index for index, _ in leaves(runner.result)] for runner in (reference, tested))
    return "" if left == right else f"results of {len(left)} and of {len(right)} leaves"


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
        _compared(index, (shape, value), (other_shape, other), actual, seed)
        for (index, shape, value), (_, other_shape, other) in zip(left, right)
    ]


def _compared(
    index: ShapeIndex, expected: tuple[Shape, Any], actual: tuple[Shape, Any], outcome: Outcome, seed: int
) -> LeafResult:
    """One leaf of both results."""
    (shape, value), (other_shape, other) = expected, actual
    if not isinstance(shape, ArrayShape) or not isinstance(other_shape, ArrayShape):
        return LeafResult(index, Relation.EQUAL)
    if fault := outcome.faults.get(index):
        return LeafResult(index, Relation.UNEQUAL, reason=fault)
    if shape.element_type is not other_shape.element_type or np.shape(value) != np.shape(other):
        sides = [_described(s, v) for s, v in (expected, actual)]
        return LeafResult(index, Relation.UNEQUAL, reason=f"expected {sides[0]}, got {sides[1]}")
    left, right = np.asarray(value), np.asarray(other)
    differs = np.asarray(left != right)
    count = int(np.count_nonzero(differs))
    if not count:
        return LeafResult(index, Relation.EQUAL, 0, left.size)
    at = tuple(int(i) for i in np.unravel_index(int(differs.argmax()), differs.shape))
    witness = Witness(seed, at, _text(shape, left[at]), _text(shape, right[at]))
    return LeafResult(index, Relation.UNEQUAL, count, left.size, witness)


def _text(shape: ArrayShape, value: Any) -> str:
    """One element of a result (see `held.residues`) in words."""
    if shape.element_type.is_complex:
        return f"({int(value) >> 32}, {int(value) & 0xFFFFFFFF}) mod P"
    return f"{value} mod P" if shape.element_type.is_floating else str(value)


def _described(shape: Shape, value: Any) -> str:
    assert isinstance(shape, ArrayShape)
    return ArrayShape(shape.element_type, np.shape(value)).logical_text()


def _worst(leaf: Sequence[LeafResult]) -> LeafResult:
    """Of one leaf the trial with the most elements that differ."""
    return max(leaf, key=lambda one: (one.relation is Relation.UNEQUAL, one.differing))


def _boxes(engine: FieldBackend) -> tuple[Sequence[BlackBox], Sequence[BlackBox]]:
    reference, *_, tested = engine.boxes
    return reference, tested


def _explained(
    leaves: Sequence[LeafResult], reference: Sequence[BlackBox], tested: Sequence[BlackBox]
) -> list[LeafResult]:
    """Nothing follows from leaves that differ where only one program calls an unknown function."""
    alone = list(_alone(reference, tested))
    if not alone:
        return list(leaves)
    reason = f"an unknown function of one program only: {alone[0]}"
    return [
        replace(leaf, relation=Relation.REFUSED, reason=reason)
        if leaf.relation is Relation.UNEQUAL and leaf.witness is not None
        else leaf
        for leaf in leaves
    ]


def _alone(reference: Sequence[BlackBox], tested: Sequence[BlackBox]) -> Iterator[str]:
    names = {box.name for box in reference}, {box.name for box in tested}
    for box in [*reference, *tested]:
        if box.name in names[0] ^ names[1]:
            where = f" (line {box.line})" if box.line else ""
            yield f"{box.name} of %{box.instruction}{where}"
