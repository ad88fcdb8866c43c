"""Arrays that meet constraints: numbers that neither overflow nor lose all their digits on the way.

Floats are roughly normal with deviation 1 (or the scale that keeps sums of products near 1), cut at three
deviations, so that even f8 holds them. Integers are small. Everything is drawn from the generator passed in.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hlotool.analysis.interval import ANY, Interval
from hlotool.ir.dtypes import Array, dtype_of
from hlotool.ir.types import ElementType
from hlotool.values.constraints import Constraint
from hlotool.values.demands import MatrixKind
from hlotool.values.integers import integers
from hlotool.values.monoids import neutral_value

#: Floats keep this distance from a forbidden point and from ends of their interval, in units of the scale: a
#: divisor of 0.25 amplifies rounding four times, one of 0.001 a thousand times.
_MARGIN: Final = 0.25
#: Deviations at which normal numbers are cut: one in 370 lies beyond, so that this hardly changes them, and
#: even f4e2m1fn, which ends at 6, holds what is left.
_CUT: Final = 3.0

#: f64 where the type is that wide, f32 otherwise: large parameters are common.
_Floats = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Draw:
    """What random values are made from.

    Attributes:
        rng: source of randomness.
        turn: counts up with the seed; chooses the value of a scalar that has only a few.
        value_range: replaces the default of floats that no demand bounds.
        wide: draw floats with all digits of f64.
    """

    rng: np.random.Generator
    turn: int = 0
    value_range: tuple[float, float] | None = None
    wide: bool = False

    @property
    def dtype(self) -> type[np.float32 | np.float64]:
        """The NumPy type in which floats are drawn."""
        return np.float64 if self.wide else np.float32

    def normal(self, dims: Sequence[int]) -> _Floats:
        """Standard normal numbers in an array of `dims`, without the far tails."""
        drawn: _Floats = np.asarray(self.rng.standard_normal(tuple(dims), self.dtype))
        return np.clip(drawn, -_CUT, _CUT, out=drawn)

    def uniform(self, dims: Sequence[int], low: float, high: float) -> _Floats:
        """Uniform numbers from `low` to `high` in an array of `dims`."""
        drawn: _Floats = np.asarray(self.rng.random(tuple(dims), self.dtype))
        drawn *= self.dtype(high - low)
        drawn += self.dtype(low)
        return drawn


def generate(element_type: ElementType, dims: Sequence[int], constraint: Constraint, draw: Draw) -> Array:
    """An array of `dtype_of(element_type)` and sizes `dims` whose values meet `constraint`."""
    dtype = dtype_of(element_type)
    if constraint.exactly is not None:
        return np.full(tuple(dims), neutral_value(element_type, constraint.exactly), dtype)
    if element_type is ElementType.PRED:
        return _preds(dims, draw)
    if element_type.is_integer:
        return integers(element_type, dims, constraint, draw.rng, draw.turn)
    if element_type is ElementType.F8E8M0FNU:
        return np.asarray(np.exp2(draw.rng.integers(-2, 3, tuple(dims)))).astype(dtype)
    if constraint.matrix is not None and len(dims) >= 2:
        return _matrices(dims, constraint.matrix, element_type.is_complex, draw.rng).astype(dtype)
    if element_type.is_complex:
        return (_normal(dims, constraint, draw) + 1j * _normal(dims, constraint, draw)).astype(dtype)
    return _floats(dims, constraint, draw).astype(dtype, copy=False)


def _preds(dims: Sequence[int], draw: Draw) -> Array:
    """A scalar flips with the seed, so that two seeds see both branches."""
    if not dims:
        return np.asarray(draw.turn % 2 == 0)
    return draw.rng.random(tuple(dims)) < 0.5


def _normal(dims: Sequence[int], constraint: Constraint, draw: Draw) -> _Floats:
    """Floats that no interval bounds."""
    if draw.value_range is not None:
        return draw.uniform(dims, *draw.value_range)
    drawn = draw.normal(dims)
    drawn *= draw.dtype(constraint.scale)
    return drawn


def _floats(dims: Sequence[int], constraint: Constraint, draw: Draw) -> _Floats:
    if not constraint.is_bounded:
        return _normal(dims, constraint, draw)
    if constraint.axis is None or len(constraint.intervals) == 1:
        return _inside(dims, constraint.intervals[0], constraint, draw)
    row = [d for i, d in enumerate(dims) if i != constraint.axis]
    parts = [_inside(row, interval, constraint, draw) for interval in constraint.intervals]
    return np.stack(parts, axis=constraint.axis)


def _inside(dims: Sequence[int], interval: Interval, constraint: Constraint, draw: Draw) -> _Floats:
    """Floats of an interval, away from its ends and its forbidden point."""
    if interval == ANY:
        return _normal(dims, constraint, draw)
    # A narrow interval keeps most of its width for the values.
    margin = min(_MARGIN * constraint.scale, (interval.high - interval.low) / 16)
    low, high = interval.low + margin, interval.high - margin
    if interval.is_bounded and high - low < 2 * _CUT * constraint.scale:
        return _step_aside(draw.uniform(dims, low, high), interval, margin)
    values = _normal(dims, constraint, draw)
    values = np.where(values < low, low + np.abs(values), values)
    values = np.where(values > high, high - np.abs(values), values)
    return _step_aside(np.maximum(values, low), interval, margin)


def _step_aside(values: _Floats, interval: Interval, margin: float) -> _Floats:
    """Move values that are too close to the forbidden point away from it."""
    if interval.avoid is None:
        return values
    distance = values - interval.avoid
    moved = interval.avoid + np.copysign(margin + np.abs(distance), distance)
    close = (np.abs(distance) < margin) & (moved > interval.low) & (moved < interval.high)
    return np.where(close, moved, values)


def _matrices(dims: Sequence[int], kind: MatrixKind, is_complex: bool, rng: np.random.Generator) -> Array:
    """Matrices with condition numbers of a few units, whatever their size."""
    rows, columns = dims[-2:]
    parts = rng.standard_normal((2, *dims)) / math.sqrt(max(1, columns))
    noise = parts[0] + 1j * parts[1] if is_complex else parts[0]
    identity = np.eye(rows, columns)
    if kind is MatrixKind.POSITIVE_DEFINITE and rows == columns:
        return np.asarray(noise @ np.conj(np.swapaxes(noise, -1, -2)) + identity)
    signs = np.where(rng.random(tuple(dims)) < 0.5, -1.0, 1.0)
    triangle = np.tril(noise, -1) if kind is MatrixKind.LOWER else np.triu(noise, 1)
    return np.asarray(triangle / 2 + identity * signs * rng.uniform(1, 2, tuple(dims)))
