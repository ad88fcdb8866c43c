"""Is a NaN or an infinity that only one side has an overflow on the way, which a legal rewrite may avoid?"""

from __future__ import annotations

import numpy as np

from hlotool.numerics import thresholds
from hlotool.replay.judge.ensemble import Ensemble
from hlotool.replay.judge.executions import Executions
from hlotool.replay.judge.f64_check import WideRelation
from hlotool.replay.judge.judgement import Leaf


def is_range(leaf: Leaf, executions: Executions, wide: WideRelation | None) -> bool:
    """Whether an overflow explains what is finite on one side only.

    Args:
        leaf: with a NaN or an infinity on one side only.
        executions: of both sides.
        wide: what both programs show in f64; None where there is but one.
    """
    if executions.tested is None or wide is None:
        return _avoids_overflow(leaf, executions.reference)
    if wide is WideRelation.RANGE:
        return _overflows_in_f64(leaf, executions.reference, executions.tested)
    return wide.is_same and _is_the_programs_own(leaf, executions.tested)


def _is_the_programs_own(leaf: Leaf, tested: Ensemble) -> bool:
    """Whether the tested program has its NaN and infinities there, and not only what executed it."""
    actual = np.isfinite(leaf.actual)
    differ = actual != np.isfinite(leaf.expected)
    members = tested.members(int(thresholds.FIRST_MEMBERS.value))
    return any(bool((np.isfinite(member[leaf.number]) == actual)[differ].all()) for member in members)


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
