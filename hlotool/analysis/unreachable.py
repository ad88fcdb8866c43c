"""Outcomes of decisions that no arguments make occur, as ranges and constants prove."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hlotool.analysis.calls import CallGraph
from hlotool.analysis.decisions import Decision, Kind
from hlotool.analysis.trip_counts import static_trip_count


def unreachable_outcomes(
    calls: CallGraph, decisions: Iterable[Decision]
) -> Mapping[Decision, frozenset[str]]:
    """Outcomes that cannot occur, of the decisions that have such.

    Args:
        calls: of the program.
        decisions: of the program.
    """
    found: dict[Decision, frozenset[str]] = {}
    for decision in decisions:
        if decision.kind is Kind.TRIP_COUNT:
            trips = static_trip_count(decision.instruction)
            if trips is not None:
                occurs = ("none", "one", "several")[min(trips, 2)]
                found[decision] = frozenset(decision.outcomes) - {occurs}
    return found
