"""Could a result be one more legal execution? Statistics of one leaf against an ensemble of such executions.

Every element has a centre and a spread. The centre is an interval: from the mean of the ensemble to the value
in f64, because a result may round less than the ensemble does. The spread is that of the ensemble, smoothed
over rows and columns of the leaf, so that a coincidence is not taken for a fault. An element's score is its
distance from the centre over the spread.

Five statistics look at the scores: the worst element; the root mean square of the leaf, of a row, of a column
and of a slice of the first dimension; and the sum with signs, which sees a bias that no element shows. What
they may be, the members of the ensemble say themselves: each is scored against all others (leave one out). A
ratio is the result's statistic over the largest of the members'; legal executions have ratios around a half.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from hlotool.facts import thresholds
from hlotool.facts.float_order import epsilon, flush_threshold
from hlotool.facts.own_units import Members, exponents_of, in_units, kinds_of, squared_distances
from hlotool.ir.arrays import Array
from hlotool.ir.types import ElementType

_Floats = npt.NDArray[np.float64]
_Flags = npt.NDArray[np.bool_]

#: Names of the statistics, as reports print them.
STATISTICS = ("worst element", "whole output", "row", "column", "slice", "bias")
#: Scores end here: sums of their squares are finite.
_HIGHEST = 1e30
#: Elements scored together, so that memory does not grow with the leaf: each takes some f64 per member.
_BLOCK = 1 << 16


@dataclass(frozen=True, slots=True)
class Score:
    """How a result stands to the ensemble.

    Attributes:
        ratio: the largest of `ratios`.
        ratios: by statistic: the result's over the largest of the members'.
        members: size of the ensemble.
        width: spread of the ensemble relative to the values (root mean squares).
        worst: index of the element with the highest score.
        worst_score: its distance from the centre in spreads.
        beyond: elements further out than any member's, flat, in row-major order.
        misplaced: NaN or infinite on one side only, where all members agree; a part of `beyond`.
        unknown: numbers that differ from the reference where most members overflow, and none of `beyond`.
    """

    ratio: float
    ratios: dict[str, float]
    members: int
    width: float
    worst: tuple[int, ...]
    worst_score: float
    beyond: _Flags = field(repr=False)
    misplaced: int
    unknown: int = 0

    @property
    def statistic(self) -> str:
        """The statistic with the largest ratio."""
        return max(self.ratios, key=lambda name: self.ratios[name])


def _least() -> _Floats:
    """What each statistic may be at least: an ensemble of a few members can be lucky as a whole."""
    part = thresholds.LEAST_PART
    least = (thresholds.LEAST_WORST, thresholds.LEAST_WHOLE, part, part, part, thresholds.LEAST_BIAS)
    return np.array([threshold.value for threshold in least])


def score(
    actual: Array,
    members: Sequence[Array],
    element_type: ElementType,
    shadow: Array | None = None,
    resolution: float | None = None,
) -> Score:
    """Score a float or complex array.

    Args:
        actual: the result in question.
        members: legal results, at least three, of the same dimensions; the first is the reference. Members
            that are not finite where the reference is do not widen the spread there. Where most are not,
            legal executions overflow, and say nothing of an element: it has no score.
        element_type: declared; says what an ulp is.
        shadow: the value in f64 (or c128).
        resolution: relative size of differences that never count; half an ulp of `element_type` by default.
    """
    leaf = _Leaf(actual, members, element_type, shadow, resolution)
    return leaf.score()


@dataclass(slots=True)
class _Sums:
    """Sums of squared scores of one candidate by row, column and slice."""

    rows: _Floats
    columns: _Floats
    slices: _Floats
    worst: float = 0.0
    squares: float = 0.0
    signed: float = 0.0


class _Leaf:
    def __init__(
        self,
        actual: Array,
        members: Sequence[Array],
        element_type: ElementType,
        shadow: Array | None,
        resolution: float | None,
    ) -> None:
        self._dims = actual.shape
        self._parts = 2 if element_type.is_complex else 1
        self._actual = _flat(actual, element_type)
        self._members = [_flat(member, element_type) for member in members]
        self._shadow = None if shadow is None else _flat(shadow, element_type)
        self._resolution = epsilon(element_type) / 2 if resolution is None else resolution
        self._tiny = flush_threshold(element_type)
        size = self._size = self._actual.size
        self._columns = _piece(max(1, (self._dims[-1] if self._dims else 1) * self._parts))
        self._rows = size // self._columns
        self._slices = self._dims[0] if len(self._dims) > 2 and size else 1
        self._exponent = math.frexp(max(self._tiny, *map(_largest, self._members)))[1]
        self._looked_at: tuple[slice, Members] | None = None

    def score(self) -> Score:
        """See `score`."""
        pooled = self._pool()
        count = len(self._members)
        candidates = [self._new_sums() for _ in range(count + 1)]
        actual_scores = np.zeros(self._size)
        misplaced = np.zeros(self._size, np.bool_)
        unknown = 0
        for rows in self._blocks():
            block = _Block(self, rows, pooled)
            for number in range(count):
                self._add(candidates[number], rows, block.left_out(number))
            scores, wrong, says_nothing = block.actual()
            unknown += int(says_nothing.sum())
            part = self.part(rows)
            actual_scores[part], misplaced[part] = scores, wrong
            self._add(candidates[count], rows, scores)
        statistics = np.array([self._statistics(sums) for sums in candidates])
        legal = np.maximum(statistics[:-1].max(axis=0), _least())
        ratios = statistics[-1] / legal
        beyond: _Flags = np.greater(np.abs(actual_scores), legal[0])
        beyond |= misplaced
        worst = int(np.argmax(np.where(misplaced, np.inf, np.abs(actual_scores)))) if self._size else 0
        if misplaced.any():
            ratios[0] = math.inf
        return Score(
            float(ratios.max(initial=0.0)),
            {name: float(ratio) for name, ratio in zip(STATISTICS, ratios)},
            count,
            pooled.width,
            self._index(worst),
            float(abs(actual_scores[worst])) if self._size else 0.0,
            self._by_element(beyond),
            int(self._by_element(misplaced).sum()),
            unknown,
        )

    def members(self, rows: slice) -> Members:
        """Some rows of all members."""
        if self._looked_at is None or self._looked_at[0] != rows:
            part = self.part(rows)
            values = np.stack([member[part] for member in self._members]).astype(np.float64, copy=False)
            self._looked_at = rows, Members(values)
        return self._looked_at[1]

    def _blocks(self) -> Iterator[slice]:
        """Ranges of rows."""
        step = max(1, _BLOCK // self._columns)
        return (slice(start, min(start + step, self._rows)) for start in range(0, self._rows, step))

    def part(self, rows: slice) -> slice:
        """The elements of some rows."""
        return slice(rows.start * self._columns, rows.stop * self._columns)

    def _index(self, position: int) -> tuple[int, ...]:
        if not self._size:
            return ()
        return tuple(int(n) for n in np.unravel_index(position // self._parts, self._dims))

    def _by_element(self, flags: _Flags) -> _Flags:
        """One flag per complex number."""
        found: _Flags = np.any(flags.reshape(-1, self._parts), axis=1)
        return found

    def _new_sums(self) -> _Sums:
        return _Sums(np.zeros(self._rows), np.zeros(self._columns), np.zeros(self._slices))

    def _add(self, sums: _Sums, rows: slice, scores: _Floats) -> None:
        squares = scores * scores
        sums.worst = max(sums.worst, float(np.abs(scores).max(initial=0)))
        sums.squares += float(squares.sum())
        sums.signed += float(scores.sum())
        self._accumulate(sums, rows, squares)

    def _accumulate(self, sums: _Sums, rows: slice, values: _Floats) -> None:
        table = values.reshape(-1, self._columns)
        by_row = table.sum(axis=1)
        sums.rows[rows] += by_row
        sums.columns += table.sum(axis=0)
        if self._slices > 1:
            np.add.at(sums.slices, np.arange(rows.start, rows.stop) // (self._rows // self._slices), by_row)

    def _statistics(self, sums: _Sums) -> list[float]:
        size = max(1, self._size)
        means = (
            sums.squares / size,
            sums.rows.max(initial=0) / self._columns,
            sums.columns.max(initial=0) / max(1, self._rows),
            sums.slices.max(initial=0) / (size // self._slices) if self._slices > 1 else 0.0,
        )
        return [sums.worst, *map(math.sqrt, means), abs(sums.signed) / math.sqrt(size)]

    def _pool(self) -> _Pool:
        """Spreads by row, by column and over the leaf."""
        sums, scale = self._new_sums(), 0.0
        typical: list[float] = []
        for block in self._blocks():
            members = self.members(block)
            typical.append(_relative(members.variance, members.own[0]))
            unit = members.exponents - self._exponent
            variance = in_units(members.variance, -2 * unit)
            self._accumulate(sums, block, variance)
            sums.squares += float(variance.sum())
            scale += float((in_units(members.mean, -unit) ** 2).sum())
        size = max(1, self._size)
        rows, columns = sums.rows / self._columns, sums.columns / max(1, self._rows)
        width = math.sqrt(sums.squares / scale) if scale else 0.0
        return _Pool(rows, columns, sums.squares / size, width, float(np.median(typical or [0.0])))


@dataclass(frozen=True, slots=True)
class _Pool:
    """Mean variances of the ensemble, in the unit of the leaf (`_Leaf._exponent`).

    Attributes:
        rows: by row.
        columns: by column.
        whole: over the leaf.
        width: relative to the mean square of the values.
        typical: the median of the elements' own variances, relative to their squares (`_relative`).
    """

    rows: _Floats
    columns: _Floats
    whole: float
    width: float
    typical: float

    def expected(self, rows: slice) -> _Floats:
        """The spreads that elements' rows and columns let expect."""
        if self.whole == 0:
            return np.zeros(self.columns.size * self.rows[rows].size)
        with np.errstate(all="ignore"):
            product = self.rows[rows, None] * (self.columns / self.whole)
        spreads: _Floats = np.sqrt(product.reshape(-1))
        return spreads


