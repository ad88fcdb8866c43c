"""Which outcomes the decisions of a program had, over one run or several."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from hlotool.analysis.decisions import Decision
from hlotool.coverage.program import ProgramDecisions
from hlotool.coverage.records import CoverageRecord, DecisionRecord


@dataclass(frozen=True, slots=True, eq=False)
class Coverage:
    """What was seen of one program.

    Attributes:
        program: whose decisions they are.
        seen: outcomes of each decision that had any.
    """

    program: ProgramDecisions
    seen: Mapping[Decision, frozenset[str]]

    def merge(self, other: Coverage) -> Coverage:
        """What was seen in either; both must be of one program."""
        assert self.program is other.program
        both = {**self.seen}
        for decision, outcomes in other.seen.items():
            both[decision] = both.get(decision, frozenset()) | outcomes
        return Coverage(self.program, both)

    def outcomes(self, decision: Decision) -> frozenset[str]:
        """Outcomes of a decision that occurred."""
        return self.seen.get(decision, frozenset())

    def unreachable(self, decision: Decision) -> frozenset[str]:
        """Outcomes of a decision that no arguments make occur, as is proved.

        Where a decision depends on no argument, what did not occur in a whole run never does.
        """
        proved = self.program.unreachable.get(decision, frozenset())
        if decision in self.program.settled:
            proved = proved | set(decision.all_outcomes)
        return proved - self.outcomes(decision)

    def missing(self, decision: Decision, odd: bool = False) -> tuple[str, ...]:
        """Outcomes that may occur and did not.

        Args:
            decision: of the program.
            odd: those that sensible inputs do not have, instead of those that they have.
        """
        known = self.outcomes(decision) | self.unreachable(decision)
        return tuple(o for o in (decision.odd if odd else decision.outcomes) if o not in known)

    def never(self, odd: bool = False) -> Iterator[tuple[Decision, tuple[str, ...]]]:
        """Decisions with outcomes that may occur and did not; of sensible ones only where there are several.

        Args:
            odd: see `missing`.
        """
        for decision in self.program.decisions:
            if odd or decision.is_open:
                missing = self.missing(decision, odd)
                if missing:
                    yield decision, missing

    @property
    def total(self) -> int:
        """Decisions that sensible inputs may answer in several ways."""
        return sum(decision.is_open for decision in self.program.decisions)

    @property
    def covered(self) -> int:
        """Those of which every sensible outcome occurred or is unreachable."""
        return self.total - sum(1 for _ in self.never())


def merged(coverages: Iterable[Coverage]) -> Coverage:
    """What was seen in any of several runs of one program, at least one."""
    first, *others = coverages
    for other in others:
        first = first.merge(other)
    return first


# Coverage as a record: counts, and decisions with the user's source lines.


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
