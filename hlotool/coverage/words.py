"""Coverage as a record: counts, and decisions with the user's source lines."""

from __future__ import annotations

from hlotool.analysis.decisions import Decision
from hlotool.coverage.coverage import Coverage
from hlotool.coverage.records import CoverageRecord, DecisionRecord


def coverage_record(coverage: Coverage, lists_all: bool = False) -> CoverageRecord:
    """What was covered.

    Args:
        coverage: of one program.
        lists_all: list all decisions, too.
    """
    decisions = coverage.program.decisions
    open_ones = [decision for decision in decisions if decision.is_open]
    missing = sum(len(coverage.missing(decision)) for decision in open_ones)
    occurred = sum(len(coverage.outcomes(d).intersection(d.outcomes)) for d in open_ones)
    odd_missing = sum(len(coverage.missing(decision, odd=True)) for decision in decisions)
    odd_occurred = sum(len(coverage.outcomes(d).intersection(d.odd)) for d in decisions)
    never = [decision for decision, _ in coverage.never()]
    return CoverageRecord(
        decisions=len(open_ones),
        covered=len(open_ones) - len(never),
        outcomes=occurred + missing,
        occurred=occurred,
        odd_outcomes=odd_occurred + odd_missing,
        odd_occurred=odd_occurred,
        never=[decision_record(coverage, decision) for decision in never],
        listing=[decision_record(coverage, decision) for decision in decisions] if lists_all else [],
    )


def decision_record(coverage: Coverage, decision: Decision) -> DecisionRecord:
    """One decision with what it did and where it stands."""
    occurred, unreachable = coverage.outcomes(decision), coverage.unreachable(decision)
    return DecisionRecord(
        kind=decision.kind.value,
        dimension=None if decision.start is None else decision.start.dimension,
        source=coverage.program.source(decision.instruction),
        occurred=[outcome for outcome in decision.all_outcomes if outcome in occurred],
        never=list(coverage.missing(decision)),
        odd=list(coverage.missing(decision, odd=True)),
        unreachable=[outcome for outcome in decision.all_outcomes if outcome in unreachable],
        counts=decision.is_open,
    )
