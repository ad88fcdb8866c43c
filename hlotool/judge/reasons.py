"""Verdicts in words: one sentence that a reader without the documentation understands."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from hlotool.facts import thresholds
from hlotool.facts.exchangeability import Score
from hlotool.facts.result_facts import Facts, Origin
from hlotool.judge.comparison import LeafComparison, format_position
from hlotool.judge.records import EqualityRecord, EvidenceRecord
from hlotool.judge.tolerance import Flips
from hlotool.judge.verdicts import Verdict
from hlotool.system.records import SourceRecord

#: How a result stands to an ensemble.
Finding: TypeAlias = Score | Flips

#: No distance between finite numbers.
_FAR = 1e300

#: What each statistic looks at, in a sentence.
_STATISTICS = {
    "worst element": "the worst element",
    "whole output": "the output as a whole (root mean square)",
    "row": "the worst row",
    "column": "the worst column",
    "slice": "the worst slice",
    "bias": "the sum of all errors",
    "flips": "the number of flipped elements",
}


def legal_reason(found: Finding, facts: Facts) -> str:
    """Why legal executions explain a difference: the reason of `rounding`, and of `unstable`."""
    where = _STATISTICS[found.statistic]
    how = "round and order sums" if facts.sum is not None else "round"
    text = (
        f"a compiler may {how} like this: {where} is {found.ratio:.2g} times as far off as "
        f"in {found.members} legal executions"
    )
    if isinstance(found, Flips) and facts.decision is not None:
        return f"{text}; one ulp flips it at {facts.decision}"
    if facts.sum is not None:
        return f"{text}; the longest sum has {facts.sum.length} terms, in {facts.sum.origin}"
    return text


#: The reason of `rounding` where the tested program rounds in other places.
LESS_STABLE = (
    "in f64 both programs compute the same, and legal executions of the tested one differ as much: rounding "
    "harms its way of computing more"
)


def flipping_reason(count: int, differing: int) -> str:
    """The reason of `rounding` where `count` of `differing` elements jump as in other legal executions."""
    return (
        f"{count} of the {differing} elements that differ jump where slightly larger rounding errors make "
        "them jump, too: a comparison or a step on the way to them is nearly a tie"
    )


def _same_function(found: EqualityRecord) -> str:
    """`the same function of real numbers, exactly (2 trials)`, or as far as points covered it."""
    if found.relation == "equal":
        return f"the same function of real numbers, exactly ({found.trials} trials)"
    return f"the same function of real numbers where it was covered ({found.trials} trials; {found.reason})"


def same_function_reason(found: EqualityRecord, reason: str) -> str:
    """The reason of a difference between programs that mean the same; `reason` is what their values say."""
    return f"{_same_function(found)}; {reason}"


def excusing_reason(found: EqualityRecord, reason: str) -> str:
    """The reason of `rounding` where legal executions say nothing; `reason` is that of `unstable`."""
    return f"{_same_function(found)}, which values do not show: {reason}"


def unexcused_reason(found: EqualityRecord, why: str, reason: str) -> str:
    """The reason of `unstable` where equality alone is not enough; `why` says what it leaves open."""
    return f"{reason}; {_same_function(found)}, but {why}"


def regrouped_reason(found: EqualityRecord, flag: str) -> str:
    """The reason of `rounding` where a flag allows to compute as if nothing were rounded."""
    what = f"compiled with {flag}, sums may be regrouped, which loses what rounding left"
    return f"{_same_function(found)}; {what}"


def harmful_reason(found: EqualityRecord, reason: str) -> str:
    """The reason of `wrong` where the programs mean the same all the same."""
    return (
        f"{reason}; both programs are {_same_function(found)}: how one of them "
        "computes it loses the digits, or a tie or an overflow decides"
    )


def other_function_reason(found: EqualityRecord, said: LeafComparison) -> str:
    """The reason of a difference between programs that do not mean the same; `said` is by their values."""
    what = found.reason or f"{found.differing} of {found.total} elements at a random point"
    if found.apart > thresholds.APART_IN_F64.value:
        what = f"{what}, and {found.apart:.2g} of the values apart in f64, which no rounding explains"
    here = _HERE.get(said.verdict, said.reason)
    return f"other functions of real numbers ({what}); here: {here}"


#: How close the values of other functions are.
_HERE = {Verdict.IDENTICAL: "the same bits", Verdict.AGREE: "a few ulps apart"}


#: What may decide where values do not.
_ADVICE = "fewer steps, inputs of another scale, --compare-with or `hlotool prove` may tell"


def unstable_reason(found: Finding, facts: Facts, unit: float, where: str) -> str:
    """The reason of `unstable`: what amplifies rounding so much.

    Args:
        found: how the result stands to legal executions.
        facts: of the leaf.
        unit: one ulp at 1 of the coarsest rounding on the way to it.
        where: the instruction from which on the spread is large; empty where it is not known.
    """
    if isinstance(found, Flips):
        origin = f" at {facts.decision}" if facts.decision is not None else ""
        return (
            f"legal executions differ in {found.varied} of {found.beyond.size} elements, which one ulp "
            f"flips{origin}: nothing can be said of this output; {_ADVICE}"
        )
    if found.unknown:
        return f"{_overflowing(found)}: nothing can be said of this output; {_ADVICE}"
    grown = f", most of all in {where}" if where else ""
    times = f"{found.width / unit:.0e} times" if unit and found.width < np.inf else "many times"
    return (
        f"legal executions differ by {found.width:.2g} of the values: what one operation rounds is amplified "
        f"{times}{grown}, and nothing can be said of this output; {_ADVICE}"
    )


def _overflowing(found: Score) -> str:
    return f"most legal executions overflow where {found.unknown} numbers differ"


def amplified_reason(found: Finding) -> str:
    """The reason of `rounding` where the declared types say nothing, and f64 does."""
    if isinstance(found, Flips):
        spread = "legal executions differ in many elements"
    elif found.unknown:
        spread = _overflowing(found)
    else:
        spread = f"legal executions differ by {found.width:.2g} of the values"
    return (
        f"rounding is amplified ({spread}); in f64, where it is not, both programs compute the same, and "
        f"the result is {found.ratio:.2g} times as far off as in {found.members} legal executions"
    )


def named(source: SourceRecord) -> str:
    """An instruction by opcode and name, with the user's line or that of the text."""
    place = source.user_line or (f"line {source.line}" if source.line else "")
    return f"{source.opcode} %{source.instruction}" + (f" ({place})" if place else "")


