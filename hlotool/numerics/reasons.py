"""Verdicts in words: one sentence that a reader without the documentation understands."""

from __future__ import annotations

from hlotool.numerics.exchangeability import Score
from hlotool.numerics.facts import Facts
from hlotool.numerics.flips import Flips
from hlotool.numerics.verdict import Evidence, format_position

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


def legal_reason(evidence: Evidence, facts: Facts) -> str:
    """Of `rounding` and `unstable`."""
    where = _STATISTICS.get(evidence.statistic, evidence.statistic)
    text = (
        f"legal executions of the program differ as much: {where} is at {evidence.ratio:.2g} of what "
        f"{evidence.members} of them show"
    )
    source = facts.decision if evidence.statistic == "flips" else None
    if source is not None:
        return f"{text}; one ulp flips it at {source}"
    if facts.sum is not None:
        return f"{text}; its longest sum: {facts.sum.length} terms in {facts.sum.origin}"
    return text


def range_reason(found: Score) -> str:
    """Of `range`."""
    return (
        f"{found.misplaced} elements are NaN or infinite on one side only, but in f64 both sides agree: a "
        "value on the way is too large (or too small) for its type on one side"
    )


def wrong_reason(evidence: Evidence, found: Score | Flips | None) -> str:
    """Of `wrong`."""
    if found is None:
        return "integers that no float decides about must be equal" + _pattern(evidence)
    if isinstance(found, Flips):
        text = f"{found.count} elements have values that none of {found.members} legal executions has"
        return text + _pattern(evidence) + _wide(evidence)
    if found.misplaced:
        text = (
            f"{found.misplaced} elements are NaN or infinite where all of {found.members} legal executions "
            "agree that they are not, or the reverse"
        )
        return text + _pattern(evidence) + _wide(evidence)
    where = _STATISTICS[found.statistic]
    text = (
        f"no legal execution is so far off: {where} is at {found.ratio:.3g} times what {found.members} of "
        "them show"
    )
    if found.statistic == "worst element":
        text += f", at {format_position(found.worst)}"
    return text + _pattern(evidence) + _wide(evidence)


def _pattern(evidence: Evidence) -> str:
    return f"; {evidence.pattern}" if evidence.pattern else ""


def _wide(evidence: Evidence) -> str:
    match evidence.wide:
        case "equal" | "within":
            return "; in f64 both programs compute the same, so it is their precision or what runs them"
        case "outside":
            return "; also in f64, where nothing is rounded, the two programs differ"
    return ""
