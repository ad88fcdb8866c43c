"""Can constants that a compiler rounded be all that tells two programs apart?

A compiler computes constants of constants, and rounds them; those that no rule of the field explains make two
programs other functions. So before a program is accused, the constants that only it has are looked for again,
where they may be: within a few roundings of what they are. If with some such constants it returns what the
reference returns, in f64, at more points than there are constants, roundings explain all of the difference,
and nothing is known. A lost term or another index no constant makes good, and a constant that is meant to be
another one lies outside its roundings.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from hlotool.backends.field.constants import constant_values, narrowest, precisions_of
from hlotool.backends.field.relations import rounded_so_often
from hlotool.backends.numpy.executions.varied import Base, MovedBackend, SmoothBackend
from hlotool.errors import BackendFailed, BackendTimeout, HlotoolError
from hlotool.facts import thresholds
from hlotool.inputs.generate import InputGenerator
from hlotool.ir.arrays import flatten
from hlotool.ir.module import Module
from hlotool.ir.types import ShapeIndex
from hlotool.runs.exact.numbers import parts_of
from hlotool.runs.exact.points import Options, Side, sample_arguments
from hlotool.runs.exact.result import ExactResult, LeafResult, Relation
from hlotool.runs.runners import Runner

Floats: TypeAlias = npt.NDArray[np.float64]
#: By how many units each constant is off.
_Units: TypeAlias = tuple[float, ...]

#: Programs with more constants of their own are not looked at: too many points would be needed.
MOST_CONSTANTS: Final = 128
#: Points at most.
_MOST_POINTS: Final = 64
#: So many different differences there must be for each constant that matters, and so many besides.
_FOR_EACH: Final = 2
_BESIDES: Final = 6
#: Points at which both must return the same for a law that could not be tried to be the reason.
_POINTS_FOR_DOUBT: Final = 4
#: Points that are looked at first where sizes are apart: at few of them they are so in a way that shows much.
_POINTS_APART: Final = 16
#: Elements of a point by which constants are found; all elements are compared with what comes of them.
_MOST_ELEMENTS: Final = 1000
#: Steps of Newton's method, which gain seven digits each in f32 and two in bf16.
_STEPS: Final = 6
#: Units from a constant of the reference within which hardly any other one lies by chance.
_BESIDE: Final = 16
#: By how much of its rounding a constant is moved to see what that changes.
_MOVED: Final = 1 / 16


def excused(
    reference: Side, tested: Side, result: ExactResult, options: Options, deadline: float, doubt: str = ""
) -> ExactResult:
    """`result`, with those unequal leaves refused of which numbers show no more than rounded constants.

    What cannot be executed on numbers stays as it is.

    Args:
        reference: as it should be.
        tested: the other one.
        result: of their comparison.
        options: of it.
        deadline: in `time.monotonic`.
        doubt: why an unequal leaf may be equal by a law that could not be tried. Then it is refused where
            numbers show nothing at all, too.
    """
    accused = [
        leaf.index for leaf in result.leaves if leaf.relation is Relation.UNEQUAL and leaf.witness is not None
    ]
    constants = _own_constants(reference.module, tested.module)
    if not accused or not (constants or doubt) or len(constants) > MOST_CONSTANTS:
        return result
    reasons: dict[ShapeIndex, str] = {}
    try:
        samples = Samples(reference, tested, constants, options, deadline)
        for index in accused:
            if doubt and samples.are_same(index):
                reasons[index] = doubt
            elif constants and (reason := _explanation(samples, index)):
                reasons[index] = reason
        hidden = [index for index in accused if index not in reasons and samples.are_same(index)]
        if constants and hidden:
            apart = Samples(reference, tested, constants, options, deadline, apart=True)
            reasons |= {
                index: reason for index in hidden if (reason := _explanation(apart, index, _POINTS_APART))
            }
    except BackendTimeout:
        reasons = {**dict.fromkeys(accused, "no time to see whether it is rounded constants"), **reasons}
    except HlotoolError as error:
        if isinstance(error, BackendFailed) and error.here:
            raise
    return replace(result, leaves=[_refused(leaf, reasons.get(leaf.index)) for leaf in result.leaves])


def _refused(leaf: LeafResult, reason: str | None) -> LeafResult:
    return leaf if reason is None else replace(leaf, relation=Relation.REFUSED, reason=reason)


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant of the tested program.

    Attributes:
        size: its absolute value.
        unit: of its rounding.
        most: units by which it may be off.
    """

    size: float
    unit: float
    most: float


