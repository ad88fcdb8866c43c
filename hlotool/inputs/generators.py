"""Arrays that meet constraints: numbers that neither overflow nor lose all their digits on the way.

Floats are roughly normal with deviation 1 (or the scale that keeps sums of products near 1), cut at three
deviations, so that even f8 holds them. Integers are small. Everything is drawn from the generator passed
in.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from math import prod
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from hlotool.facts.demands import MatrixKind, Ordered
from hlotool.facts.ranges import ANY, Interval
from hlotool.facts.scalar_form import neutral_value
from hlotool.inputs.constraints import Constraint
from hlotool.ir.arrays import Array, dtype_of, integer_limits
from hlotool.ir.types import ElementType

#: Largest magnitudes of integers that nothing constrains: small, so that loops end and powers stay exact.
_SIGNED, _UNSIGNED = 10, 20
#: Types of up to this many bits take all their values: arithmetic on them wraps around in real programs too,
#: and compilers go wrong exactly there.
_FULL_RANGE_BITS = 8
#: A scalar with at most this many possible values takes them in turn as the seed counts up, so that as many
#: seeds see every branch of a conditional, which random draws would not promise.
_TAKE_TURNS: Final = 8

#: Ranges that end beyond this one are drawn as u64.
_INT64_STOP: Final = 2**63 - 1

_Ints = npt.NDArray[np.int64]


def integers(
    element_type: ElementType,
    dims: Sequence[int],
    constraint: Constraint,
    rng: np.random.Generator,
    turn: int,
) -> Array:
    """An integer array; see `generators.generate`."""
    if constraint.all_bits:
        return _all_bits(element_type, dims, rng)
    ranges = [integer_range(element_type, interval) for interval in constraint.intervals]
    dtype = dtype_of(element_type)
    if not dims and len(ranges[0]) <= _TAKE_TURNS:
        choices = _allowed(ranges[0], constraint.intervals[0])
        return np.asarray(choices[turn % len(choices)]).astype(dtype)
    if constraint.order is not None and dims:
        return _ordered(dims, ranges, constraint, constraint.order, rng).astype(dtype)
    values = _independent(dims, ranges, constraint.axis, rng)
    return _step_aside(values, ranges[0], constraint.intervals[0]).astype(dtype)


def integer_range(element_type: ElementType, interval: Interval) -> range:
    """The integers of `interval` that the type holds; open ends reach as far as those of free integers."""
    smallest, largest = integer_limits(element_type)
    usual_low, usual_high = _usual_range(element_type)
    width = usual_high - usual_low
    low = math.ceil(interval.low) if math.isfinite(interval.low) else None
    high = math.floor(interval.high) if math.isfinite(interval.high) else None
    if low is not None and low == interval.avoid:
        low += 1
    if high is not None and high == interval.avoid:
        high -= 1
    if low is None:
        low = usual_low if high is None or high >= usual_high else high - width
    if high is None:
        high = max(usual_high, low + width if low > usual_low else usual_high)
    low = min(max(low, smallest), largest)
    return range(low, max(low, min(high, largest)) + 1)


def holds(numbers: range, number: float | None) -> bool:
    """Whether a number is one of them. Python looks for a float by going through them all, one by one."""
    return number is not None and float(number).is_integer() and int(number) in numbers


def _usual_range(element_type: ElementType) -> tuple[int, int]:
    if element_type.bits <= _FULL_RANGE_BITS:
        return integer_limits(element_type)
    return (-_SIGNED, _SIGNED) if element_type.is_signed else (0, _UNSIGNED)


def _all_bits(element_type: ElementType, dims: Sequence[int], rng: np.random.Generator) -> Array:
    low, high = integer_limits(element_type)
    drawn_type = np.int64 if element_type.is_signed else np.uint64
    drawn = rng.integers(low, high, tuple(dims), dtype=drawn_type, endpoint=True)
    return np.asarray(drawn).astype(dtype_of(element_type))


def _allowed(values: range, interval: Interval) -> Sequence[int]:
    kept = [v for v in values if v != interval.avoid]
    return kept or values


def _independent(
    dims: Sequence[int], ranges: Sequence[range], axis: int | None, rng: np.random.Generator
) -> _Ints:
    """Uniform in each position's range; what is beyond int64 comes as the int64 of the same bits."""
    along = [1] * len(dims)
    if axis is not None:
        along[axis] = len(ranges)
    if max(r.stop for r in ranges) > _INT64_STOP:
        lows = np.array([r.start % 2**64 for r in ranges], np.uint64).reshape(along)
        widths = np.array([r.stop - 1 - r.start for r in ranges], np.uint64).reshape(along)
        drawn = lows + rng.integers(0, widths, tuple(dims), np.uint64, endpoint=True)
        return np.asarray(drawn, np.uint64).view(np.int64)
    starts = np.array([r.start for r in ranges], np.int64).reshape(along)
    stops = np.array([r.stop for r in ranges], np.int64).reshape(along)
    return np.asarray(rng.integers(starts, stops, tuple(dims)), np.int64)