def cancelling(terms: float, value: float, noise: float, origin: str) -> str:
    """What cancels where, and how much rounding leaves of it.

    Args:
        terms: the magnitudes that are added up.
        value: of the sum in f64.
        noise: how far it is off.
        origin: the instruction that adds.
    """
    left = f"where rounding them leaves ±{noise:.2g}"
    return f"terms of {terms:.2g} cancel to {value:.2g} (in f64) in {origin}, {left}"


def cancelled_reason(found: Finding, decided: tuple[int, int, float], rest: str, maker: str) -> str:
    """The reason of `rounding` where legal executions differ by what cancellations left, and by nothing else.

    Args:
        found: how the result stands to them.
        decided: elements that these decide about, out of how many, and by how much at most.
        rest: of `cancelling`; empty where no single sum is to blame.
        maker: the instruction that makes something out of proportion of it; empty where nothing does.
    """
    count, total, spread = decided
    size = f"±{spread:.2g}" if spread < _FAR else "NaN or infinity"
    here = f"{count} of {total} elements"
    what = rest or "what sums leave whose terms cancel is rounding"
    if maker:
        return f"cancellation: {what}, and {maker} makes {size} of that: nothing to judge in {here}"
    return (
        f"cancellation: {what}; that is {size} in {here}, and the result is {found.ratio:.2g} times as far "
        f"off as in {found.members} legal executions"
    )


def range_reason(misplaced: int, cause: str, origin: Origin | None) -> str:
    """The reason of `range`: how many elements are NaN or infinite on one side only, and why.

    Args:
        misplaced: so many; 0 where they decide about others.
        cause: in a clause.
        origin: what overflows.
    """
    where = f", at {origin}" if origin is not None else ""
    what = f"{misplaced} elements are NaN or infinite" if misplaced else "NaN or infinity is met"
    return f"{what} on one side only: {cause}{where}"


def wrong_reason(evidence: EvidenceRecord, found: Finding | None, misplaced: int, is_hidden: bool) -> str:
    """The reason of `wrong`: how far off the result is, and the pattern of its errors where there is one.

    Args:
        evidence: with the pattern.
        found: how the result stands to legal executions; None where nothing is rounded on the way to it.
        misplaced: elements that are NaN or infinite on one side only.
        is_hidden: the declared types hide in their rounding what f64 shows.
    """
    pattern = f"; {evidence.pattern}: {evidence.detail}" if evidence.pattern else ""
    return _error(evidence, found, misplaced, is_hidden) + pattern


def _error(evidence: EvidenceRecord, found: Finding | None, misplaced: int, is_hidden: bool) -> str:
    if found is None:
        return f"{evidence.beyond} elements differ, and nothing is rounded on the way to them"
    if isinstance(found, Flips):
        return f"{found.count} elements have values that no rounding and no order of sums leads to"
    if misplaced:
        return f"{misplaced} elements are NaN or infinite on one side only, and no rounding explains it"
    if is_hidden:
        return "in f64, where nothing is rounded, the programs differ; the declared types hide it in rounding"
    where = _STATISTICS[found.statistic]
    if found.statistic == "worst element":
        where += f", {format_position(found.worst)}," if found.worst else ""
    if evidence.wide == "outside":
        return (
            f"in f64, where nothing is rounded, the programs differ: {where} is {found.ratio:.3g} times as "
            "far off as rounding explains"
        )
    return (
        f"no rounding and no order of sums explains it: {where} is {found.ratio:.3g} times as far off as in "
        f"{found.members} legal executions"
    )
