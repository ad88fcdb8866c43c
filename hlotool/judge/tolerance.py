"""Which differences are accepted as rounding, of floats and of integers that depend on floats.

An element agrees when |expected - actual| <= atol + rtol * larger magnitude. Both numbers are derived, and
a table gives a reason per row:

- rtol is a number of ulps of the coarsest float type that the leaf passed through, plus a multiple of the
  error of its longest sum, which grows like sqrt(terms) when the order of the terms changes;
- atol is rtol times the scale of the leaf (`leaf_scale`), because an element that is small by cancellation
  carries the errors of terms as large as its neighbours.

This separates rounding from faults only as well as a fixed bound can: faults below it pass unseen.

A float that moves by an ulp can flip a comparison, a floor or an argmax, and the integer moves by any
amount. An element of integers or preds is beyond when no member of the ensemble of legal executions reaches
it: it lies outside of what they span. How many such elements are legal, the members say themselves, each
against all others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from hlotool.facts import thresholds
from hlotool.facts.float_order import epsilon, flush_threshold
from hlotool.facts.result_facts import NOTHING, Facts
from hlotool.ir.arrays import Array
from hlotool.ir.types import ElementType, ShapeIndex
from hlotool.judge.records import output_index


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Accepted difference of one leaf: |expected - actual| <= atol + rtol * larger magnitude.

    Attributes:
        atol: absolute part.
        rtol: relative part.
        denormal: absolute differences up to this are no differences: one side may flush denormals to zero.
        reason: what it is derived from, in one clause.
        either: one of the two parts is enough, and rtol is relative to the expected value, as XLA's own tools
            compare (xla/literal_comparison.cc).
    """

    atol: float
    rtol: float
    denormal: float = 0.0
    reason: str = ""
    either: bool = False

    def allowed(self, expected: Array, larger: Array) -> Array:
        """How far off each element may be, by the magnitudes of what is expected and of the larger side."""
        if self.either:
            return np.asarray(np.maximum(self.atol, self.rtol * expected))
        return self.atol + self.rtol * larger


#: For integers and preds.
EXACT = Tolerance(0.0, 0.0, reason="exact")


@dataclass(frozen=True, slots=True)
class Row:
    """Ulps that elementwise arithmetic in one type may be off by, and why."""

    ulps: float
    reason: str


#: By the coarsest float type upstream; complex types follow their parts.
ULPS: dict[ElementType, Row] = {
    ElementType.F64: Row(64, "about fifty operations that legal rewrites round differently"),
    ElementType.F32: Row(64, "about fifty operations that legal rewrites round differently"),
    ElementType.F16: Row(8, "XLA may keep f32 between operations: a few roundings are missing on one side"),
    ElementType.BF16: Row(4, "as f16, but an ulp is 1/128: more of them would pass anything"),
    ElementType.F8E3M4: Row(
        3, "f8 values are stored, not chained: one rounding per operand and one of the result"
    ),
    ElementType.F8E4M3: Row(3, "as f8e3m4"),
    ElementType.F8E4M3FN: Row(3, "as f8e3m4"),
    ElementType.F8E4M3FNUZ: Row(3, "as f8e3m4"),
    ElementType.F8E4M3B11FNUZ: Row(3, "as f8e3m4"),
    ElementType.F8E5M2: Row(2, "one rounding; its ulp is a quarter of the value"),
    ElementType.F8E5M2FNUZ: Row(2, "as f8e5m2"),
    ElementType.F8E8M0FNU: Row(1, "powers of two: one step"),
    ElementType.F6E2M3FN: Row(1, "32 magnitudes: one step"),
    ElementType.F6E3M2FN: Row(1, "32 magnitudes: one step"),
    ElementType.F4E2M1FN: Row(1, "eight magnitudes: one step"),
}

#: Factor for leaves that depend on transcendental functions: their approximations differ by a few ulps each.
TRANSCENDENTAL = 2.0
#: Multiple of the sum's error; random signs of the single errors are not certain.
SUM = 8.0
#: No tolerance is wider than this: beyond it every value would pass.
WIDEST = 0.5

#: Elements that `leaf_scale` looks at: their quartile is within a percent or two of the whole leaf's.
_SAMPLE = 1 << 16
#: The scale is at most this many lower quartiles; of normal numbers it is three.
_QUARTILES = 8.0


def derive(element_type: ElementType, facts: Facts = NOTHING, scale: float = 0.0) -> Tolerance:
    """The tolerance of a leaf.

    Args:
        element_type: of the leaf.
        facts: of the leaf, in either program (`dataflow.leaf_facts`).
        scale: magnitude of the leaf's values (`leaf_scale`).
    """
    if not element_type.is_inexact:
        return EXACT
    coarsest, unit = element_type.real_part, epsilon(element_type)
    if facts.rounding is not None and facts.rounding.epsilon > unit:
        coarsest, unit = facts.rounding.element_type.real_part, facts.rounding.epsilon
    ulps = ULPS[coarsest].ulps * (TRANSCENDENTAL if facts.transcendental else 1.0)
    sums = SUM * facts.sum.error if facts.sum is not None else 0.0
    rtol = min(ulps * unit + sums, WIDEST)
    denormal = flush_threshold(element_type)
    return Tolerance(rtol * scale, rtol, denormal, _reason(ulps, coarsest, facts))


def few_ulps(element_type: ElementType, facts: Facts = NOTHING, scale: float = 0.0) -> Tolerance:
    """What needs no explanation: differences of a few ulps, where ulps are small.

    Args:
        element_type: of the leaf.
        facts: not looked at.
        scale: magnitude of the leaf's values (`leaf_scale`).
    """
    if not element_type.is_inexact:
        return EXACT
    few = thresholds.FEW_NARROW_ULPS if element_type.is_narrow_float else thresholds.FEW_ULPS
    count = few.value
    rtol = min(count * epsilon(element_type), WIDEST)
    reason = f"{count:g} ulp of {element_type.real_part}, of the value or of the output's typical size"
    return Tolerance(rtol * scale, rtol, flush_threshold(element_type), reason)


