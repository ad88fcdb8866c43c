"""Verdicts in words: one sentence that a reader without the documentation understands.

A legal execution of the program is called a correct run there: one that rounds, and orders sums, as a
compiler may.
"""

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
    "worst element": "worst element",
    "whole output": "root mean square of the output",
    "row": "worst row",
    "column": "worst column",
    "slice": "worst slice",
    "bias": "sum of all errors",
    "flips": "number of flipped elements",
}


def legal_reason(found: Finding, facts: Facts) -> str:
    """Why legal executions explain a difference: the reason of `rounding`, and of `unstable`."""
    how = "rounding and the order of sums explain" if facts.sum is not None else "rounding explains"
    text = f"{how} it: {_times(found)}"
    if isinstance(found, Flips) and facts.decision is not None:
        return f"{text}; one ulp flips it at {facts.decision}"
    if facts.sum is not None:
        return f"{text}; the longest sum has {facts.sum.length} terms, in {facts.sum.origin}"
    return text


def _times(found: Finding) -> str:
    """`the worst row is off by 0.4 × of what 5 correct runs with other rounding are`."""
    where = _STATISTICS[found.statistic]
    return (
        f"the {where} is off by {found.ratio:.2g} × what {found.members} correct runs with other rounding are"
    )


#: The reason of `rounding` where the tested program rounds in other places.
LESS_STABLE = (
    "in double precision both programs compute the same, and correct runs of the tested one differ as much "
    "from each other: it is more sensitive to rounding"
)


def flipping_reason(count: int, differing: int) -> str:
    """The reason of `rounding` where `count` of `differing` elements jump as in other legal executions."""
    return (
        f"{count} of the {differing} elements that differ also jump when rounding errors are slightly "
        "larger: a comparison or a step before them is nearly a tie"
    )


def _same_function(found: EqualityRecord) -> str:
    """`mathematically equivalent (2 exact trials)`, or as far as points covered it."""
    if found.relation == "equal":
        return f"mathematically equivalent ({found.trials} exact trials)"
    return f"mathematically equivalent in the cases reached ({found.trials} exact trials; {found.reason})"


def same_function_reason(found: EqualityRecord, reason: str) -> str:
    """The reason of a difference between programs that mean the same; `reason` is what their values say."""
    return f"{_same_function(found)}; {reason}"


def excusing_reason(found: EqualityRecord, reason: str) -> str:
    """The reason of `rounding` where legal executions say nothing; `reason` is that of `unstable`."""
    return f"{_same_function(found)}, though values alone do not show it: {reason}"


def unexcused_reason(found: EqualityRecord, why: str, reason: str) -> str:
    """The reason of `unstable` where equality alone is not enough; `why` says what it leaves open."""
    return f"{reason}; the programs are {_same_function(found)}, but {why}"


def regrouped_reason(found: EqualityRecord, flag: str) -> str:
    """The reason of `rounding` where a flag allows to compute as if nothing were rounded."""
    what = f"compiled with {flag}, sums may be regrouped, which changes what is left of rounding errors"
    return f"{_same_function(found)}; {what}"


def harmful_reason(found: EqualityRecord, reason: str) -> str:
    """The reason of `wrong` where the programs mean the same all the same."""
    return (
        f"{reason}; the programs are {_same_function(found)}, but one of them loses the digits by how it "
        "computes, or at a tie or an overflow"
    )


def other_function_reason(found: EqualityRecord, said: LeafComparison) -> str:
    """The reason of a difference between programs that do not mean the same; `said` is by their values."""
    what = found.reason or f"{found.differing} of {found.total} elements at a random point"
    if found.apart > thresholds.APART_IN_F64.value:
        what = f"{what}; in double precision {found.apart:.2g} of the values apart, which is no rounding"
    here = _HERE.get(said.verdict, said.reason)
    return f"not mathematically equivalent ({what}); on these inputs {here}"


#: How close the values of other functions are.
_HERE = {Verdict.IDENTICAL: "the same bits", Verdict.AGREE: "a few ulps apart"}


#: What may decide where values do not.
_ADVICE = "fewer steps, inputs of another scale, --compare-with or `hlotool prove` may decide it"


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
        count = f"{found.varied} of {found.beyond.size} elements"
        return f"{_SENSITIVE}: a single ulp flips {count}{origin}; {_ADVICE}"
    if found.unknown:
        return f"{_SENSITIVE}: {_overflowing(found)}; {_ADVICE}"
    grown = f", most of all in {where}" if where else ""
    times = f"{found.width / unit:.0e} times" if unit and found.width < np.inf else "many times"
    return (
        f"{_SENSITIVE}: rounding alone moves this output by {found.width:.2g} × its size (one rounding error "
        f"grows {times}{grown}); {_ADVICE}"
    )


#: What every reason of `unstable` begins with.
_SENSITIVE = "too sensitive to judge"


def _overflowing(found: Score) -> str:
    return f"most correct runs overflow where {found.unknown} numbers differ"


def amplified_reason(found: Finding) -> str:
    """The reason of `rounding` where the declared types say nothing, and f64 does."""
    if isinstance(found, Flips):
        spread = "correct runs differ in many elements"
    elif found.unknown:
        spread = _overflowing(found)
    else:
        spread = f"correct runs differ by {found.width:.2g} of the values"
    return (
        f"rounding is amplified ({spread}); in double precision both programs compute the same, and "
        f"{_times(found)}"
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
        rest: of `cancelling`; empty where it is no single sum.
        maker: the instruction that makes something out of proportion of it; empty where nothing does.
    """
    count, total, spread = decided
    size = f"±{spread:.2g}" if spread < _FAR else "NaN or infinity"
    here = f"{count} of {total} elements"
    what = rest or "terms of sums cancel, and only rounding error is left"
    if maker:
        return f"cancellation: {what}, and {maker} turns that into {size}: nothing to judge in {here}"
    return f"cancellation: {what}; that is {size} in {here}, and {_times(found)}"


def range_reason(misplaced: int, cause: str, origin: Origin | None) -> str:
    """The reason of `range`: how many elements are NaN or infinite on one side only, and why.

    Args:
        misplaced: so many; 0 where they decide about others.
        cause: in a clause.
        origin: what overflows.
    """
    where = f", at {origin}" if origin is not None else ""
    verb = "element is" if misplaced == 1 else "elements are"
    what = f"{misplaced} {verb} NaN or infinite" if misplaced else "NaN or infinity occurs"
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
        verb = "element differs" if evidence.beyond == 1 else "elements differ"
        return f"{evidence.beyond} {verb}, though no operation before them rounds"
    if isinstance(found, Flips):
        verb = "element has a value" if found.count == 1 else "elements have values"
        return f"{found.count} {verb} that no rounding and no order of sums leads to"
    if misplaced:
        verb = "element is" if misplaced == 1 else "elements are"
        return f"{misplaced} {verb} NaN or infinite on one side only, and no rounding explains it"
    if is_hidden:
        return "the programs differ in double precision; in the declared types rounding hides it"
    where = _STATISTICS[found.statistic]
    if found.statistic == "worst element" and found.worst:
        where += f", {format_position(found.worst)}"
    also = ", also in double precision" if evidence.wide == "outside" else ""
    return f"error is {found.ratio:.2g} × what rounding can cause ({where}){also}"
