"""Integer arrays that meet constraints."""

from __future__ import annotations

import math
from collections.abc import Sequence
from math import prod
from typing import Final

import numpy as np
import numpy.typing as npt

from hlotool.analysis.interval import Interval
from hlotool.ir.dtypes import Array, dtype_of, integer_limits
from hlotool.ir.types import ElementType
from hlotool.values.constraints import Constraint
from hlotool.values.demands import Ordered

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