def _own_constants(reference: Module, tested: Module) -> list[Constant]:
    """Of those that the reference has, too, none."""
    written = _sizes(reference)
    return [constant for constant in constants_of(reference, tested) if constant.size not in written]


def constants_of(reference: Module, tested: Module) -> list[Constant]:
    """All small constants of the tested program."""
    types = precisions_of(reference, tested)
    written, own = (_sizes(module) for module in (reference, tested))
    found = []
    for size in sorted(own):
        unit = size * 2.0 ** -narrowest(size, types).bits
        most = rounded_so_often(int(thresholds.FOLDS.value))
        # Next to a constant of the reference it is that one, converted; it was not computed.
        is_copy = any(abs(size - other) <= _BESIDE * unit for other in written)
        found.append(Constant(size, unit, rounded_so_often(1) if is_copy else most))
    return found


def _sizes(module: Module) -> set[float]:
    return {abs(value) for value in constant_values(module) if value and np.isfinite(value)}


def _explanation(samples: Samples, index: ShapeIndex, points: int = 1) -> str:
    """Why a leaf may be the same all the same; empty where it is not. Looks at `points` first."""
    # Arguments that a user gave may hide what makes the difference elsewhere.
    while points < _POINTS_FOR_DOUBT and samples.are_same(index, points):
        points *= 2
    while True:
        found = samples.fitted(index, points)
        if found is None:
            return ""
        if found.is_telling:
            return (
                f"with {found.moved} constants by up to {found.units:.2g} roundings off"
                f" both programs return the same at {points} points, in f64"
            )
        if points >= _MOST_POINTS:
            return f"rounded constants may explain it: {points} points do not tell"
        points = min(2 * points, _MOST_POINTS)


@dataclass(frozen=True, slots=True)
class _Fit:
    """Constants with which two programs return the same.

    Attributes:
        moved: how many of them matter.
        units: by how many units one is off at most.
        is_telling: whether so many differences are no accident.
    """

    moved: int
    units: float
    is_telling: bool


