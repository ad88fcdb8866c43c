"""Which outcomes the decisions of a program had in some runs, and that in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from hlotool.analysis.calls import CallGraph
from hlotool.analysis.decisions import Decision, decisions
from hlotool.analysis.dependence import Dependence
from hlotool.analysis.unreachable import unreachable_outcomes
from hlotool.coverage.records import CoverageRecord, DecisionRecord
from hlotool.errors import Unsupported
from hlotool.findings.provenance import source_of
from hlotool.findings.records import SourceRecord
from hlotool.ir.edit_flatten import flatten_calls
from hlotool.ir.module import Instruction, Module


class ProgramDecisions:
    """Facts about a program, which must not change meanwhile.

    A function that is called from several places decides in each of them: a copy in which every call has a
    computation of its own is what is looked at, and what runs to be observed.

    Args:
        module: the program.

    Attributes:
        original: the program.
        module: the copy.
        originals: what each instruction of the copy stands for.
        calls: who calls whom in the copy.
        decisions: all of them, of the copy, in textual order.

    Raises:
        Unsupported: functions call functions so often that they cannot be told apart.
    """

    def __init__(self, module: Module) -> None:
        try:
            flat = flatten_calls(module)
        except ValueError as error:
            raise Unsupported(str(error)) from error
        self.original = module
        self.module = flat.module
        self.originals = flat.originals
        self.calls = CallGraph(flat.module)
        self.decisions = tuple(decisions(self.calls))

    def keep(self, wanted: Callable[[Decision], bool]) -> None:
        """Look at some of the decisions only, from now on."""
        self.decisions = tuple(filter(wanted, self.decisions))

    def source(self, instruction: Instruction) -> SourceRecord:
        """Where an instruction of the copy stands in the program, and in the user's."""
        chain = [*reversed(list(self.calls.enclosing(instruction))), instruction]
        return source_of(self.original, [self.originals[one] for one in chain])

    @cached_property
    def settled(self) -> frozenset[Decision]:
        """Decisions that have the same outcomes in every run: they depend on no argument."""
        dependence = Dependence(self.calls)
        return frozenset(
            d
            for d in self.decisions
            if dependence.runs_always_alike(d.instruction)
            and not any(dependence.varies(d.instruction.operands[number]) for number in d.operands)
        )

    @cached_property
    def unreachable(self) -> Mapping[Decision, frozenset[str]]:
        """Outcomes that ranges and constants exclude, of the decisions that have such."""
        return unreachable_outcomes(self.calls, self.decisions)


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
