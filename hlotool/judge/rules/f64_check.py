"""Two programs executed in f64: do they compute the same, whatever they round?

Legal rewrites agree to about 1e-12. But constants that a rewrite made are rounded in their declared type, and
a tie or a total cancellation amplifies that. So a difference accuses only when it is beyond an ensemble in
which such values are rounded anew (`facts.compiler_made`).
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from hlotool.errors import HlotoolError
from hlotool.facts import thresholds
from hlotool.facts.compiler_made import uncertain_values
from hlotool.facts.exchangeability import Score, score
from hlotool.facts.float_order import epsilon
from hlotool.facts.result_facts import does_arithmetic, rounding_epsilon, sum_length
from hlotool.ir.arrays import Array
from hlotool.ir.module import Instruction, Module
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import ArrayShape, ElementType, array_shapes
from hlotool.judge.reasons import Finding
from hlotool.judge.rules.ensemble import Ensemble
from hlotool.judge.rules.freedoms import makes_pairs
from hlotool.judge.rules.judgement import Leaf
from hlotool.judge.tolerance import flips

#: Elements that show that arrays are not equal, as a rule.
_FEW = 64
_FLOATS = frozenset(t for t in ElementType if t.is_inexact)


class WideRelation(enum.Enum):
    """What two executions in f64 show of one leaf."""

    #: The same.
    EQUAL = "equal"
    #: Not the same, but within what rounded constants do.
    WITHIN = "within"
    #: One side is finite where the other one is not.
    RANGE = "range"
    #: Different.
    OUTSIDE = "outside"
    #: Not known yet; no evidence says so.
    UNKNOWN = "unknown"

    @property
    def is_same(self) -> bool:
        """Whether both programs mean the same."""
        return self in (WideRelation.EQUAL, WideRelation.WITHIN)


@dataclass(frozen=True, slots=True, eq=False)
class WideFinding:
    """What two executions in f64 show of one leaf, and how far apart they are.

    Attributes:
        relation: of the tested program to the reference.
        found: how the tested program's leaf stands to executions of the reference with rounded constants;
            None where the two are the same anyway.
    """

    relation: WideRelation
    found: Finding | None = None


class Wide:
    """Compares two sides leaf by leaf.

    Args:
        reference: executions of the program as it should be.
        tested: executions of the program in question.
    """

    def __init__(self, reference: Ensemble, tested: Ensemble) -> None:
        self._reference = reference
        self._tested = tested
        self._glances: dict[int, WideFinding | None] = {}
        self._uncertain: dict[Ensemble, frozenset[Instruction]] = {}

    @cached_property
    def available(self) -> bool:
        """Whether both sides can be executed in f64; what computes with pairs of f32 means nothing there."""
        if any(map(makes_pairs, self._tested.side.module.instructions())):
            return False
        try:
            return len(self._reference.shadow) == len(self._tested.shadow)
        except HlotoolError:
            return False

    def glance(self, leaf: Leaf) -> WideFinding | None:
        """What the runs at hand show of a leaf; None where a side cannot be executed in f64.

        Its relation is EQUAL, or UNKNOWN: then other executions may have to decide.
        """
        if not self.available:
            return None
        if leaf.number not in self._glances:
            self._glances[leaf.number] = self._looked_at(leaf)
        return self._glances[leaf.number]

    def _looked_at(self, leaf: Leaf) -> WideFinding | None:
        expected, actual = self._reference.shadow[leaf.number], self._tested.shadow[leaf.number]
        if expected.shape != actual.shape:
            return None
        if _equal(expected, actual):
            return WideFinding(WideRelation.EQUAL)
        if expected.dtype.kind not in "fc":
            return WideFinding(WideRelation.UNKNOWN)
        found = _beside_rounding(leaf, expected, actual, unit=self._reference.f64_unit)
        return WideFinding(WideRelation.UNKNOWN, found)

    def _is_clear(self, leaf: Leaf, found: Finding, expected: Array, actual: Array) -> bool:
        """Whether what the runs at hand show is so far off that no others have to decide."""
        may_jump = leaf.facts.decision is not None or self._jumps
        if found.misplaced or may_jump or found.ratio <= thresholds.CERTAIN.value:
            return False
        return not self._adds_up or self._is_beyond_orders(leaf, expected, actual)

    def _is_beyond_orders(self, leaf: Leaf, expected: Array, actual: Array) -> bool:
        """Whether the difference dwarfs sums in other orders, too: where 1e30 and -1e30 are among the terms,
        f64 rounds as well. Unknown where the program cannot be executed once more.
        """
        ensemble, number = self._reference.for_output(leaf.number), 0
        uncertain = self._uncertain_in(self._reference)
        if ensemble is None:
            ensemble, number = self._reference, leaf.number
        else:
            uncertain &= frozenset(ensemble.side.module.instructions())
        try:
            members = ensemble.wide_members(int(thresholds.FIRST_WIDE_MEMBERS.value), uncertain)
        except HlotoolError:
            return False
        orders = [leaves[number] for leaves in members]
        unit = self._reference.f64_unit
        return _beside_rounding(leaf, expected, actual, orders, unit).ratio > thresholds.CERTAIN.value

    def finding(self, leaf: Leaf, in_company: bool = False) -> WideFinding | None:
        """What is known of a leaf; None where a side cannot be executed in f64.

        Args:
            leaf: in the declared types.
            in_company: another leaf is wrong for certain, and what is at hand has to do for this one.
        """
        glance = self.glance(leaf)
        if glance is None or glance.relation is not WideRelation.UNKNOWN:
            return glance
        found = glance.found
        if in_company and found is not None and not found.misplaced:
            is_outside = found.ratio > thresholds.RATIO.value
            return WideFinding(WideRelation.OUTSIDE if is_outside else WideRelation.WITHIN, found)
        expected, actual = self._reference.shadow[leaf.number], self._tested.shadow[leaf.number]
        try:
            if found is not None and self._is_clear(leaf, found, expected, actual):
                return WideFinding(WideRelation.OUTSIDE, found)
            if actual.dtype.kind in "fc":
                return self._by_scores(leaf.number, expected, actual)
            return self._by_flips(leaf.number, expected, actual)
        except HlotoolError:
            return None

    def _by_scores(self, number: int, expected: Array, actual: Array) -> WideFinding:
        found = self._scored(number, expected, actual, self._reference)
        if found.misplaced:
            return WideFinding(WideRelation.RANGE, found)
        if found.ratio <= thresholds.WIDE_RATIO.value:
            return WideFinding(WideRelation.WITHIN, found)
        back = self._scored(number, actual, expected, self._tested)
        other = self._members(self._tested, back.members - 1)
        is_within = (
            back.ratio <= thresholds.WIDE_RATIO.value
            and stay_finite([leaves[number] for leaves in other], expected)
            and is_moderate(back, found, self._tested.side.module)
        )
        return WideFinding(WideRelation.WITHIN if is_within else WideRelation.OUTSIDE, found)

    def _scored(self, number: int, centre: Array, value: Array, side: Ensemble) -> Score:
        """`value` against executions of `side`, whose own value is `centre`: few, if they are clear."""
        kind = ElementType.C128 if value.dtype.kind == "c" else ElementType.F64
        resolution = thresholds.SAME_IN_F64.value
        for count in (thresholds.FIRST_WIDE_MEMBERS, thresholds.WIDE_MEMBERS):
            own = [leaves[number] for leaves in self._members(side, int(count.value))]
            found = score(value, [centre, *own], kind, resolution=resolution)
            is_clear = found.ratio <= thresholds.CLEAR.value
            if not found.misplaced and (is_clear or found.ratio > thresholds.CERTAIN_IN_F64.value):
                break
        return found

    def _by_flips(self, number: int, expected: Array, actual: Array) -> WideFinding:
        """Integers: what neither side's rounded constants lead to is different."""
        for count in (thresholds.FIRST_WIDE_MEMBERS, thresholds.WIDE_MEMBERS):
            own, other = (
                [leaves[number] for leaves in self._members(side, int(count.value))]
                for side in (self._reference, self._tested)
            )
            found = flips(actual, [expected, *own])
            found = replace(found, beyond=found.beyond & flips(expected, [actual, *other]).beyond)
            if not found.count:
                return WideFinding(WideRelation.WITHIN, found)
        return WideFinding(WideRelation.OUTSIDE, found)

    def _members(self, ensemble: Ensemble, count: int) -> list[list[Array]]:
        """Executions of one side with its uncertain values rounded anew."""
        return ensemble.wide_members(count, self._uncertain_in(ensemble))

    def _uncertain_in(self, ensemble: Ensemble) -> frozenset[Instruction]:
        if ensemble not in self._uncertain:
            other = self._reference if ensemble is self._tested else self._tested
            self._uncertain[ensemble] = uncertain_values(ensemble.side.module, other.side.module)
        return self._uncertain[ensemble]

    @cached_property
    def _jumps(self) -> bool:
        """Whether a small error may become a large one at once: two executions need not show that."""
        return any(jumps(side.side.module) for side in (self._reference, self._tested))

    @cached_property
    def _adds_up(self) -> bool:
        """Whether the reference has sums, whose order is open."""
        return any(
            does_arithmetic(i) and any(sum_length(i, part) > 1 for part in array_shapes(i.shape))
            for i in self._reference.side.module.instructions()
        )


