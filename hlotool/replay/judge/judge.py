"""The verdict on a result: is it one more legal execution of the program, and if not, what is wrong with it?

One leaf after the other goes through the same questions, the cheap ones first:

1. Are the bits the same, or a few ulps apart? `identical`, `agree`. Other shapes are `structural`, random
   numbers `not comparable`.
2. Where the tested side is a program, too: do both compute the same in f64 (`f64_check`)? Rewrites that are
   right agree there far below what the declared types show, and faults do not.
3. Is the result inside of what an ensemble of legal executions spans (`ensemble`, judged by
   `numerics.exchangeability` and `numerics.flips`)? `rounding`, or `unstable` where that spans too much.
4. Is a NaN or an infinity on one side only? `range` where a value overflows on the way (`range_check`).
5. Do larger errors, or a less stable way to compute the same, explain it (`excuses`)? `rounding`.
6. Does a known difference between XLA's implementations (`semantics`)? `semantics`.
7. Nothing does: `wrong`, with the pattern that the error shows (`explaining`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from hlotool.errors import HlotoolError
from hlotool.findings.verdict import Verdict
from hlotool.numerics import thresholds
from hlotool.numerics.compare import compare_values
from hlotool.numerics.exchangeability import Score, score
from hlotool.numerics.flips import Flips, flips
from hlotool.numerics.reasons import Finding
from hlotool.numerics.ulp import epsilon
from hlotool.numerics.verdict import Comparison, LeafComparison, aggregate
from hlotool.replay.judge import excuses, explaining, range_check
from hlotool.replay.judge.executions import Executions
from hlotool.replay.judge.f64_check import WideRelation
from hlotool.replay.judge.judgement import Judgement, Leaf


def judge(judgement: Judgement) -> Comparison:
    """Judge what a tested execution of a program returned.

    Pure, in this process, and the same for the same judgement, a deadline apart.

    Returns:
        a verdict with reasons for the whole and for each leaf.
    """
    compared = judgement.compared()
    has_other_structure = compared.verdict is Verdict.STRUCTURAL and len(compared.leaves) == 1
    if judgement.tolerance is not None or has_other_structure:
        return compared
    executions = Executions(judgement)
    return aggregate([_judged(leaf, executions) for leaf in judgement.leaves(compared)])


def _judged(leaf: Leaf, executions: Executions) -> LeafComparison:
    """The leaf, judged by executions where a comparison of the values is not enough."""
    agrees = leaf.compared.verdict is Verdict.AGREE
    if leaf.compared.verdict is not Verdict.WRONG and not (agrees and _hides_faults(leaf, executions)):
        return leaf.compared
    wide = _in_f64(leaf, executions)
    if agrees and wide is not WideRelation.OUTSIDE:
        return leaf.compared
    try:
        return _judged_by_ensemble(leaf, executions, wide)
    except (HlotoolError, MemoryError) as error:
        return _judged_by_bound(leaf, error)


def _hides_faults(leaf: Leaf, executions: Executions) -> bool:
    """An ulp of a narrow type hides a lot: what the programs mean decides, where both are at hand."""
    rounding = leaf.facts.rounding
    is_coarse = rounding is not None and rounding.epsilon >= thresholds.COARSE_ULP.value
    return executions.wide is not None and is_coarse


def _in_f64(leaf: Leaf, executions: Executions) -> WideRelation | None:
    """What both programs show in f64; None where there is but one, or no float matters."""
    if executions.wide is None or not (leaf.is_inexact or leaf.facts.decision is not None):
        return None
    return executions.wide.relation(leaf.number)


def _judged_by_ensemble(leaf: Leaf, executions: Executions, wide: WideRelation | None) -> LeafComparison:
    found = _against_ensemble(leaf, executions)
    explain = explaining.Explainer(leaf, executions, wide, found)
    if found is None or wide is WideRelation.OUTSIDE:
        return explain.wrong()
    if found.misplaced:
        return explain.range() if range_check.is_range(leaf, executions, wide) else explain.wrong()
    if found.ratio <= thresholds.RATIO.value:
        return explain.unstable() if _is_unstable(leaf, found, executions) else explain.rounding()
    if excuses.flips_when_louder(leaf, found, executions):
        return explain.flipping()
    if excuses.is_less_stable(leaf, found, executions, wide):
        return explain.less_stable()
    return explain.wrong()


def _against_ensemble(leaf: Leaf, executions: Executions) -> Finding | None:
    """How the result stands to legal executions; None where nothing is rounded on the way to it."""
    if leaf.is_inexact:
        return _scored(leaf, executions)
    return None if leaf.facts.decision is None else _counted(leaf, executions)


def _scored(leaf: Leaf, executions: Executions) -> Score:
    """Floats, against an ensemble that grows while the answer is near the limit."""
    first, *_ = sizes = list(_sizes())
    found = score(leaf.actual, executions.members(leaf, first), leaf.shape.element_type)
    for size in sizes:
        if found.ratio <= thresholds.CLEAR.value:
            break
        shadow = executions.reference.shadow[leaf.number]
        known = shadow if shadow.shape == leaf.actual.shape else None
        found = score(leaf.actual, executions.members(leaf, size), leaf.shape.element_type, known)
        if thresholds.CERTAIN.value < found.ratio < math.inf:
            break
    return found


def _counted(leaf: Leaf, executions: Executions) -> Flips:
    """Integers and preds that floats decide about."""
    for size in _sizes():
        found = flips(leaf.actual, executions.members(leaf, size))
        if found.ratio <= thresholds.CLEAR.value:
            break
    return found


def _sizes() -> Iterator[int]:
    """Of the ensemble, the reference not counted."""
    size = int(thresholds.FIRST_MEMBERS.value)
    while size <= thresholds.MOST_MEMBERS.value:
        yield size
        size *= 2


def _is_unstable(leaf: Leaf, found: Finding, executions: Executions) -> bool:
    """Whether legal executions are so far apart that anything may be legal."""
    if isinstance(found, Flips):
        return found.varied > thresholds.UNSTABLE_SHARE.value * leaf.actual.size
    rounding = leaf.facts.rounding
    coarsest = rounding.epsilon if rounding is not None else 0.0
    unit = max(epsilon(leaf.shape.element_type), coarsest, executions.judgement.product_unit)
    widest = min(thresholds.UNSTABLE_ULPS.value * math.sqrt(unit), thresholds.UNSTABLE_WIDTH.value)
    return found.width > widest


def _judged_by_bound(leaf: Leaf, error: Exception) -> LeafComparison:
    """The bound of an analysis, where the program cannot be executed in other ways."""
    plain = compare_values(leaf.shape, leaf.expected, leaf.actual, facts=[leaf.facts])
    reason = f"{plain.reason}; no ensemble: {error}"
    return replace(plain.leaves[0], index=leaf.compared.index, reason=reason)
