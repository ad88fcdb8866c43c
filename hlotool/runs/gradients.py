"""Is one program the gradient of another? Asked of both as functions of real numbers, in f64.

Along a random direction the slope of F is taken from differences and compared with what G says it is. Of
three widths of the differences the one counts whose extrapolation agrees best with that of half the width
(Ridders, "Accurate computation of F'(x) and F'(x)F''(x)", 1982): where F has a step or a kink in between, no
two agree, and the point says nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec
import numpy as np

from hlotool.backends.base import Value
from hlotool.backends.numpy import NumpyBackend
from hlotool.errors import HlotoolError, UsageError
from hlotool.facts.dataflow import source_of_output
from hlotool.facts.float_order import epsilon
from hlotool.facts.retyping import retyped_value, widened
from hlotool.inputs.generate import generate_inputs
from hlotool.ir.arrays import Array, flatten
from hlotool.ir.module import Module
from hlotool.ir.types import ArrayShape, array_shapes, leaves, strip_layouts
from hlotool.judge.failures import error_record
from hlotool.sources.loading import load_stage
from hlotool.sources.records import DumpModule, Stage
from hlotool.system.records import CommandRecord, ErrorRecord, Record, SourceRecord

#: Widths of the differences, relative to the values: rounding of f64 rules below, curvature above.
_WIDTHS = (1e-2, 1e-3, 1e-4)
#: Two extrapolations may be so much further from the truth than from each other.
_SAFETY = 100.0
#: A slope that is known no better than this, relative to its terms, says nothing.
_KNOWN = 1e-3
#: Directions at a point, points that have to say something, and those that are tried. At two points all of a
#: ReLU may be cut off, so that 2 in 60 wrong gradients were not seen; signs are drawn at every other point.
_DIRECTIONS, _POINTS, _TRIES = 2, 4, 12
#: Components of one parameter that are looked at one by one.
_COMPONENTS = 256


class SlopeRecord(Record, frozen=True, kw_only=True):
    """A parameter of F, and what G says of its derivative.

    Attributes:
        parameter: number in F.
        name: of the parameter.
        shape: such as `f32[4,8]`.
        output: leaf of G's result that should be the derivative.
        verdict: `right`, `wrong`, or `unknown`.
        reason: in one sentence.
        component: the first one that is wrong; null where none was found alone.
        expected: its slope by differences, or that along a direction.
        actual: what G says.
        wrong: how many components are wrong, of those that were looked at.
        looked_at: how many that were.
        source: of the output in G.
    """

    parameter: int
    name: str
    shape: str
    output: list[int]
    verdict: str
    reason: str
    component: list[int] | None = None
    expected: float | None = None
    actual: float | None = None
    wrong: int = 0
    looked_at: int = 0
    source: SourceRecord | None = None


class GradientAnswer(Record, frozen=True, kw_only=True):
    """What is known of two programs.

    Attributes:
        slopes: one for each parameter that G has a derivative of.
        error: why nothing could be asked.
    """

    slopes: list[SlopeRecord] = []
    error: ErrorRecord | None = None


class GradcheckRecord(CommandRecord, frozen=True, kw_only=True):
    """What `hlotool gradcheck --json` prints.

    Attributes:
        function: path of F.
        gradient: path of G.
        slopes: one for each parameter that G has a derivative of.
        notes: what was passed over.
        error: why nothing could be asked.
    """

    schema: Literal["hlotool.gradcheck/1"] = "hlotool.gradcheck/1"
    versions: dict[str, str]
    function: str
    gradient: str
    slopes: list[SlopeRecord] = []
    notes: list[str] = []
    error: ErrorRecord | None = None
    exit_code: int
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class GradientTask:
    """Two programs.

    Attributes:
        function: F: its module and stage.
        gradient: G: likewise.
        wrt: numbers of the parameters that G differentiates by; empty: the floats, in order.
        seed: of points and directions.
    """

    function: tuple[DumpModule, Stage]
    gradient: tuple[DumpModule, Stage]
    wrt: tuple[int, ...] = ()
    seed: int = 0


def checked(task: GradientTask) -> GradientAnswer:
    """Answer a task; runs in a worker process. What cannot be executed becomes part of the answer."""
    try:
        function, gradient = (load_stage(owner, stage) for owner, stage in (task.function, task.gradient))
        return GradientAnswer(slopes=slopes_of(function, gradient, task.wrt, task.seed))
    except HlotoolError as error:
        return GradientAnswer(error=error_record(error))


def slopes_of(
    function: Module, gradient: Module, wrt: Sequence[int] = (), seed: int = 0
) -> list[SlopeRecord]:
    """What `gradient` says of each derivative of `function`, beside differences.

    Args:
        function: F; the first array of its result is a real number.
        gradient: G: the same parameters; its result ends with the derivatives, in the order of the
            parameters. Before them may stand the value, or all of F's result.
        wrt: numbers of these parameters; empty: the floats, in order.
        seed: of points and directions.

    Raises:
        UsageError: the two do not fit.
        Unsupported: the numpy backend cannot execute one of them in f64.
    """
    pairs = _fitted(function, gradient, tuple(wrt))
    asked = _Asked(function, gradient, seed)
    return [_slope(asked, number, output) for number, output in pairs]


def _fitted(function: Module, gradient: Module, wrt: tuple[int, ...]) -> list[tuple[int, int]]:
    """Parameters of F and leaves of G's result that belong together."""
    parameters = [p.shape for p in function.entry.parameters]
    if [strip_layouts(p.shape) for p in gradient.entry.parameters] != list(map(strip_layouts, parameters)):
        raise UsageError("both programs take the same arguments: here their shapes differ")
    value, *_ = (*array_shapes(function.entry.root.shape), None)
    if value is None or value.dims or not value.element_type.is_floating:
        raise UsageError(f"the first result of the function is one real number, not {value}")
    floats = [n for n, s in enumerate(parameters) if isinstance(s, ArrayShape) and s.element_type.is_floating]
    if beyond := [n for n in wrt if n not in floats]:
        raise UsageError(f"parameter {beyond[0]} is no array of floats")
    outputs = list(array_shapes(gradient.entry.root.shape))
    whole = len(list(array_shapes(function.entry.root.shape)))
    for before in dict.fromkeys((0, 1, whole)):
        chosen = _by_shape(parameters, wrt or tuple(floats), outputs[before:], bool(wrt))
        if chosen:
            return [(number, before + place) for place, number in enumerate(chosen)]
    shapes = ", ".join(map(str, outputs))
    raise UsageError(
        f"the results of the gradient, {shapes}, are no derivatives of the parameters; --wrt N,…"
    )


