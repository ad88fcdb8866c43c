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
from collections.abc import Sequence
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
from hlotool.replay.judge import excuses, range_check
from hlotool.replay.judge.case import Accusation, Case
from hlotool.replay.judge.executions import Executions
from hlotool.replay.judge.explaining import explained
from hlotool.replay.judge.f64_check import WideFinding, WideRelation
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
    said = [_asked(leaf, executions) for leaf in judgement.leaves(compared)]
    return aggregate(explained(_decided(said), executions))


def _asked(leaf: Leaf, executions: Executions) -> LeafComparison | Case:
    """What is said of the leaf; what is known of it so far where that is not enough."""
    agrees = leaf.compared.verdict is Verdict.AGREE
    if leaf.compared.verdict is not Verdict.WRONG and not (agrees and _hides_faults(leaf, executions)):
        return leaf.compared
    wide = _in_f64(leaf, executions)
    if wide is not None and wide.relation is WideRelation.OUTSIDE:
        return Case(leaf, executions, wide.relation, wide.found)
    if agrees:
        return leaf.compared
    try:
        found = _against_ensemble(leaf, executions, int(thresholds.FIRST_MEMBERS.value))
    except (HlotoolError, MemoryError) as error:
        return _judged_by_bound(leaf, error)
    return Case(leaf, executions, wide.relation if wide is not None else None, found)


def _decided(said: Sequence[LeafComparison | Case]) -> list[LeafComparison | Accusation]:
    """The verdict on every leaf, the worst one first: what is found of one holds for the program.

    Once one leaf is wrong for certain, the ensemble grows no more for the others.
    """
    decided: dict[int, LeafComparison | Accusation] = {}
    is_wrong = False
    for number, one in sorted(enumerate(said), key=lambda numbered: _urgency(numbered[1])):
        decided[number] = one if isinstance(one, LeafComparison) else _verdict(one, grows=not is_wrong)
        is_wrong = is_wrong or isinstance(decided[number], Accusation)
    return [decided[number] for number in range(len(said))]


def _urgency(one: LeafComparison | Case) -> float:
    """Low for what is wrong for certain."""
    if isinstance(one, LeafComparison):
        return math.inf
    is_certain = one.found is None or one.wide is WideRelation.OUTSIDE
    return -math.inf if is_certain or one.found is None else -one.found.ratio


def _verdict(case: Case, grows: bool) -> LeafComparison | Accusation:
    try:
        return _by_ensemble(case, grows)
    except (HlotoolError, MemoryError) as error:
        return _judged_by_bound(case.leaf, error)


def _hides_faults(leaf: Leaf, executions: Executions) -> bool:
    """An ulp of a narrow type hides a lot: what the programs mean decides, where both are at hand."""
    rounding = leaf.facts.rounding
    is_coarse = rounding is not None and rounding.epsilon >= thresholds.COARSE_ULP.value
    return executions.wide is not None and is_coarse


def _in_f64(leaf: Leaf, executions: Executions) -> WideFinding | None:
    """What both programs show in f64; None where there is but one, or no float matters."""
    if executions.wide is None or not (leaf.is_inexact or leaf.facts.decision is not None):
        return None
    return executions.wide.finding(leaf.number)


def _by_ensemble(case: Case, grows: bool) -> LeafComparison | Accusation:
    leaf, executions, wide = case.leaf, case.executions, case.wide
    if case.found is None or wide is WideRelation.OUTSIDE:
        return case.accused()
    if grows:
        case = replace(case, found=_grown(leaf, executions, case.found))
    found = case.known
    if found.misplaced:
        return case.range() if range_check.is_range(leaf, executions, wide) else case.accused()
    if found.ratio <= thresholds.RATIO.value:
        return case.unstable() if _is_unstable(leaf, found, executions) else case.rounding()
    if excuses.flips_when_louder(leaf, found, executions):
        return case.flipping()
    if excuses.is_less_stable(leaf, found, executions, wide):
        return case.less_stable()
    return case.accused()


def _against_ensemble(leaf: Leaf, executions: Executions, size: int) -> Finding | None:
    """How the result stands to legal executions; None where nothing is rounded on the way to it.

    Floats are scored, integers and preds that floats decide about are counted.
    """
    if leaf.is_inexact:
        return score(leaf.actual, executions.members(leaf, size), leaf.shape.element_type)
    return None if leaf.facts.decision is None else flips(leaf.actual, executions.members(leaf, size))


def _grown(leaf: Leaf, executions: Executions, found: Finding) -> Finding:
    """The same, against an ensemble that grows while the answer is near the limit."""
    size = int(thresholds.FIRST_MEMBERS.value)
    while found.ratio > thresholds.CLEAR.value and size <= thresholds.MOST_MEMBERS.value:
        members = executions.members(leaf, size)
        if isinstance(found, Score):
            shadow = executions.reference.shadow[leaf.number]
            truth = shadow if shadow.shape == leaf.actual.shape else None
            found = score(leaf.actual, members, leaf.shape.element_type, truth)
            if thresholds.CERTAIN.value < found.ratio < math.inf:
                break
        else:
            found = flips(leaf.actual, members)
        size *= 2
    return found


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