def _step_aside(values: _Ints, allowed: range, interval: Interval) -> _Ints:
    """Values at the forbidden point move to a neighbour."""
    if interval.avoid is None or len(allowed) < 2:
        return values
    neighbour = interval.avoid + 1 if holds(allowed, interval.avoid + 1) else interval.avoid - 1
    return np.where(values == interval.avoid, int(neighbour), values)


def _ordered(
    dims: Sequence[int],
    ranges: Sequence[range],
    constraint: Constraint,
    order: Ordered,
    rng: np.random.Generator,
) -> _Ints:
    """Distinct or ascending elements, or vectors of them along an axis, group by group.

    A vector is drawn as its position in the row-major enumeration of all vectors: distinct positions are
    distinct vectors, ascending positions are lexicographically ascending vectors.
    """
    axis = constraint.axis if order.axis is None else order.axis
    vector = [] if axis is None else [axis]
    groups = [d for d in order.batch if d < len(dims) and d not in vector]
    rest = [d for d in range(len(dims)) if d not in groups and d not in vector]
    extents = _vector_ranges(dims, ranges, axis)
    sizes = [len(r) for r in extents]
    shape = [dims[d] for d in groups], prod(dims[d] for d in rest)
    drawn = (
        np.stack([_draw(shape[1], prod(sizes), order, rng) for _ in range(prod(shape[0]))])
        if prod(dims)
        else np.zeros((0,), np.int64)
    )
    parts = np.stack(np.unravel_index(drawn, sizes), axis=-1) + np.array([r.start for r in extents])
    permuted = parts.reshape([dims[d] for d in (*groups, *rest, *vector)])
    return np.asarray(permuted.transpose(np.argsort([*groups, *rest, *vector])), np.int64)


def _vector_ranges(dims: Sequence[int], ranges: Sequence[range], axis: int | None) -> list[range]:
    """The range of every component of a vector."""
    components = 1 if axis is None else dims[axis]
    if len(ranges) == components:
        return list(ranges)
    common = range(max(r.start for r in ranges), min(r.stop for r in ranges))
    return [common] * components


def _draw(count: int, possible: int, order: Ordered, rng: np.random.Generator) -> _Ints:
    """Positions out of `possible`; with repetitions where there are too few of them to be distinct."""
    if order.distinct and count <= possible:
        drawn = rng.choice(possible, count, replace=False, shuffle=not order.ascending)
    else:
        drawn = rng.integers(0, max(1, possible), count)
    return np.sort(drawn) if order.ascending else np.asarray(drawn, np.int64)


#: Floats keep this distance from a forbidden point and from ends of their interval, in units of the scale: a
#: divisor of 0.25 amplifies rounding four times, one of 0.001 a thousand times.
_MARGIN: Final = 0.25
#: Deviations at which normal numbers are cut: one in 370 lies beyond, so that this hardly changes them, and
#: even f4e2m1fn, which ends at 6, holds what is left.
_CUT: Final = 3.0

#: f64 where the type is that wide, f32 otherwise: large parameters are common.
_Floats = npt.NDArray[Any]


def generator_of(*words: int) -> np.random.Generator:
    """What `np.random.default_rng` makes of a list of whole numbers from 0, in half of the time.

    Tiny arrays take less time to draw than their generator does to make.
    """
    if max(words) >> 32:
        return np.random.default_rng(words)
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(np.array(words, np.uint32))))


class Draw(Struct, frozen=True):
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
        return np.minimum(np.maximum(drawn, -_CUT, out=drawn), _CUT, out=drawn)

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
        return _off_forbidden(draw.uniform(dims, low, high), interval, margin)
    values = _normal(dims, constraint, draw)
    values = np.where(values < low, low + np.abs(values), values)
    values = np.where(values > high, high - np.abs(values), values)
    return _off_forbidden(np.maximum(values, low), interval, margin)


def _off_forbidden(values: _Floats, interval: Interval, margin: float) -> _Floats:
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