def _reason(ulps: float, coarsest: ElementType, facts: Facts) -> str:
    parts = [f"{ulps:g} ulp of {coarsest}"]
    if facts.sum is not None:
        parts.append(f"the error of {facts.sum.length} terms summed by {facts.sum.origin}")
    return " plus ".join(parts)


@dataclass(frozen=True, slots=True)
class ChosenTolerance:
    """What the user accepts in place of derived tolerances; integers and preds stay exact.

    Attributes:
        rtol: factor of the larger magnitude.
        atol: added to it.
        either: see `Tolerance`.
    """

    rtol: float = 0.0
    atol: float = 0.0
    either: bool = False

    def __call__(self, element_type: ElementType, facts: Facts = NOTHING, scale: float = 0.0) -> Tolerance:
        """The tolerance of a leaf of any facts and scale."""
        if not element_type.is_inexact:
            return EXACT
        denormal = flush_threshold(element_type)
        return Tolerance(self.atol, self.rtol, denormal, "set by the user", self.either)


def chosen_by_user(rtol: float | None, atol: float | None, either: bool = False) -> ChosenTolerance | None:
    """`--rtol` and `--atol`: one of the two given, the other one is 0; None without both."""
    return None if rtol is None and atol is None else ChosenTolerance(rtol or 0.0, atol or 0.0, either)


def chosen_by_output(
    rtol: Sequence[tuple[str, float]],
    atol: Sequence[tuple[str, float]],
    otherwise: ChosenTolerance | None,
    either: bool = False,
) -> dict[ShapeIndex, ChosenTolerance]:
    """Tolerances of single outputs; where one has only one of the two, the other is that of all, or 0."""
    base = otherwise or ChosenTolerance()
    relative, absolute = dict(rtol), dict(atol)
    return {
        output_index(name): ChosenTolerance(
            relative.get(name, base.rtol), absolute.get(name, base.atol), either
        )
        for name in relative | absolute
    }


def leaf_scale(expected: Array, actual: Array) -> float:
    """Magnitude of the values that the elements of a leaf were summed from, as far as the leaf itself shows.

    The root mean square of the non-zero finite elements, but at most eight times their lower quartile, so
    that a few huge values (masks of -1e9, one diverged row) do not hide errors in all others. Of the two
    sides the smaller one counts: a fault that inflates values must not excuse itself. Large leaves are
    sampled.
    """
    return min(_scale(_sample(expected)), _scale(_sample(actual)))


def _sample(values: Array) -> npt.NDArray[np.float64]:
    if values.size > _SAMPLE:
        positions = np.random.default_rng(0).integers(0, values.size, _SAMPLE)
        values = values[np.unravel_index(positions, values.shape)]
    wide = np.complex128 if values.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        magnitudes: npt.NDArray[np.float64] = np.abs(values.astype(wide)).reshape(-1)
    return magnitudes[np.isfinite(magnitudes) & (magnitudes > 0)]


def _scale(magnitudes: npt.NDArray[np.float64]) -> float:
    if not magnitudes.size:
        return 0.0
    largest = float(magnitudes.max())
    # Relative to the largest one, so that squares neither overflow nor vanish.
    root_mean_square = largest * math.sqrt(float(np.mean((magnitudes / largest) ** 2)))
    small = np.count_nonzero(magnitudes < root_mean_square / _QUARTILES)
    # The quartile, which takes longer to find, is then above that.
    if small <= (magnitudes.size - 1) // 4:
        return root_mean_square
    return min(root_mean_square, _QUARTILES * float(np.quantile(magnitudes, 0.25)))


_Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Flips:
    """How an array of integers stands to the ensemble.

    Attributes:
        beyond: elements that no member reaches, flat, in row-major order.
        legal: the most such elements of a member.
        varied: elements on which the members differ.
        members: size of the ensemble.
    """

    beyond: _Flags = field(repr=False)
    legal: int
    varied: int
    members: int

    @property
    def count(self) -> int:
        """Number of elements that no member reaches."""
        return int(self.beyond.sum())

    @property
    def statistic(self) -> str:
        """What is counted, as reports print it."""
        return "flips"

    @property
    def misplaced(self) -> int:
        """No integer is NaN or infinite."""
        return 0

    @property
    def ratio(self) -> float:
        """Elements beyond over the legal number of them; part of one is legal where no member has any."""
        if not self.count:
            return 0.0
        one = thresholds.TIES if self.varied else thresholds.NO_TIES
        return self.count / self.legal if self.legal else one.value * self.count


def flips(actual: Array, members: Sequence[Array]) -> Flips:
    """Compare an array of integers or preds with at least three legal ones of the same dimensions."""
    stacked = np.stack([_wide(member) for member in members])
    ordered = np.sort(stacked, axis=0)
    low, high = ordered[0], ordered[-1]
    legal = 0
    for member in stacked:
        # Alone at an end: the others span less.
        below = (member == low) & (ordered[1] > low)
        above = (member == high) & (ordered[-2] < high)
        legal = max(legal, int((below | above).sum()))
    value = _wide(actual)
    return Flips((value < low) | (value > high), legal, int((low != high).sum()), len(members))


def _wide(array: Array) -> Array:
    dtype = np.uint64 if array.dtype == np.uint64 else np.int64
    return np.ascontiguousarray(array).reshape(-1).astype(dtype)