class _Block:
    """Some elements of all candidates."""

    def __init__(self, leaf: _Leaf, rows: slice, pool: _Pool) -> None:
        part = leaf.part(rows)
        found = leaf.members(rows)
        actual = leaf._actual[part].astype(np.float64)
        is_finite = np.isfinite(actual)
        if found.is_finite is None:
            self._overflows = np.zeros(actual.size, np.bool_)
            self._misplaced = ~is_finite
        else:
            self._overflows = 2 * (~found.is_finite[1:]).sum(axis=0) > len(found.values) - 1
            kinds = np.stack([kinds_of(value) for value in found.values])
            self._misplaced = (kinds == kinds[0]).all(axis=0) & (kinds_of(actual) != kinds[0])
            is_finite &= found.is_finite[0]
        self._is_scored = is_finite & ~self._overflows
        exponents, members = found.exponents, found.own
        if (small := found.magnitudes < leaf._tiny).any():
            exponents = np.where(small, exponents_of(np.array(leaf._tiny)), exponents)
            members = found.in_units(exponents)
        self._origin = members[0]
        self._offsets = members - self._origin
        self._actual = np.where(is_finite, in_units(actual, exponents) - self._origin, 0)
        self._sum = self._offsets.sum(axis=0)
        self._squares = squared_distances(members, self._origin)
        self._shadow: _Floats | None = None
        if leaf._shadow is not None:
            shadow = leaf._shadow[part]
            self._has_shadow = np.isfinite(shadow)
            self._shadow = np.where(self._has_shadow, in_units(shadow, exponents) - self._origin, 0.0)
        near = in_units(pool.expected(rows), exponents - leaf._exponent)
        size = np.abs(self._origin)
        smoothed = thresholds.SMOOTHING.value * np.maximum(near, math.sqrt(pool.typical) * size)
        step = leaf._resolution * size + in_units(leaf._tiny, exponents)
        self._least = smoothed**2 + step**2

    def _scores(self, offset: _Floats, total: _Floats, squares: _Floats, count: int) -> _Floats:
        """Scores of one candidate against `count` others with the given sums."""
        mean = total / count
        variance = np.maximum(squares - count * mean * mean, 0) / (count - 1)
        if self._shadow is None:
            distance = offset - mean
        else:
            truth = np.where(self._has_shadow, self._shadow, mean)
            low, high = np.minimum(mean, truth), np.maximum(mean, truth)
            distance = offset - np.clip(offset, low, high)
        with np.errstate(all="ignore"):
            scores = np.clip(distance / np.sqrt(variance + self._least), -_HIGHEST, _HIGHEST)
        return np.where(distance == 0, 0.0, scores)

    def left_out(self, number: int) -> _Floats:
        """Scores of a member against all others."""
        own = self._offsets[number]
        return self._scores(own, self._sum - own, self._squares - own * own, len(self._offsets) - 1)

    def actual(self) -> tuple[_Floats, _Flags, _Flags]:
        """Scores of the result, where it is NaN or infinite unlike all members, and where these say nothing.

        They say nothing of what is another finite number than the reference's where most of them overflow.
        """
        scores = self._scores(self._actual, self._sum, self._squares, len(self._offsets))
        scores[~self._is_scored] = 0
        return scores, self._misplaced, self._overflows & (self._actual != 0)


