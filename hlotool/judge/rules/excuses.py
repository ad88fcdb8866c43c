"""What may be legal although no member of the ensemble is as far out as the result.

A NaN or an infinity that only one side has, where a value overflows on the way and a legal rewrite may
avoid that; larger errors than were drawn; a less stable way to compute the same.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from hlotool.facts import thresholds
from hlotool.facts.exchangeability import Score, score
from hlotool.facts.float_order import epsilon
from hlotool.ir.arrays import Array
from hlotool.ir.types import ElementType
from hlotool.judge.reasons import Finding
from hlotool.judge.rules.ensemble import Ensemble
from hlotool.judge.rules.executions import Executions
from hlotool.judge.rules.f64_check import WideFinding, WideRelation, is_moderate, stay_finite
from hlotool.judge.rules.judgement import Leaf
from hlotool.judge.tolerance import Flips, flips


class RangeCause(Struct, frozen=True):
    """What explains that a value is not finite on one side only.

    Attributes:
        reason: that, to be read after a count of elements.
        names_overflow: an instruction overflows, and is to be named.
    """

    reason: str
    names_overflow: bool = True


_OVERFLOW = RangeCause(
    "an intermediate value is too large for its type there, and a correct rewrite may avoid it"
)
_CONTRACTION = RangeCause("a contraction (fma) does not round a product that overflows")
_PARTS = RangeCause("a product of complex numbers is put together from its parts in another way")


def range_cause(
    leaf: Leaf, found: Finding, executions: Executions, wide: WideRelation | None
) -> RangeCause | None:
    """What explains the NaN and infinities that one side alone has; None where nothing legal does.

    Args:
        leaf: with a NaN or an infinity on one side only.
        found: how it stands to legal executions.
        executions: of both sides.
        wide: what both programs show in f64; None where there is but one.
    """
    if is_range(leaf, found, executions, wide):
        return _OVERFLOW
    if wide is WideRelation.OUTSIDE:
        return None
    sides = (
        (executions.reference,) if executions.tested is None else (executions.reference, executions.tested)
    )
    if any(_is_contracted(leaf, found, side, of) for side, of in zip(sides, (leaf.actual, leaf.expected))):
        return _PARTS if leaf.shape.element_type.is_complex else _CONTRACTION
    return fast_math(executions)


def fast_math(executions: Executions) -> RangeCause | None:
    """The compiler's flag, where that lets it lose NaN and infinity, and some are met on the way."""
    flags = executions.judgement.freedoms.fast_math
    if not flags or not executions.reference.meets_special_values:
        return None
    return RangeCause(f"compiled with {', '.join(flags)}, NaN and infinity need not be kept", False)


def asks_of_floats(executions: Executions) -> bool:
    """Whether the reference decides about floats as they are given: whether they are NaN, say."""
    return any(
        instruction.opcode in ("compare", "is-finite")
        and instruction.operands[0].array_shape.element_type.is_inexact
        for instruction in executions.judgement.reference.module.instructions()
    )


def _is_contracted(leaf: Leaf, found: Finding, side: Ensemble, wanted: Array) -> bool:
    """Whether one side with products contracted has the NaN and infinities of the other one."""
    if not _is_legal_elsewhere(found):
        return False
    expected, actual = _kinds(leaf.expected), _kinds(leaf.actual)
    differ = expected != actual
    kinds = _kinds(wanted)
    found_there = (_kinds(leaves[leaf.number]) for leaves in side.contractions)
    return bool(differ.any()) and any(bool((kinds == each)[differ].all()) for each in found_there)


def _kinds(value: Array) -> npt.NDArray[np.int64]:
    """Of each element, or of both parts of one, whether it is finite, NaN, or which infinity."""
    if value.dtype.kind == "c":
        return 8 * _kinds(value.real) + _kinds(value.imag)
    with np.errstate(all="ignore"):
        signs = np.sign(value.astype(np.float64))
        found = np.where(np.isnan(value), 3, np.where(np.isinf(value), signs, 2))
    return found.astype(np.int64)


def is_range(leaf: Leaf, found: Finding, executions: Executions, wide: WideRelation | None) -> bool:
    """Whether an overflow explains what is finite on one side only.

    Args:
        leaf: with a NaN or an infinity on one side only.
        found: how it stands to legal executions.
        executions: of both sides.
        wide: what both programs show in f64; None where there is but one.
    """
    if executions.tested is None or wide is None:
        reference = executions.reference
        avoids = _avoids_overflow(leaf, reference) or _overflows_in_any_type(leaf, found, reference)
        return avoids or _overflows_in_another_order(leaf, found, reference)
    if wide is WideRelation.RANGE:
        return _overflows_in_f64(leaf, executions.reference, executions.tested)
    if not wide.is_same:
        return False
    own = _is_the_programs_own(leaf, executions.tested)
    return own or _overflows_in_another_order(leaf, found, executions.tested)