def _by_shape(
    parameters: Sequence[object], wrt: Sequence[int], outputs: Sequence[ArrayShape], is_told: bool
) -> list[int]:
    """For each output the parameter whose derivative it is; empty where they do not fit."""
    found: list[int] = []
    waiting = list(wrt)
    for output in outputs:
        while waiting:
            number = waiting.pop(0)
            shape = parameters[number]
            if isinstance(shape, ArrayShape) and shape.dims == output.dims:
                found.append(number)
                break
            if is_told:
                return []
        else:
            return []
    return [] if is_told and waiting else found


class _Asked:
    """Both programs in f64, at points that have no ties."""

    def __init__(self, function: Module, gradient: Module, seed: int) -> None:
        self.function, self.gradient, self.seed = function, gradient, seed
        backend = NumpyBackend()
        self._wide = widened(function).module
        self._value = backend.compile(self._wide)
        self._slopes = backend.compile(widened(gradient).module)
        self._points: dict[int, list[Value]] = {}
        self._sizes: dict[int, float] = {}
        self._said: dict[int, list[Array]] = {}
        kinds = {
            shape.element_type
            for p in (function, gradient)
            for i in p.instructions()
            for shape in array_shapes(i.shape)
            if shape.element_type.is_floating
        }
        #: Constants are rounded to the type that they are written in.
        self.unit = max(epsilon(kind) for kind in kinds)

    def point(self, number: int) -> list[Value]:
        """The arguments of a point: generated ones, moved a little, so that nothing is zero or equal.

        At every other point their signs are drawn: where positive numbers are needed, that says nothing.
        """
        if number not in self._points:
            rng = np.random.default_rng([self.seed, number])
            given = generate_inputs(self.function, self.seed + number).values
            self._points[number] = [
                _moved(rng, retyped_value(value, wide.shape), bool(number % 2))
                for value, wide in zip(given, self._wide.entry.parameters)
            ]
        return self._points[number]

    def value(self, arguments: Sequence[Value]) -> float:
        """F."""
        result = self._value.run(arguments)
        first = next(part for _, _, part in flatten(self._wide.entry.root.shape, result))
        return float(np.asarray(first))

    def said(self, number: int, output: int) -> Array:
        """What G says at a point."""
        if number not in self._said:
            result = self._slopes.run(self.point(number))
            shape = self.gradient.entry.root.shape
            self._said[number] = [np.asarray(part, np.float64) for _, _, part in flatten(shape, result)]
        return self._said[number][output]

    def slope(self, number: int, parameter: int, direction: Array) -> tuple[float, float]:
        """The slope of F along a direction, and how far it may be off."""
        point = self.point(number)
        at = np.asarray(point[parameter])

        def moved(step: float) -> float:
            return self.value([*point[:parameter], at + step * direction, *point[parameter + 1 :]])

        if number not in self._sizes:
            self._sizes[number] = abs(self.value(point))
        return _extrapolated(moved, self._sizes[number])


