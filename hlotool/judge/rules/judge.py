"""The verdict on a result: is it one more legal execution of the program, and if not, what is wrong?

What the user decides comes first: tolerances of single outputs, a comparison of his own. Every other leaf
goes through the same questions, the cheap ones first:

1. Are the bits the same, or a few ulps apart? `identical`, `agree`. Other shapes are `structural`, random
   numbers `not comparable`.
2. Where the tested side is a program, too: do both compute the same in f64 (`f64_check`)? Rewrites that are
   right agree there far below what the declared types show, and faults do not: a difference that dwarfs all
   rounding in the runs at hand is `wrong` without another execution. So is width that the tested program
   lost (`lost_width`).
3. Is the result inside of what an ensemble of legal executions spans (`ensemble`, judged by
   `facts.exchangeability` and, for integers, by `judge.tolerance`)? `rounding`, or `unstable` where that
   spans too much, no cancellation explains it (`instability`) and f64 does not settle it.
4. Is a NaN or an infinity on one side only? `range` where a value overflows on the way (`excuses`).
5. Do larger errors, or a less stable way to compute the same, explain it (`excuses`)? `rounding`.
6. Does a known difference between XLA's implementations (`semantics`)? `semantics`.
7. Nothing does: `wrong`; of the worst few, with the pattern that the error shows (`explaining`).
8. Are both programs the same function of real numbers (`executions`)? If not, what is close all the same is
   `differs`; if so, `unstable` is `rounding`.
9. Does another legal order of equal elements explain what is wrong (`semantics`)? `semantics`.

Every execution serves all leaves. The one that is furthest off is asked about first. Once a leaf is wrong
for certain, so is the program, and what is at hand decides about the others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from hlotool.errors import HlotoolError, InputDataError
from hlotool.facts import thresholds
from hlotool.facts.exchangeability import Score, score
from hlotool.facts.float_order import epsilon
from hlotool.facts.result_facts import Facts
from hlotool.ir.types import ElementType, ShapeIndex
from hlotool.judge.comparison import (
    Comparison,
    LeafComparison,
    aggregate,
    compare_values,
    not_plainly_agreeing,
)
from hlotool.judge.reasons import Finding
from hlotool.judge.records import output_name
from hlotool.judge.rules import excuses
from hlotool.judge.rules.case import Case
from hlotool.judge.rules.ensemble import OutOfTime
from hlotool.judge.rules.executions import Executions
from hlotool.judge.rules.explaining import explained
from hlotool.judge.rules.f64_check import WideFinding, WideRelation
from hlotool.judge.rules.instability import Cancellation
from hlotool.judge.rules.judgement import Judgement, Leaf
from hlotool.judge.rules.semantics import weighed_by_ties
from hlotool.judge.tolerance import ChosenTolerance, Flips, Tolerance, derive, flips
from hlotool.judge.verdicts import Verdict


def judge(judgement: Judgement) -> Comparison:
    """Judge what a tested execution of a program returned.

    Pure, in this process, and the same for the same judgement, a deadline apart.

    Returns:
        a verdict with reasons for the whole and for each leaf.
    """
    return weighed_by_ties(judgement, _judged(judgement), _judged)


def _judged(judgement: Judgement) -> Comparison:
    """The verdict, where sorts leave equal elements in the order of the reference."""
    compared = judgement.compared
    has_other_structure = compared.verdict is Verdict.STRUCTURAL and len(compared.leaves) == 1
    if has_other_structure:
        return compared
    leaves = list(judgement.leaves(compared))
    by_user = settled(judgement, leaves)
    said = [by_user.get(leaf.number, leaf.compared) for leaf in leaves]
    if judgement.tolerance is not None and not judgement.exact:
        return aggregate(said) if by_user else compared
    executions = Executions(judgement)
    if judgement.tolerance is None:
        said = explained(_decided(leaves, executions, by_user), executions)
    weighed = [not_plainly_agreeing(leaf) for leaf in executions.equality.weighed(leaves, said)]
    if not judgement.exact:
        weighed = [by_user.get(leaf.number, one) for leaf, one in zip(leaves, weighed)]
    return aggregate(weighed)


def _decided(
    leaves: Sequence[Leaf], executions: Executions, by_user: Mapping[int, LeafComparison]
) -> list[LeafComparison | Case]:
    """The verdict on every leaf, in tuple order; the user's own stand.

    The one that is furthest off comes first: once it is wrong for certain, so is the program, and for the
    others what is at hand has to do.
    """
    decided: dict[int, LeafComparison | Case] = {**by_user}
    others = [leaf for leaf in leaves if leaf.number not in by_user]
    in_question = [leaf for leaf in others if _is_in_question(leaf, executions)]
    in_company = False
    for leaf in sorted(in_question, key=lambda leaf: -_urgency(leaf, executions)):
        decided[leaf.number] = _verdict(leaf, executions, in_company)
        in_company = in_company or isinstance(decided[leaf.number], Case)
    return [decided.get(leaf.number, leaf.compared) for leaf in leaves]


def _is_in_question(leaf: Leaf, executions: Executions) -> bool:
    """Whether a comparison of the values does not settle it."""
    if leaf.compared.verdict is Verdict.AGREE:
        return _hides_faults(leaf, executions)
    return leaf.compared.verdict is Verdict.WRONG


def _urgency(leaf: Leaf, executions: Executions) -> float:
    """How far off it seems to be: infinite where nothing is rounded."""
    if not _depends_on_floats(leaf):
        return math.inf
    glance = executions.wide.glance(leaf) if executions.wide is not None else None
    if glance is not None:
        return glance.found.ratio if glance.found is not None else 0.0
    if executions.wide is not None:
        return 0.0
    try:
        found = _against_ensemble(leaf, executions, int(thresholds.FIRST_MEMBERS.value))
    # It comes last, and its verdict says why the program cannot be executed in other ways.
    except (HlotoolError, MemoryError):
        return 0.0
    return found.ratio


def _verdict(leaf: Leaf, executions: Executions, in_company: bool) -> LeafComparison | Case:
    """The verdict on a leaf in question; `in_company` of another one that is wrong for certain."""
    if not _depends_on_floats(leaf):
        cause = excuses.fast_math(executions) if excuses.asks_of_floats(executions) else None
        case = Case(leaf, executions, None, None)
        return case.accused() if cause is None else case.range(cause)
    wide = None if executions.wide is None else executions.wide.finding(leaf, in_company)
    relation = wide.relation if wide is not None else None
    if wide is not None and relation is WideRelation.OUTSIDE:
        return Case(leaf, executions, relation, wide.found).accused()
    is_close = leaf.compared.verdict is Verdict.AGREE
    if (not is_close or executions.rounds_coarser) and (because := executions.widths.lost(leaf)):
        return Case(leaf, executions, relation, wide.found if wide is not None else None, because)
    # What is close by value is accused by f64 or a lost width alone: no ensemble is finer than an ulp.
    if is_close:
        return leaf.compared
    # The program is wrong already: what f64 finds within rounding is worth no further executions.
    if in_company and wide is not None and wide.found is not None and relation is WideRelation.WITHIN:
        return Case(leaf, executions, relation, wide.found).rounding()
    try:
        found = _against_ensemble(leaf, executions, int(thresholds.FIRST_MEMBERS.value))
        if not in_company:
            found = _grown(leaf, executions, found)
        return _by_ensemble(Case(leaf, executions, relation, found), wide)
    except (HlotoolError, MemoryError) as error:
        return _judged_by_bound(leaf, error)


def _depends_on_floats(leaf: Leaf) -> bool:
    """Whether anything is rounded on the way to it."""
    return leaf.is_inexact or leaf.facts.decision is not None


def _hides_faults(leaf: Leaf, executions: Executions) -> bool:
    """An ulp of a narrow type hides a lot: what the programs mean decides, where both are at hand.

    So do a few ulps of a wide one, where the tested program rounds to less than the reference ever does.
    """
    rounding = leaf.facts.rounding
    is_coarse = rounding is not None and rounding.epsilon >= thresholds.COARSE_ULP.value
    return executions.wide is not None and (is_coarse or executions.rounds_coarser)


def _by_ensemble(case: Case, wide: WideFinding | None) -> LeafComparison | Case:
    leaf, executions, found = case.leaf, case.executions, case.known
    if found.misplaced:
        cause = excuses.range_cause(leaf, found, executions, case.wide)
        return case.accused() if cause is None else case.range(cause)
    if found.ratio <= thresholds.RATIO.value:
        return _within(case, wide)
    if excuses.flips_when_louder(leaf, found, executions):
        return case.flipping()
    if excuses.is_less_stable(leaf, found, executions, case.wide):
        return case.less_stable()
    in_turn = excuses.with_sums_in_turn(leaf, found, executions)
    if not in_turn.misplaced and in_turn.ratio <= thresholds.RATIO.value:
        return _within(replace(case, found=in_turn), wide)
    cause = excuses.fast_math(executions)
    return case.accused() if cause is None else case.range(cause)


def _within(case: Case, wide: WideFinding | None) -> LeafComparison:
    """The verdict on a leaf that legal executions reach: whether they say anything is another question."""
    is_unstable = _is_unstable(case.leaf, case.known, case.executions)
    is_far = is_unstable or _differs_widely(case.leaf, case.executions)
    if is_far and (cancellation := _cancellation(case)) is not None:
        return case.cancelled(cancellation)
    if not is_unstable or case.executions.contraction(case.leaf):
        return case.rounding()
    return case.amplified() if excuses.is_settled_in_f64(wide, case.executions) else case.unstable()


def _cancellation(case: Case) -> Cancellation | None:
    """What cancellations alone explain, unless both programs are known to mean different things."""
    if case.wide is not None and not case.wide.is_same:
        return None
    executions = case.executions

    def is_unstable(leaf: Leaf, found: Finding) -> bool:
        return _is_unstable(leaf, found, executions)

    return executions.cancellations.behind(case.leaf, is_unstable)


def _against_ensemble(leaf: Leaf, executions: Executions, size: int) -> Finding:
    """How the result stands to legal executions.

    Floats are scored, integers and preds that floats decide about are counted.
    """
    members = executions.members(leaf, size)
    if leaf.is_inexact:
        return score(leaf.actual, members, leaf.shape.element_type)
    return flips(leaf.actual, members)


def _grown(leaf: Leaf, executions: Executions, found: Finding) -> Finding:
    """The same, against an ensemble that grows while the answer is near the limit."""
    size = int(thresholds.FIRST_MEMBERS.value)
    while found.ratio > thresholds.CLEAR.value and size <= thresholds.MOST_MEMBERS.value:
        members = executions.members(leaf, size)
        if isinstance(found, Score):
            found = score(leaf.actual, members, leaf.shape.element_type, executions.truth(leaf))
            # So far off that no further execution would acquit it.
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
    return found.width > _widest(leaf, executions) or found.unknown > 0


def _widest(leaf: Leaf, executions: Executions) -> float:
    """The relative spread from which nothing can be said."""
    rounding = leaf.facts.rounding
    coarsest = rounding.epsilon if rounding is not None else 0.0
    unit = max(epsilon(leaf.shape.element_type), coarsest, executions.judgement.product_unit)
    return min(thresholds.UNSTABLE_ULPS.value * math.sqrt(unit), thresholds.UNSTABLE_WIDTH.value)


def _differs_widely(leaf: Leaf, executions: Executions) -> bool:
    """Whether many elements are so far off, each beside its own size: then the reason is worth a look."""
    if not leaf.is_inexact:
        return False
    kind = np.complex128 if leaf.shape.element_type.is_complex else np.float64
    expected, actual = (np.asarray(side).astype(kind) for side in (leaf.expected, leaf.actual))
    with np.errstate(all="ignore"):
        far = np.abs(actual - expected) > _widest(leaf, executions) * np.abs(expected)
    return bool(far.mean() > thresholds.UNSTABLE_SHARE.value)


def _judged_by_bound(leaf: Leaf, error: Exception) -> LeafComparison:
    """The bound of an analysis, where the program cannot be executed in other ways.

    No proof. Where legal executions could have decided, and there was no time for them, it accuses only of
    what is far beyond it.
    """
    plain = compare_values(leaf.shape, leaf.expected, leaf.actual, facts=[leaf.facts]).leaves[0]
    reason, verdict = f"{plain.reason}; no correct runs to compare with: {error}", plain.verdict
    if verdict is Verdict.WRONG and isinstance(error, OutOfTime) and not _is_far_beyond(leaf):
        verdict, reason = Verdict.UNSTABLE, f"no time for the correct runs that would decide it: {reason}"
    return replace(plain, index=leaf.compared.index, verdict=verdict, reason=reason)


def _is_far_beyond(leaf: Leaf) -> bool:
    """Whether a float is so far off that more executions could not acquit it; integers may have flipped."""
    generous = compare_values(leaf.shape, leaf.expected, leaf.actual, facts=[leaf.facts], tolerance=_generous)
    return leaf.is_inexact and generous.verdict is Verdict.WRONG


def _generous(element_type: ElementType, facts: Facts, scale: float) -> Tolerance:
    """The bound, so many times as large as what no further execution would acquit."""
    derived, factor = derive(element_type, facts, scale), thresholds.CERTAIN.value
    return replace(derived, atol=factor * derived.atol, rtol=factor * derived.rtol)


# What the user decides: tolerances of single outputs, and a comparison of his own.


def settled(judgement: Judgement, leaves: Sequence[Leaf]) -> dict[int, LeafComparison]:
    """What is said of leaves that the user decides about, by their numbers.

    Raises:
        InputDataError: the user's comparison raises, or answers something else than it may.
    """
    said: dict[int, LeafComparison] = {}
    for leaf in leaves:
        answer = _by_comparison(judgement, leaf) or _by_tolerance(judgement, leaf)
        if answer is not None:
            said[leaf.number] = answer
    return said


def _by_tolerance(judgement: Judgement, leaf: Leaf) -> LeafComparison | None:
    """By the tolerance of the output itself; that of all outputs is where values are compared."""
    chosen = _chosen_for(judgement, leaf.compared.index)
    if chosen is None or leaf.compared.verdict in (Verdict.IDENTICAL, Verdict.NOT_COMPARABLE):
        return None
    compared = compare_values(leaf.shape, leaf.expected, leaf.actual, facts=[leaf.facts], tolerance=chosen)
    return replace(compared.leaves[0], index=leaf.compared.index)


def _chosen_for(judgement: Judgement, index: ShapeIndex) -> ChosenTolerance | None:
    """Of an output, or of the innermost tuple around it that has one."""
    for length in range(len(index), -1, -1):
        if (chosen := judgement.tolerances.get(index[:length])) is not None:
            return chosen
    return None


def _by_comparison(judgement: Judgement, leaf: Leaf) -> LeafComparison | None:
    """By the user's function, which gets copies: it may do with them what it likes."""
    if judgement.compare_with is None:
        return None
    name = output_name(leaf.compared.index)
    try:
        answer: Any = judgement.compare_with(name, leaf.expected.copy(), leaf.actual.copy())
    except Exception as error:
        raise InputDataError(f"--compare-with: of {name}: {type(error).__name__}: {error}") from error
    if answer is None:
        return None
    if isinstance(answer, str):
        return replace(leaf.compared, verdict=Verdict.WRONG, reason=f"{answer}, says --compare-with")
    if not isinstance(answer, bool | np.bool_):
        kind = type(answer).__name__
        raise InputDataError(f"--compare-with: of {name}: it returned {kind}, not a bool, a str or None")
    if answer and leaf.compared.verdict is Verdict.IDENTICAL:
        return None
    if answer:
        return replace(leaf.compared, verdict=Verdict.AGREE, reason="agrees, says --compare-with")
    return replace(leaf.compared, verdict=Verdict.WRONG, reason="differs, says --compare-with")