def _is_the_programs_own(leaf: Leaf, tested: Ensemble) -> bool:
    """Whether the tested program has its NaN and infinities there, and not only what executed it."""
    actual = np.isfinite(leaf.actual)
    differ = actual != np.isfinite(leaf.expected)

    def is_as_actual(leaves: list[Array]) -> bool:
        return bool((np.isfinite(leaves[leaf.number]) == actual)[differ].all())

    # Members are drawn only where the program as it is does not settle it.
    return is_as_actual(tested.plain) or any(
        map(is_as_actual, tested.members(int(thresholds.FIRST_MEMBERS.value)))
    )


def _overflows_in_f64(leaf: Leaf, reference: Ensemble, tested: Ensemble) -> bool:
    """Whether the reference has too large a number on the way, even for f64; the tested side has not."""
    expected, actual = (np.isfinite(side.shadow[leaf.number]) for side in (reference, tested))
    if (expected & ~actual).any():
        return False
    return reference.overflow(wide=True) is not None


def _avoids_overflow(leaf: Leaf, reference: Ensemble) -> bool:
    """Whether the result is finite, and right, where the reference overflows on the way."""
    shadow = reference.shadow[leaf.number]
    if shadow.shape != leaf.actual.shape:
        return False
    with np.errstate(all="ignore"):
        wide = leaf.actual.astype(shadow.dtype)
        saved = ~np.isfinite(leaf.expected) & np.isfinite(wide) & np.isfinite(shadow)
        close = np.abs(wide - shadow) <= thresholds.SAVED.value * np.abs(shadow)
    misplaced = np.isfinite(leaf.expected) != np.isfinite(wide)
    return bool(saved.any() and close[saved].all() and (saved == misplaced).all())


def _overflows_in_any_type(leaf: Leaf, found: Finding, reference: Ensemble) -> bool:
    """Whether the result is finite where the reference has too large a number on the way, even for f64.

    exp(x) / exp(y) is infinity over infinity there, exp(x - y) is not.
    """
    shadow = reference.shadow[leaf.number]
    if not _is_legal_elsewhere(found) or shadow.shape != leaf.actual.shape:
        return False
    differ = np.isfinite(leaf.actual) != np.isfinite(leaf.expected)
    saved = np.isfinite(leaf.actual) & ~np.isfinite(leaf.expected) & ~np.isfinite(shadow)
    return bool(differ.any() and (differ == saved).all()) and reference.overflow(wide=True) is not None


def _is_legal_elsewhere(found: Finding) -> bool:
    """Whether all statistics but that of the worst element are those of a legal execution."""
    if not isinstance(found, Score):
        return False
    elsewhere = (ratio for name, ratio in found.ratios.items() if name != "worst element")
    return max(elsewhere, default=0.0) <= thresholds.RATIO.value


def _overflows_in_another_order(leaf: Leaf, found: Finding, side: Ensemble) -> bool:
    """Whether products in another order are as finite as the result, and the rest of it is legal."""
    if not _is_legal_elsewhere(found):
        return False
    differ = np.isfinite(leaf.actual) != np.isfinite(leaf.expected)
    orders = (leaves[leaf.number] for leaves in side.other_orders)
    return bool(differ.any()) and any(_is_as(leaf.actual[differ], order[differ]) for order in orders)


def _is_as(actual: Array, order: Array) -> bool:
    """Whether the one is finite where the other is and about the same there, and infinite with its sign."""
    finite = np.isfinite(actual)
    if not np.array_equal(finite, np.isfinite(order)):
        return False
    infinite = np.isinf(actual) & np.isinf(order)
    if actual.dtype.kind != "c" and (np.signbit(actual) != np.signbit(order))[infinite].any():
        return False
    one, other = (values[finite].astype(np.complex128) for values in (actual, order))
    return bool((np.abs(one - other) <= thresholds.SAVED.value * np.abs(other)).all())


#: Executions with larger errors where no more elements than that are out of reach: an optimizer that takes
#: signs has a few ties in each of sixty outputs, and LOUD_MEMBERS miss one of 256.
_MOST_LOUD, _FEW_TIES = 32, 8


