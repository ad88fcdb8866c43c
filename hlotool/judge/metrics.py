"""How far two arrays of one shape are apart: counts, worst elements, histogram, map, least tolerance.

Definitions, the same in every report:

- the absolute error of an element is |expected - actual| (the modulus for complex numbers);
- its relative error is that over the larger of the two magnitudes, so it does not depend on which side is
  called expected, lies between 0 and 2, and is 1 where one side is zero;
- an element agrees when both sides are equal, both NaN, or absolute is at most what
  `Tolerance.allowed` says, by default atol + rtol * larger magnitude;
- integers and preds agree only when they are equal;
- an element whose sides differ in being NaN, or in being infinite, is counted apart: no tolerance covers
  it.

Arrays are read in pieces, so that the extra memory does not grow with their size. The map is one of the
last two dimensions, small enough for a terminal.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from hlotool.facts.float_order import ulp_distance
from hlotool.ir.arrays import Array
from hlotool.ir.types import ElementType
from hlotool.judge.records import BucketRecord, HeatMapRecord, MinimumToleranceRecord
from hlotool.judge.tolerance import EXACT, Tolerance

Scalar: TypeAlias = bool | int | float | complex

#: Elements looked at together: a temporary array of f64 then takes 2 MiB, whatever the size of the leaf.
PIECE = 1 << 18
#: Elements listed one by one: as many as a reader compares at a glance; the histogram has the rest.
TOP = 5
#: Upper ends of the histogram's magnitude buckets; the first one holds exact zeros.
_EDGES = np.array([0.0, *(10.0**k for k in range(-8, 9, 2))])

_Flags: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Element:
    """One element of both sides.

    Attributes:
        index: multi-dimensional.
        expected: value on the reference side.
        actual: value on the tested side.
        absolute: absolute error; NaN where one side is NaN, infinite where one is infinite.
        relative: relative error, likewise.
        ulps: representable values between them; None for integers and preds and where a side is not finite.
    """

    index: tuple[int, ...]
    expected: Scalar
    actual: Scalar
    absolute: float | int
    relative: float
    ulps: int | None


@dataclass(frozen=True, slots=True)
class Metrics:
    """The comparison of two arrays in numbers.

    Attributes:
        total: elements.
        mismatched: elements that do not agree, non-finite ones included.
        unequal: elements that are neither equal nor both NaN, within tolerance or not.
        nan_mismatches: NaN on one side only.
        inf_mismatches: infinite on one side only, or with different signs.
        worst_absolute: element with the largest absolute error among finite pairs; None when all are equal.
        worst_relative: likewise for the relative error.
        max_ulp: largest distance in representable values among finite pairs; None for integers and preds.
        top: up to five mismatched elements: non-finite ones first, then by how far they exceed the tolerance.
        histogram: of the mismatches by magnitude of the actual value; empty when nothing mismatched.
        minimum: smallest tolerances that would have been enough; None for integers and preds.
    """

    total: int
    mismatched: int = 0
    unequal: int = 0
    nan_mismatches: int = 0
    inf_mismatches: int = 0
    worst_absolute: Element | None = None
    worst_relative: Element | None = None
    max_ulp: int | None = None
    top: tuple[Element, ...] = ()
    histogram: tuple[BucketRecord, ...] = ()
    minimum: MinimumToleranceRecord | None = None


def bitwise_equal(expected: Array, actual: Array) -> bool:
    """Whether two arrays of one dtype and shape hold the same bits: NaN payloads and signs of zero count."""
    return all(_same_bits(e, a) for _, e, a in _pieces(expected, actual))


def measure(expected: Array, actual: Array, element_type: ElementType, tolerance: Tolerance) -> Metrics:
    """Compare two arrays of the same dimensions, both of dtype `dtype_of(element_type)`."""
    exact = not element_type.is_inexact
    totals = _Totals(expected.shape, element_type, EXACT if exact else tolerance)
    for start, e, a in _pieces(expected, actual):
        if not _same_bits(e, a):
            totals.add(start, e, a)
    histogram = _histogram(expected, actual, totals) if totals.mismatched else ()
    return totals.metrics(expected.size, histogram)


def _pieces(expected: Array, actual: Array) -> Iterator[tuple[int, Array, Array]]:
    """Flat pieces in row-major order, with the position of their first element."""
    flat_expected, flat_actual = _flat(expected), _flat(actual)
    for start in range(0, expected.size, PIECE):
        yield start, flat_expected[start : start + PIECE], flat_actual[start : start + PIECE]


def _flat(array: Array) -> Any:
    """Something that slices in row-major order without a copy of the whole."""
    return array.reshape(-1) if array.flags.c_contiguous else array.flat


def _same_bits(expected: Array, actual: Array) -> bool:
    return np.array_equal(_bits(expected), _bits(actual))


def _bits(values: Array) -> Array:
    size = values.dtype.itemsize
    if size <= 8:
        return values.view(np.dtype(f"u{size}"))
    return np.ascontiguousarray(values).view(np.uint64)


@dataclass(slots=True)
class _Compared:
    """One piece, element by element, in numbers wide enough to subtract."""

    expected: Array
    actual: Array
    absolute: Array
    magnitude: Array
    unequal: _Flags
    nan: _Flags
    inf: _Flags
    accepted: _Flags

    @property
    def finite(self) -> _Flags:
        """Unequal pairs of finite numbers."""
        return self.unequal & ~self.nan & ~self.inf

    @property
    def relative(self) -> Array:
        """Relative errors; 0 where the pair is equal."""
        return np.divide(
            self.absolute, self.magnitude, out=np.zeros(self.absolute.shape), where=self.magnitude != 0
        )


def _compare(expected: Array, actual: Array, element_type: ElementType, tolerance: Tolerance) -> _Compared:
    if element_type.is_inexact:
        return _compare_floats(expected, actual, element_type, tolerance)
    return _compare_integers(expected, actual)


def _compare_integers(expected: Array, actual: Array) -> _Compared:
    wide = np.uint64 if expected.dtype.kind == "u" or expected.dtype == np.bool_ else np.int64
    e, a = expected.astype(wide), actual.astype(wide)
    # Differences of 64-bit integers need one more bit: subtract modulo 2**64, larger minus smaller.
    absolute = np.maximum(e, a).view(np.uint64) - np.minimum(e, a).view(np.uint64)
    magnitude = np.maximum(np.abs(e.astype(np.float64)), np.abs(a.astype(np.float64)))
    unequal = absolute != 0
    none = np.zeros(unequal.shape, np.bool_)
    return _Compared(e, a, absolute, magnitude, unequal, none, none, ~unequal)


def _compare_floats(
    expected: Array, actual: Array, element_type: ElementType, tolerance: Tolerance
) -> _Compared:
    wide = np.complex128 if element_type.is_complex else np.float64
    with np.errstate(all="ignore"):
        e, a = expected.astype(wide), actual.astype(wide)
    nan_e, nan_a = np.isnan(e), np.isnan(a)
    unequal = (e != a) & ~(nan_e & nan_a)
    nan = nan_e != nan_a
    inf = unequal & ~nan & (np.isinf(e) | np.isinf(a))
    with np.errstate(all="ignore"):
        absolute = np.abs(e - a)
        magnitude = np.maximum(np.abs(e), np.abs(a))
        within = absolute <= tolerance.allowed(np.abs(e), magnitude)
    finite = unequal & ~nan & ~inf
    for numbers in (absolute, magnitude):
        numbers[~finite] = 0
    unequal &= ~(finite & (absolute <= tolerance.denormal))
    return _Compared(e, a, absolute, magnitude, unequal, nan, inf, ~unequal | (finite & within))


class _Totals:
    """What is known after some pieces."""

    def __init__(self, dims: tuple[int, ...], element_type: ElementType, tolerance: Tolerance) -> None:
        self.dims = dims
        self.element_type = element_type
        self.tolerance = tolerance
        self.has_ulps = element_type.is_inexact
        self.mismatched = self.unequal = self.nan = self.inf = self.max_ulp = 0
        self.worst_absolute: Element | None = None
        self.worst_relative: Element | None = None
        self.joint = 0.0
        self.top: list[tuple[float, Element]] = []
        self._last: tuple[int, _Compared] | None = None

    def add(self, start: int, expected: Array, actual: Array) -> None:
        """Take in a piece whose first element has flat position `start`."""
        compared = self.compared(start, expected, actual)
        self.unequal += int(compared.unequal.sum())
        self.nan += int(compared.nan.sum())
        self.inf += int(compared.inf.sum())
        self.mismatched += int((~compared.accepted).sum())
        finite = compared.finite
        if finite.any():
            self._add_worst(start, expected, actual, compared, finite)
        if not compared.accepted.all():
            self._add_top(start, expected, actual, compared)

    def compared(self, start: int, expected: Array, actual: Array) -> _Compared:
        """A piece, element by element; the last one is kept."""
        if self._last is None or self._last[0] != start:
            self._last = start, _compare(expected, actual, self.element_type, self.tolerance)
        return self._last[1]

    def _add_worst(
        self, start: int, expected: Array, actual: Array, compared: _Compared, finite: _Flags
    ) -> None:
        element = self._element_of(start, expected, actual, compared)
        absolute = np.where(finite, compared.absolute, 0)
        relative = np.where(finite, compared.relative, 0)
        worst = element(int(absolute.argmax()))
        if self.worst_absolute is None or worst.absolute > self.worst_absolute.absolute:
            self.worst_absolute = worst
        worst = element(int(relative.argmax()))
        if self.worst_relative is None or worst.relative > self.worst_relative.relative:
            self.worst_relative = worst
        self.joint = max(self.joint, float((absolute / (1.0 + compared.magnitude)).max()))
        if self.has_ulps:
            distances = ulp_distance(expected, actual, self.element_type)
            self.max_ulp = max(self.max_ulp, int(np.where(finite, distances, 0).max()))

    def _add_top(self, start: int, expected: Array, actual: Array, compared: _Compared) -> None:
        element = self._element_of(start, expected, actual, compared)
        allowed = self.tolerance.allowed(np.abs(compared.expected), compared.magnitude)
        with np.errstate(all="ignore"):
            excess = np.where(allowed > 0, compared.absolute / allowed, compared.absolute.astype(np.float64))
        excess[compared.nan | compared.inf] = math.inf
        excess[compared.accepted] = -1
        self.top += [(float(excess[i]), element(int(i))) for i in _largest(excess) if excess[i] >= 0]
        self.top.sort(key=lambda item: (-item[0], item[1].index))
        del self.top[TOP:]

    def _element_of(self, start: int, expected: Array, actual: Array, compared: _Compared) -> Any:
        """A function from positions in the piece to elements."""

        def element(i: int) -> Element:
            index = tuple(int(n) for n in np.unravel_index(start + i, self.dims))
            e, a = (_scalar(side[i], self.element_type) for side in (compared.expected, compared.actual))
            if compared.nan[i] or compared.inf[i]:
                error = math.nan if compared.nan[i] else math.inf
                return Element(index, e, a, error, error, None)
            ulps = None
            if self.has_ulps:
                ulps = int(ulp_distance(expected[i : i + 1], actual[i : i + 1], self.element_type)[0])
            absolute, size = compared.absolute[i], compared.magnitude[i]
            return Element(index, e, a, absolute.item(), float(absolute / size) if size else 0.0, ulps)

        return element

    def metrics(self, total: int, histogram: tuple[BucketRecord, ...]) -> Metrics:
        """The finished metrics of `total` elements, with `histogram` for the magnitudes."""
        return Metrics(
            total,
            self.mismatched,
            self.unequal,
            self.nan,
            self.inf,
            self.worst_absolute,
            self.worst_relative,
            self.max_ulp if self.has_ulps else None,
            tuple(e for _, e in self.top),
            histogram,
            self._minimum() if self.has_ulps else None,
        )

    def _minimum(self) -> MinimumToleranceRecord:
        if self.nan or self.inf:
            return MinimumToleranceRecord(absolute=None, relative=None, joint=None)
        if self.worst_absolute is None or self.worst_relative is None:
            return MinimumToleranceRecord(absolute=0.0, relative=0.0, joint=0.0)
        # A quotient is rounded: the next larger one is sure to be enough after the multiplication.
        above = 1 + 4 * np.finfo(np.float64).eps
        return MinimumToleranceRecord(
            absolute=float(self.worst_absolute.absolute),
            relative=float(self.worst_relative.relative * above),
            joint=float(self.joint * above),
        )


def _largest(values: Array) -> Array:
    """Positions of the `TOP` largest numbers, the largest first, of equal ones the first."""
    least = np.partition(values, -min(TOP, values.size))[-min(TOP, values.size)]
    near = np.flatnonzero(values >= least)
    return near[np.argsort(-values[near], kind="stable")[:TOP]]


def _scalar(value: Any, element_type: ElementType) -> Scalar:
    number: Scalar = value.item()
    return bool(number) if element_type is ElementType.PRED else number


def _histogram(expected: Array, actual: Array, totals: _Totals) -> tuple[BucketRecord, ...]:
    """Mismatches by magnitude of the actual value; NaNs count with the largest magnitudes."""
    counts = np.zeros((2, len(_EDGES) + 1), np.int64)
    worst = np.zeros(len(_EDGES) + 1)
    for start, e, a in _pieces(expected, actual):
        compared = totals.compared(start, e, a)
        errors = np.where(compared.accepted, 0, compared.absolute)
        for bucket, inside in enumerate(_buckets(compared.actual)):
            if count := np.count_nonzero(inside):
                counts[:, bucket] += count, np.count_nonzero(inside & ~compared.accepted)
                worst[bucket] = max(worst[bucket], (errors * inside).max())
    edges = [0.0, *map(float, _EDGES), None]
    return tuple(
        BucketRecord(
            low=edges[i] or 0.0,
            high=edges[i + 1],
            total=int(counts[0, i]),
            mismatched=int(counts[1, i]),
            worst_absolute=float(worst[i]),
        )
        for i in range(counts.shape[1])
        if counts[0, i]
    )


def _buckets(values: Array) -> Iterator[_Flags]:
    """Which values have a magnitude up to each edge and beyond the one before; the last ones are NaN, too."""
    with np.errstate(all="ignore"):
        magnitudes = np.abs(values if values.dtype.kind in "fc" else values.astype(np.float64))
    before = np.zeros(values.shape, np.bool_)
    for edge in _EDGES:
        below = magnitudes <= edge
        yield below ^ before
        before = below
    yield ~before


#: Cells of a map at most: beyond that they stand for several elements each.
_ROWS, _COLUMNS = 12, 48


def heat_map(expected: Array, actual: Array, element_type: ElementType) -> HeatMapRecord | None:
    """The largest errors by place.

    Args:
        expected: of the dimensions of the leaf.
        actual: of the same dimensions.
        element_type: of both.

    Returns:
        None for arrays that have no two dimensions of more than one element.
    """
    if expected.ndim < 2 or min(expected.shape[-2:]) < 2 or not expected.size:
        return None
    rows, columns = expected.shape[-2:]
    down, right = _edges(rows, _ROWS), _edges(columns, _COLUMNS)
    cells = np.zeros((len(down), len(right)))
    for e, a in zip(expected.reshape(-1, rows, columns), actual.reshape(-1, rows, columns)):
        errors = _errors(e, a, element_type)
        blocks = np.maximum.reduceat(np.maximum.reduceat(errors, down, axis=0), right, axis=1)
        np.maximum(cells, blocks, out=cells)
    shown = [[None if math.isinf(error) else error for error in row] for row in cells.tolist()]
    return HeatMapRecord(rows=rows, columns=columns, cells=shown)


def _edges(size: int, most: int) -> npt.NDArray[np.intp]:
    """Where cells begin: as equal as they can be."""
    return np.unique(np.linspace(0, size, min(size, most), endpoint=False).astype(np.intp))


def _errors(expected: Array, actual: Array, element_type: ElementType) -> npt.NDArray[np.float64]:
    """Absolute errors; infinite where one side alone is not finite."""
    wide = np.complex128 if element_type.is_complex else np.float64
    with np.errstate(all="ignore"):
        e, a = expected.astype(wide), actual.astype(wide)
        errors: npt.NDArray[np.float64] = np.abs(e - a)
    errors[(e == a) | (np.isnan(e) & np.isnan(a))] = 0
    errors[np.isnan(errors)] = np.inf
    return errors