def _largest(values: Array) -> float:
    """The largest finite magnitude; 0 without any."""
    return float(np.max(np.abs(values), initial=0, where=np.isfinite(values)))


def _relative(variance: _Floats, values: _Floats) -> float:
    """The median variance of the elements relative to their squares; where most are noise, of the others."""
    squares = values * values
    usable = squares > 0
    if not usable.all():
        variance, squares = variance[usable], squares[usable]
    if not squares.size:
        return 0.0
    relative = variance / squares
    median = _median(relative)
    if median <= 1:
        return median
    # Most are what is left of a cancellation, and say nothing of those that are numbers.
    numbers = relative[relative <= 1]
    return _median(numbers) if numbers.size else 0.0


def _median(values: _Floats) -> float:
    """As `np.median`, which looks for NaN, too."""
    middle = values.size // 2
    ordered = np.partition(values, middle)
    upper = ordered[middle]
    return float(upper if values.size % 2 else (ordered[:middle].max() + upper) / 2)


def _piece(columns: int) -> int:
    """How many elements make up a row: those of the last dimension, or an even part of very many."""
    if columns <= _BLOCK:
        return columns
    return next((n for n in range(_BLOCK, 256, -1) if columns % n == 0), columns)


def _flat(array: Array, element_type: ElementType) -> Array:
    """Row-major, complex numbers as pairs, in a dtype that NumPy computes with."""
    if element_type.is_complex:
        wide = np.ascontiguousarray(array)
        return wide.reshape(-1).view(wide.real.dtype)
    flat: Array = np.ascontiguousarray(array).reshape(-1)
    return flat if flat.dtype in (np.float32, np.float64) else flat.astype(np.float64)