def flips_when_louder(leaf: Leaf, found: Finding, executions: Executions) -> bool:
    """Whether the few elements that are out of reach flip when every error is larger.

    A comparison that is nearly a tie flips in one execution out of many, and then a few elements are far
    off. Errors that are several times as large make it flip more often.
    """
    if executions.rounds_coarser_than_target:
        return False
    if isinstance(found, Flips):
        return _integers_flip(leaf, found, executions)
    return _floats_flip(leaf, found, executions)


def _floats_flip(leaf: Leaf, found: Score, executions: Executions) -> bool:
    """Every element that is out of reach moves half as far, at least."""
    beyond = found.beyond
    is_jump = found.worst_score > thresholds.JUMP.value
    most = thresholds.MANY_FLIPS.value if is_jump else thresholds.FEW_FLIPS.value
    if not beyond.any() or beyond.mean() > most:
        return False
    centre = leaf.expected.reshape(-1)[beyond]
    with np.errstate(all="ignore"):
        needed = np.abs(leaf.actual.reshape(-1)[beyond] - centre) / 2
        reached = np.zeros(needed.shape, np.bool_)
        count = int(thresholds.LOUD_MEMBERS.value)
        while True:
            for member in executions.louder.members(count):
                reached |= np.abs(member[leaf.number].reshape(-1)[beyond] - centre) >= needed
            if reached.all() or reached.size > _FEW_TIES or count >= _MOST_LOUD:
                return bool(reached.all())
            count *= 2


def _integers_flip(leaf: Leaf, found: Flips, executions: Executions) -> bool:
    """Every value that is out of reach is within what larger errors span."""
    few = thresholds.FEW_FLIPS.value
    if found.beyond.mean() > few and found.beyond.size > 1 / few:
        return False
    louder = [member[leaf.number] for member in _louder(executions)]
    usual = executions.members(leaf, int(thresholds.MOST_MEMBERS.value))
    return not flips(leaf.actual, [*usual, *louder]).count


def _louder(executions: Executions) -> list[list[Array]]:
    return executions.louder.members(int(thresholds.LOUD_MEMBERS.value))


def is_less_stable(leaf: Leaf, found: Finding, executions: Executions, wide: WideRelation | None) -> bool:
    """Whether the tested program means the same, in the same types, but spreads its rounding further."""
    if executions.tested is None or isinstance(found, Flips) or wide is None or not wide.is_same:
        return False
    if executions.rounds_coarser or executions.rounds_coarser_at(leaf):
        return False
    own = [member[leaf.number] for member in executions.tested.members(int(thresholds.FIRST_MEMBERS.value))]
    if not stay_finite(own, leaf.expected):
        return False
    back = score(leaf.expected, [leaf.actual, *own], leaf.shape.element_type)
    return back.ratio <= thresholds.RATIO.value and is_moderate(back, found, executions.tested.side.module)


def with_sums_in_turn(leaf: Leaf, found: Finding, executions: Executions) -> Finding:
    """How a leaf stands when sums may also be made in the order that rounds worst.

    Args:
        leaf: whose result is out of reach otherwise.
        found: how it stands without.
        executions: of both sides.
    """
    in_turn = [member[leaf.number] for member in executions.reference.sums_in_turn]
    if in_turn:
        members = [*executions.members(leaf, int(thresholds.MOST_MEMBERS.value)), *in_turn]
        if isinstance(found, Flips):
            found = flips(leaf.actual, members)
        else:
            found = score(leaf.actual, members, leaf.shape.element_type, executions.truth(leaf))
    if found.misplaced or found.ratio > thresholds.RATIO.value:
        # A sum that stands still is far from all others: it has to be met, and not only to be nearer.
        narrow = [member[leaf.number] for member in executions.reference.narrow_sums_in_turn]
        if narrow and not isinstance(found, Flips):
            return score(leaf.actual, narrow, leaf.shape.element_type)
    return found


def is_settled_in_f64(wide: WideFinding | None, executions: Executions) -> bool:
    """Whether f64 says of both programs what the declared types cannot say: that they are the same.

    Executions in f64 with rounded constants have to lie as close together as those in f32 of a result that
    can be judged. What rounds to less than the reference ever does is seen in the declared types alone, and
    f64 is no excuse for it.
    """
    if wide is None or not wide.relation.is_same or executions.rounds_coarser:
        return False
    if wide.relation is WideRelation.EQUAL:
        return True
    widest = thresholds.UNSTABLE_ULPS.value * math.sqrt(epsilon(ElementType.F32))
    return isinstance(wide.found, Score) and wide.found.width <= widest
