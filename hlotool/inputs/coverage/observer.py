"""Observes runs of a program on the numpy backend: its decisions and their outcomes, as a record.

Decisions are looked at just before the instruction runs, on its operands. What has been seen is not asked
again: a loop soon runs as fast as without being watched. The record has counts, and decisions with the
user's source lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final

from msgspec import Struct

from hlotool.backends.base import Executable, OperandReader, ReadingProbe, ResultReader, Value
from hlotool.backends.numpy import NumpyBackend
from hlotool.backends.numpy.lowering import Lowering
from hlotool.facts.dataflow import source_of
from hlotool.facts.decisions import Decision, Kind, decisions
from hlotool.facts.flow import CallGraph, Dependence
from hlotool.facts.machine_ranges import unreachable_outcomes
from hlotool.facts.work import of_lowering
from hlotool.inputs.coverage.records import CoverageRecord, DecisionRecord
from hlotool.inputs.coverage.watches import (
    Iterations,
    NanWatch,
    OperandWatch,
    OrderWatch,
    OverlapWatch,
    TiesWatch,
    TripCounter,
    Watch,
)
from hlotool.ir.edit_programs import flattened
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.system.records import SourceRecord
from hlotool.system.resources import spend


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
        flat = flattened(module)
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


class Coverage(Struct, frozen=True, eq=False):
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
            odd: outcomes that only unusual inputs have, instead of the ordinary ones.
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


#: Units of work of preparing to look at a decision.
_WATCH: Final = 20_000


def observe(module: Module, arguments: Sequence[Value]) -> Coverage:
    """Run a program for one device and see which outcomes its decisions have.

    Args:
        module: the program.
        arguments: one per entry parameter.

    Raises:
        as `Executable.run`.
    """
    return Instrumented(module).run(arguments)


class Instrumented:
    """A program for one device, compiled to be observed as often as wanted.

    Attributes:
        program: its decisions.

    Raises:
        Unsupported: see `ProgramDecisions`.
    """

    def __init__(self, module: Module) -> None:
        spend(of_lowering(module))
        self.program = ProgramDecisions(module)

    @cached_property
    def _executable(self) -> Executable:
        return NumpyBackend().compile(self.program.module)

    def run(self, arguments: Sequence[Value], before: Coverage | None = None) -> Coverage:
        """What one run shows; raises as `Executable.run`.

        Args:
            arguments: one per entry parameter.
            before: what earlier runs showed. It is not looked for again, and is part of the answer.
        """
        spend(_WATCH * len(self.program.decisions))
        observer = Observer(self.program, before)
        self._executable.run(arguments, observer)
        return observer.coverage()


class Observer(ReadingProbe):
    """The probe of one run on one device.

    Args:
        program: its decisions.
        before: see `Instrumented.run`.
    """

    def __init__(self, program: ProgramDecisions, before: Coverage | None = None) -> None:
        super().__init__()
        self._program = program
        self._seen: dict[Decision, set[str]] = {}
        self._loops: list[TripCounter] = []
        self._running: dict[Computation, TripCounter] = {}
        self._lowering = Lowering(program.module)
        watches: dict[Instruction, list[Watch]] = {}
        for decision in program.decisions:
            seen = self._seen[decision] = set(before.outcomes(decision)) if before else set()
            known = seen | program.unreachable.get(decision, frozenset())
            wanted = [outcome for outcome in decision.all_outcomes if outcome not in known]
            if wanted and not (before and decision in program.settled):
                watches.setdefault(decision.instruction, []).append(self._watch(decision, seen, wanted))
        for counter in self._loops:
            if counter.beat is not None:
                watches.setdefault(counter.beat, []).insert(0, Iterations(counter, self._running))
        for instruction, own in watches.items():
            self.readers[instruction] = self._reader(instruction, own)

    def coverage(self) -> Coverage:
        """What was seen; the run must be over."""
        for counter in self._loops:
            counter.finish()
        return Coverage(self._program, {d: frozenset(seen) for d, seen in self._seen.items() if seen})

    def _watch(self, decision: Decision, seen: set[str], wanted: Sequence[str]) -> Watch:
        match decision.kind:
            case Kind.TRIP_COUNT:
                self._loops.append(TripCounter(decision, seen, wanted, self._running))
                return self._loops[-1]
            case Kind.ORDER:
                return OrderWatch(decision, seen, wanted, self._lowering)
            case Kind.TIES:
                return TiesWatch(decision, seen, wanted)
            case Kind.NAN:
                return NanWatch(decision, seen, wanted)
            case Kind.OVERLAP:
                return OverlapWatch(decision, seen, wanted)
        return OperandWatch(decision, seen, wanted)

    def _reader(self, instruction: Instruction, watches: list[Watch]) -> OperandReader:
        """One reader for all watches on an instruction, gone when they have seen everything."""

        def read(values: Sequence[Value]) -> ResultReader | None:
            later = [after for watch in watches if (after := watch.look(values)) is not None]
            if any(watch.is_done for watch in watches):
                watches[:] = [watch for watch in watches if not watch.is_done]
                if not watches:
                    del self.readers[instruction]
            return _all_of(later) if later else None

        return read


def _all_of(readers: Sequence[ResultReader]) -> ResultReader:
    def read(value: Value) -> None:
        for reader in readers:
            reader(value)

    return read
