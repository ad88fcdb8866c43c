"""Does a difference show in numbers, where the field's own order of numbers may have made it?

A field orders numbers by sizes that do not obey x < y ⇔ x - y < 0. Two programs that say the same in either
way differ there, and nowhere else. What decides by floats is therefore executed at the points that accuse it
with the numbers that stand for their words, in f64: where both return the same, and each element is the same
at some other point, nothing is known. A term that f64 loses differs at all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from hlotool.backends.field.executable import FieldBackend
from hlotool.backends.field.trial import Trial
from hlotool.backends.field.values import parts
from hlotool.backends.numpy.executions.varied import Base, SmoothBackend
from hlotool.errors import BackendFailed, HlotoolError
from hlotool.facts import thresholds
from hlotool.inputs.generate import InputGenerator
from hlotool.ir.arrays import Array, dtype_of, flatten, unflatten
from hlotool.ir.types import ArrayShape, Shape, ShapeIndex
from hlotool.runs.exact.points import Meeting, Options, Side, point_arguments
from hlotool.runs.exact.result import ExactResult, Relation
from hlotool.runs.runners import Runner
from hlotool.system.resources import UNITS_PER_SECOND, TooMuchWork, spend, work_limit

Floats: TypeAlias = npt.NDArray[np.float64]
#: Ordinary points that are looked at besides the one that accuses.
_OTHERS: Final = 2
#: Those at which numbers meet, where they are all finite.
_MEETINGS: Final = 16
#: Points with other words, and thus other orders of them; their seeds are far from all others.
_ORDERS: Final = 24
_APART: Final = 1 << 20
#: Work that it may be.
_WORK: Final = 1.0 * UNITS_PER_SECOND
#: Relative difference that a few roundings of f32 constants make.
_ROUNDED: Final = 2.0**-20
_REASON: Final = (
    "at the points that tell them apart both return the same numbers, in f64: the order of made-up sizes"
)


def _numbers(shape: Shape, value: Any, trial: Trial) -> Any:
    found = [
        _leaf(leaf, array, trial) if isinstance(leaf, ArrayShape) else array
        for _, leaf, array in flatten(shape, value)
    ]
    return unflatten(shape, found)


def _leaf(shape: ArrayShape, words: Any, trial: Trial) -> Any:
    kind = shape.element_type
    if not kind.is_inexact:
        return words
    real, imaginary = parts(words) if kind.is_complex else (np.asarray(words), None)
    number: Array = trial.kappa(real)
    with np.errstate(all="ignore"):
        if imaginary is not None:
            number = number + 1j * trial.kappa(imaginary)
        return np.asarray(number).astype(dtype_of(kind))


@dataclass(frozen=True, slots=True)
class Compared:
    """Leaves of both results.

    Attributes:
        alike: of which both are the same numbers, some of them finite.
        different: of which they are not, and all are finite.
        near: of which they are the same but for roundings of constants, which few elements may show.
    """

    alike: set[ShapeIndex]
    different: set[ShapeIndex]
    near: set[ShapeIndex]


class OnNumbers:
    """Both programs in f64.

    Args:
        reference: the program as it should be.
        tested: the other one.
    """

    def __init__(self, reference: Side, tested: Side) -> None:
        engine = SmoothBackend(Base())
        self._runners = reference.compiled_by(engine), tested.compiled_by(engine)

    @property
    def runner(self) -> Runner:
        """Of the reference."""
        return self._runners[0]

    def compared(self, arguments: Sequence[Any], trial: Trial) -> Compared:
        """What both return at a point.

        Args:
            arguments: of the point where `trial` is: its words.
            trial: which numbers they stand for.
        """
        shapes = self.runner.parameters
        numbers = [_numbers(shape, value, trial) for shape, value in zip(shapes, arguments)]
        with np.errstate(all="ignore"):
            return self._compared(numbers)

    def _compared(self, arguments: Sequence[Any]) -> Compared:
        reference, tested = self._runners
        expected = reference.run(arguments).value
        actual = tested.run(arguments, expected).value
        left, right = flatten(reference.result, expected), flatten(tested.result, actual)
        found = [
            (index, parts_of(one), parts_of(other)) for (index, _, one), (_, _, other) in zip(left, right)
        ]
        return Compared(
            {index for index, a, b in found if _are_alike(a, b)},
            {index for index, a, b in found if _are_finite(a, b) and not _are_alike(a, b)},
            {index for index, a, b in found if _are_alike(a, b, _ROUNDED)},
        )


def _are_finite(a: Floats, b: Floats) -> bool:
    return a.shape == b.shape and bool(np.isfinite(a).all() and np.isfinite(b).all())


def _are_alike(a: Floats, b: Floats, tolerance: float | None = None) -> bool:
    if a.shape != b.shape or not np.array_equal(np.isfinite(a), np.isfinite(b)):
        return False
    finite = np.isfinite(a)
    if not finite.any():
        return False
    a, b = a[finite], b[finite]
    near = (tolerance or thresholds.SAME_FIT.value) * (np.abs(a) + np.sqrt(np.mean(a**2)))
    return bool((np.abs(a - b) <= near).all())


def parts_of(value: Any) -> Floats:
    """The elements of one leaf, real and imaginary parts for themselves; none of a token."""
    array = np.asarray(value)
    if array.dtype.kind == "c":
        return np.ascontiguousarray(array).reshape(-1).view(np.float64)
    return array.reshape(-1).astype(np.float64) if array.dtype.kind in "biuf" else np.zeros(0)


def without_own_order(
    reference: Side, tested: Side, result: ExactResult, options: Options, trial: Trial
) -> ExactResult:
    """`result`, with those unequal leaves refused that numbers show nothing of.

    Args:
        reference: the program as it should be.
        tested: the other one.
        result: of their comparison, in which floats decide something.
        options: of it.
        trial: of the attempt that the result is of.
    """
    accused = [
        leaf for leaf in result.leaves if leaf.relation is Relation.UNEQUAL and leaf.witness is not None
    ]
    seeds = sorted({leaf.witness.seed for leaf in accused if leaf.witness is not None})[:_OTHERS]
    if not accused:
        return result
    alike = {leaf.index for leaf in accused}
    inputs = InputGenerator(reference.module)
    try:
        with work_limit(_WORK):
            programs = OnNumbers(reference, tested)
            for point, number in _points(result, options, seeds):
                trial.restart(point.seed + number, point.around)
                arguments = point_arguments(inputs, programs.runner, point, number, trial.constants)
                found = programs.compared(arguments, trial)
                is_other = point.meeting is not None and point.meeting != result.meeting
                alike -= found.different if is_other else {i for i in alike if i not in found.alike}
                if not alike:
                    return result
            alike -= _whatever_order(reference, tested, trial, *_points(result, options, seeds)[0])
    except HlotoolError as error:
        if isinstance(error, BackendFailed) and error.here:
            raise
        return result
    except TooMuchWork:
        spend(0)  # raises again where somebody else's limit is reached
        return result
    leaves = [
        replace(leaf, relation=Relation.REFUSED, reason=_REASON) if leaf.index in alike else leaf
        for leaf in result.leaves
    ]
    return replace(result, leaves=leaves)


def _whatever_order(
    reference: Side, tested: Side, trial: Trial, point: Options, number: int
) -> set[ShapeIndex]:
    """The leaves of which some element differs at all points like one: the order is another one at each."""
    engine = FieldBackend(trial)
    runners = reference.compiled_by(engine), tested.compiled_by(engine)
    inputs = InputGenerator(reference.module)
    differ: dict[ShapeIndex, Any] = {}
    for order in range(_ORDERS):
        other = replace(point, seed=point.seed + order * _APART)
        arguments = point_arguments(inputs, runners[0], other, number, trial.constants)
        trial.restart(other.seed + number, point.around)
        expected = runners[0].run(arguments)
        actual = runners[1].run(arguments, expected.value)
        left, right = (flatten(r.result, o.value) for r, o in zip(runners, (expected, actual)))
        for (index, _, one), (_, _, other) in zip(left, right):
            differ[index] = (np.asarray(one) != np.asarray(other)) & differ.get(index, True)
        if not any(np.any(differs) for differs in differ.values()):
            break
    return {index for index, differs in differ.items() if np.any(differs)}


def _points(result: ExactResult, options: Options, seeds: Sequence[int]) -> list[tuple[Options, int]]:
    """The points that accuse, and some ordinary ones, as options and the number of the point."""
    ordinary = [(options, number) for number in range(_OTHERS)]
    ordinary += [(replace(options, meeting=Meeting(2 * n)), 0) for n in range(_MEETINGS)]
    if result.around or result.meeting is not None:
        shown = replace(options, trials=1, around=result.around, meeting=result.meeting)
        return [*((replace(shown, seed=seed), 0) for seed in seeds), *ordinary]
    return [*((options, seed - options.seed) for seed in seeds), *ordinary]