def _moved(rng: np.random.Generator, value: Value, draws_signs: bool) -> Value:
    if not isinstance(value, np.ndarray) or value.dtype.kind != "f":
        return value
    signs = rng.choice([-1.0, 1.0], value.shape) if draws_signs else 1.0
    near = value * (1 + 0.05 * rng.uniform(-1, 1, value.shape)) + 1e-3 * rng.uniform(-1, 1, value.shape)
    return near * signs


def _extrapolated(function: Callable[[float], float], size: float) -> tuple[float, float]:
    """The slope of a function at 0, where its value is as large as `size`, and how far it may be off."""
    found = []
    for width in _WIDTHS:
        wide, half = ((function(h) - function(-h)) / (2 * h) for h in (width, width / 2))
        rounding = np.finfo(np.float64).eps * size / width
        found.append((abs((4 * half - wide) / 3 - half) / 3 + 10 * rounding, (4 * half - wide) / 3))
    best = min((one for one in found if np.isfinite(one[1])), default=(np.inf, np.nan))
    return best[1], best[0]


def _slope(asked: _Asked, parameter: int, output: int) -> SlopeRecord:
    """The verdict on one derivative: right where several points say so, wrong where one does."""
    shape = asked.function.entry.parameters[parameter].array_shape
    index = [
        index for index, part in leaves(asked.gradient.entry.root.shape) if isinstance(part, ArrayShape)
    ][output]
    record = SlopeRecord(
        parameter=parameter,
        name=asked.function.entry.parameters[parameter].name,
        shape=str(shape.without_layout()),
        output=list(index),
        verdict="unknown",
        reason="no point was found at which the function is smooth",
        source=source_of_output(asked.gradient, index),
    )
    said = 0
    for number in range(_TRIES):
        for turn in range(_DIRECTIONS):
            rng = np.random.default_rng([asked.seed, number, parameter, turn])
            direction = rng.standard_normal(shape.dims)
            expected, error = asked.slope(number, parameter, direction)
            terms = asked.said(number, output) * direction
            actual = float(terms.sum())
            size = float(np.abs(terms).sum())
            verdict = _verdict(asked, expected, actual, error, size)
            if verdict == "wrong":
                found = msgspec.structs.replace(
                    record,
                    verdict="wrong",
                    expected=expected,
                    actual=actual,
                    reason=f"along a random direction the slope is {expected:.6g}, and G says {actual:.6g}",
                )
                return _located(asked, found, number, parameter, output)
            said += verdict == "right"
        if said >= _DIRECTIONS * _POINTS:
            break
    if not said:
        return record
    reason = f"the same slope along {said} random directions, at {-(-said // _DIRECTIONS)} points"
    return msgspec.structs.replace(record, verdict="right", reason=reason)


def _verdict(asked: _Asked, expected: float, actual: float, error: float, size: float) -> str:
    if not np.isfinite(expected):
        return "unknown"
    if not np.isfinite(actual):
        return "wrong"
    reach = max(size, abs(expected))
    if error > _KNOWN * reach and error > 1e-9:
        return "unknown"
    allowed = _SAFETY * error + 16 * asked.unit * reach + 1e-12
    return "right" if abs(expected - actual) <= allowed else "wrong"


def _located(asked: _Asked, record: SlopeRecord, number: int, parameter: int, output: int) -> SlopeRecord:
    """The first wrong component; of large arrays those are looked at that G says most of, and some others."""
    said = asked.said(number, output)
    rng = np.random.default_rng([asked.seed, number, parameter])
    chosen = np.arange(said.size)
    if said.size > _COMPONENTS:
        largest = np.argsort(-np.abs(said), axis=None, kind="stable")[: _COMPONENTS // 2]
        chosen = np.unique([*largest, *rng.choice(said.size, _COMPONENTS // 2, replace=False)])
    wrong: list[tuple[int, float, float]] = []
    for place in map(int, chosen):
        direction = np.zeros(said.size)
        direction[place] = 1
        expected, error = asked.slope(number, parameter, direction.reshape(said.shape))
        actual = float(said.reshape(-1)[place])
        if _verdict(asked, expected, actual, error, abs(actual)) == "wrong":
            wrong.append((place, expected, actual))
    if not wrong:
        return msgspec.structs.replace(record, looked_at=len(chosen))
    place, expected, actual = wrong[0]
    component = [int(n) for n in np.unravel_index(place, said.shape)]
    where = f" at {component}" if component else ""
    return msgspec.structs.replace(
        record,
        component=component,
        expected=expected,
        actual=actual,
        wrong=len(wrong),
        looked_at=len(chosen),
        reason=f"the derivative{where} is {expected:.6g}, and G says {actual:.6g}",
    )