def _equal(expected: Array, actual: Array) -> bool:
    """Equal up to what f64 makes of long programs; NaN equals NaN."""
    if expected.dtype.kind not in "fc":
        return bool(np.array_equal(expected, actual))
    if _is_clearly_unequal(expected, actual):
        return False
    with np.errstate(all="ignore"):
        same = (expected == actual) | (np.isnan(expected) & np.isnan(actual))
        magnitude = np.maximum(np.abs(expected), np.abs(actual))
        finite = magnitude[np.isfinite(magnitude)]
        scale = float(np.sqrt(np.mean(finite**2))) if finite.size else 0.0
        close = np.abs(expected - actual) <= thresholds.SAME_IN_F64.value * (magnitude + min(scale, 1e300))
        return bool(np.all(same | (close & np.isfinite(magnitude))))


def _is_clearly_unequal(expected: Array, actual: Array) -> bool:
    """Whether a few elements tell that two arrays are not `_equal`, whatever the others are."""
    one, other = expected.reshape(-1), actual.reshape(-1)
    some = slice(None, None, 1 + one.size // _FEW)
    with np.errstate(all="ignore"):
        # At least as large as what is typical of the magnitudes; not finite where something else is not.
        typical = math.sqrt((np.vdot(one, one).real + np.vdot(other, other).real) / max(1, one.size))
        magnitude = np.maximum(np.abs(one[some]), np.abs(other[some]))
        allowed = 2 * thresholds.SAME_IN_F64.value * (magnitude + typical)
        return bool((np.abs(one[some] - other[some]) > allowed).any())


def _beside_rounding(
    leaf: Leaf, expected: Array, actual: Array, orders: Sequence[Array] = (), unit: float = 0.0
) -> Score:
    """The difference in f64 beside what rounding in the declared types did to each side, in the runs at hand.

    Rounded constants are among those roundings. So a difference that dwarfs them all needs no execution more,
    where no value can jump.

    Args:
        leaf: in the declared types.
        expected: the reference's in f64.
        actual: the tested program's in f64.
        orders: other executions of the reference in f64.
        unit: relative error of f64 on the target.
    """
    kind = ElementType.C128 if expected.dtype.kind == "c" else ElementType.F64
    with np.errstate(all="ignore"):
        own = leaf.expected.astype(expected.dtype)
        moved = expected + (leaf.actual.astype(expected.dtype) - actual)
    declared = leaf.shape.element_type
    resolution = max(epsilon(declared), unit if declared.real_part is ElementType.F64 else 0.0)
    return score(actual, [expected, own, moved, *orders], kind, resolution=resolution)


#: Continuous nowhere or not everywhere, besides what makes integers and preds of floats (`Facts.decision`).
_JUMPING = opcodes_with(Trait.JUMPS)


def jumps(module: Module) -> bool:
    """Whether some instruction makes a large difference of a small one, whatever reads it."""
    return any(
        i.opcode in _JUMPING or any(part.element_type.is_complex for part in array_shapes(i.shape))
        for i in module.instructions()
    )


def stay_finite(members: Sequence[Array], expected: Array) -> bool:
    """Whether executions of a tested program are finite where the reference is: others span everything."""
    return all(bool(np.isfinite(m[np.isfinite(expected)]).all()) for m in members)


def is_moderate(tested: Score, reference: Score, module: Module) -> bool:
    """Whether a tested program that is less stable than the reference may be excused by that.

    A rewrite may cost some digits. One that makes noise of a sound value is wrong.

    Args:
        tested: of an ensemble of the tested program.
        reference: of an ensemble of the reference.
        module: the tested program.
    """
    lost_digits = thresholds.LOST_DIGITS.value * reference.width
    lost_ulps = thresholds.LOST_ULPS.value * coarsest(module)
    return tested.width <= min(thresholds.LOST_WIDTH.value, max(lost_digits, lost_ulps))


def coarsest(module: Module) -> float:
    """One ulp at 1 of the coarsest rounding of a program."""
    shapes = ((i, i.shape) for i in module.instructions() if isinstance(i.shape, ArrayShape))
    return max(
        (rounding_epsilon(i, s.element_type) for i, s in shapes if s.element_type in _FLOATS), default=0.0
    )
