"""Observes runs of a program on the numpy backend: which outcomes its decisions have.

Decisions are looked at just before the instruction runs, on its operands. What has been seen is not asked
again: a loop soon runs as fast as without being watched.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Final

from hlotool.analysis.decisions import Decision, Kind
from hlotool.analysis.work import of_lowering
from hlotool.backends.base import Executable, OperandReader, ReadingProbe, ResultReader, Value
from hlotool.backends.numpy import NumpyBackend
from hlotool.backends.numpy.lowering import Lowering
from hlotool.coverage.coverage import Coverage, ProgramDecisions
from hlotool.coverage.watches import (
    Iterations,
    NanWatch,
    OperandWatch,
    OrderWatch,
    OverlapWatch,
    TiesWatch,
    TripCounter,
    Watch,
)
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.workers.work_limit import spend

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
