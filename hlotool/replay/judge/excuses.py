"""What may be legal although no member of the ensemble is as far out as the result."""

from __future__ import annotations

import math

import numpy as np

from hlotool.ir.dtypes import Array
from hlotool.ir.types import ElementType
from hlotool.numerics import thresholds
from hlotool.numerics.exchangeability import Score, score
from hlotool.numerics.flips import Flips, flips
from hlotool.numerics.reasons import Finding
from hlotool.numerics.ulp import epsilon
from hlotool.replay.judge.executions import Executions
from hlotool.replay.judge.f64_check import WideFinding, WideRelation, is_moderate, stay_finite
from hlotool.replay.judge.judgement import Leaf


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
        for member in _louder(executions):
            reached |= np.abs(member[leaf.number].reshape(-1)[beyond] - centre) >= needed
    return bool(reached.all())


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
    if not in_turn:
        return found
    members = [*executions.members(leaf, int(thresholds.MOST_MEMBERS.value)), *in_turn]
    if isinstance(found, Flips):
        return flips(leaf.actual, members)
    return score(leaf.actual, members, leaf.shape.element_type, executions.truth(leaf))


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