@dataclass(slots=True)
class Samples:
    """What both programs return on numbers, as far as it was asked for.

    Attributes:
        reference: as it should be.
        tested: the other one.
        constants: of the tested one, which may be off.
        options: of the comparison, whose arguments come first.
        deadline: in `time.monotonic`.
        apart: arguments are of different sizes (`sample_arguments`).
        is_smooth: functions saturate nowhere.
    """

    reference: Side
    tested: Side
    constants: Sequence[Constant]
    options: Options
    deadline: float
    apart: bool = False
    is_smooth: bool = True
    _inputs: InputGenerator = field(init=False)
    _base: Base = field(default_factory=Base)
    _runners: dict[_Units | None, Runner] = field(default_factory=dict)
    _known: dict[tuple[_Units | None, int, bool], dict[ShapeIndex, Floats]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Choose a base in which no exp of the reference saturates."""
        self._inputs = InputGenerator(self.reference.module)
        if not self.is_smooth:
            return
        runner = self._runner(None)
        arguments = sample_arguments(self._inputs, runner, self.options, 0, self.apart)
        self._base.choose(lambda: self._ran(runner, arguments, None))

    def are_same(self, index: ShapeIndex, points: int = _POINTS_FOR_DOUBT) -> bool:
        """Whether numbers show no difference of a leaf at so many points, with the constants as they are."""
        seen = self._seen(index, points)
        # Where one program returns numbers and the other none, that is a difference.
        return seen is not None and (seen.are_same if seen.usable.any() else seen.are_numbers)

    def fitted(self, index: ShapeIndex, points: int) -> _Fit | None:
        """The constants with which a leaf is the same at so many points; None where there are none.

        There are none, either, where the leaf is the same as it is: something else tells the programs apart.
        """
        seen = self._seen(index, points)
        if seen is None or not seen.usable.any() or seen.are_same or not seen.are_numbers:
            return None
        fits = self._fits(seen, index, points)
        return next((self._fit(reach, seen.off, units) for units, off, reach in fits if off <= 1), None)

    def distance(self, index: ShapeIndex) -> float:
        """How many times its resolution a leaf is off at the first point, with the constants as they are."""
        seen = self._seen(index, 1)
        is_known = seen is not None and seen.usable.any() and seen.are_numbers
        return float(np.abs(seen.off).max()) if seen is not None and is_known else 0.0

    def unexplained(self, index: ShapeIndex) -> float:
        """The same with those constants that bring both nearest."""
        seen = self._seen(index, 1)
        fits = () if seen is None else self._fits(seen, index, 1)
        return min([self.distance(index), *(off for _, off, _ in fits)])

    def _fits(self, seen: _Seen, index: ShapeIndex, points: int) -> Iterator[tuple[Floats, float, Floats]]:
        """Constants that bring both programs nearer to each other, step by step, as long as they do.

        Each with how many times its resolution the leaf is off at most, and by how many times that each
        constant may change every element.
        """
        off = seen.off
        if not np.isfinite(off).all() or not self.constants:
            return
        most = np.array([constant.most for constant in self.constants])
        elements = np.concatenate(
            [n * (off.size // points) + _some(off.size // points) for n in range(points)]
        )
        slopes = self._slopes(seen, index, points, elements)
        units = np.zeros(most.size)
        for _ in range(_STEPS):
            units = _bounded(slopes, off[elements] + slopes @ units, most)
            before, off = float(np.abs(off).max()), seen.against(self._leaf(units, index, points))
            now = float(np.abs(off).max())
            if not now <= max(1.0, before / 2):
                return
            yield units, now, slopes * most

    def _seen(self, index: ShapeIndex, points: int) -> _Seen | None:
        """A leaf of both programs; None where the sizes differ."""
        expected = self._leaf(None, index, points)
        actual = self._leaf(np.zeros(len(self.constants)), index, points)
        if expected.shape != actual.shape:
            return None
        usable = np.isfinite(expected) & np.isfinite(actual)
        # What is large at one point hides nothing at another one.
        squares = np.where(usable, expected, 0.0).reshape(points, -1) ** 2
        mean = np.repeat(np.sqrt(squares.mean(axis=1)), squares.shape[1]) if squares.size else 0.0
        resolution = thresholds.SAME_FIT.value * (np.abs(expected) + mean)
        return _Seen(expected, actual, usable, np.maximum(resolution, np.finfo(np.float64).tiny))

    @staticmethod
    def _fit(slopes: Floats, first: Floats, units: Floats) -> _Fit:
        matters = int(np.linalg.matrix_rank(slopes, tol=1.0))
        different = np.unique(np.round(first[np.abs(first) > 1], 3)).size
        is_telling = different >= _FOR_EACH * matters + _BESIDES
        return _Fit(matters, float(np.abs(units).max()), is_telling)

    def _slopes(self, seen: _Seen, index: ShapeIndex, points: int, elements: npt.NDArray[np.intp]) -> Floats:
        """By how many times its resolution each of `elements` changes with every constant, per unit."""
        rows = [
            np.concatenate(
                [self._at(_MOVED * unit, number, is_whole=False)[index] for number in range(points)]
            )
            for unit in np.eye(len(self.constants))
        ]
        slopes = (np.stack(rows, axis=1) - seen.actual[elements, None]) / _MOVED
        slopes /= seen.resolution[elements, None]
        return np.where(np.isfinite(slopes) & seen.usable[elements, None], slopes, 0.0)

    def _leaf(self, units: Floats | None, index: ShapeIndex, points: int) -> Floats:
        """One leaf at all points: with the tested program's constants off by `units`, or the reference's."""
        values = [self._at(units, number)[index] for number in range(points)]
        return np.concatenate(values)

    def _at(self, units: Floats | None, number: int, is_whole: bool = True) -> dict[ShapeIndex, Floats]:
        """All leaves at one point, or some elements of each."""
        key = (None if units is None else tuple(units.tolist()), number, is_whole)
        if key not in self._known:
            runner, source = self._runner(units), self._runner(None)
            arguments = sample_arguments(self._inputs, source, self.options, number, self.apart)
            expected = None if units is None else self._ran(source, arguments, None)
            found = self._ran(runner, arguments, expected)
            leaves = {at: parts_of(value) for at, _, value in flatten(runner.result, found)}
            self._known[key] = {
                at: leaf if is_whole else leaf[_some(leaf.size)] for at, leaf in leaves.items()
            }
        return self._known[key]

    def _ran(self, runner: Runner, arguments: Sequence[Any], expected: Any) -> Any:
        if time.monotonic() > self.deadline:
            raise BackendTimeout("numpy", "the time limit is over")
        return runner.run(arguments, expected).value

    def _runner(self, units: Floats | None) -> Runner:
        key: _Units | None = None if units is None else tuple(units.tolist())
        if key not in self._runners:
            side = self.reference if key is None else self.tested
            moved = {c.size: c.size + off * c.unit for c, off in zip(self.constants, key or ()) if off}
            backend = SmoothBackend(self._base, moved) if self.is_smooth else MovedBackend(moved)
            self._runners[key] = side.compiled_by(backend)
        return self._runners[key]


@dataclass(frozen=True, slots=True)
class _Seen:
    """One leaf of both programs at some points.

    Attributes:
        expected: of the reference.
        actual: of the tested program as it is.
        usable: which elements are numbers in both.
        resolution: by how much each may be off for both to be the same.
    """

    expected: Floats
    actual: Floats
    usable: npt.NDArray[np.bool_]
    resolution: Floats

    @property
    def off(self) -> Floats:
        """By how many times its resolution each element is off."""
        return self.against(self.actual)

    @property
    def are_numbers(self) -> bool:
        """Whether the same elements are numbers in both: a root of what is negative is none."""
        return bool(np.array_equal(np.isfinite(self.expected), np.isfinite(self.actual)))

    @property
    def are_same(self) -> bool:
        """Whether none is off."""
        return bool((np.abs(self.off) <= 1).all())

    def against(self, actual: Floats) -> Floats:
        """`off` for another program's result; what is no number there is infinitely far off."""
        with np.errstate(all="ignore"):
            off = (self.expected - actual) / self.resolution
        return np.where(self.usable, np.where(np.isfinite(off), off, np.inf), 0.0)


def _some(size: int) -> npt.NDArray[np.intp]:
    """Places of some of so many elements."""
    return np.arange(0, size, max(1, -(-size // _MOST_ELEMENTS)), dtype=np.intp)


def _bounded(slopes: Floats, wanted: Floats, most: Floats) -> Floats:
    """The smallest units within `most` whose effects come nearest to what is wanted, by least squares.

    Those that would be too large are as large as they may be, and the others make up for it.
    """
    scaled = slopes * most
    fixed: Floats = np.zeros(most.size)
    is_free = np.ones(most.size, np.bool_)
    while is_free.any():
        part = scaled[:, is_free]
        # The root of one more row per unknown: units that show nowhere stay 0.
        matrix = np.concatenate([part, np.eye(part.shape[1])])
        target = np.concatenate([wanted - scaled[:, ~is_free] @ fixed[~is_free], np.zeros(part.shape[1])])
        found = np.linalg.lstsq(matrix, target, rcond=None)[0]
        too_large = np.abs(found) > 1
        fixed[is_free] = np.clip(found, -1, 1)
        if not too_large.any():
            break
        is_free[np.flatnonzero(is_free)[too_large]] = False
    return fixed * most
