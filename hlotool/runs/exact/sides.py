"""Decisions of a program that went the same way at all points: their other side was not compared.

A field decides by made-up sizes (`backends.field.pseudo_real`), which lie between 2^-8 and 2^8: `x > 1e30`
is false for all of them, and `select(x > 1e30, 0, x)` looks like x. So what a program asks of its values
(`questions`) is watched while both programs are evaluated. Sides that are impossible, as ranges, signs or the
types say, or that depend on no argument, are no news.

Equal numbers are single points, NaN and infinity are none of real numbers: whether those occurred counts
where programs are compared on further sets (`ExactResult.counts_integers`), not for a judge of rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, log2
from typing import Any, Final

import ml_dtypes
import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import structs

from hlotool.backends.base import ReadingProbe, ResultReader, Value
from hlotool.backends.field.trial import Trial
from hlotool.facts.dataflow import source_of
from hlotool.facts.decisions import Decision, Kind
from hlotool.facts.flow import CallGraph, Dependence, computed_by
from hlotool.facts.machine_ranges import unreachable_outcomes
from hlotool.facts.signs import Order, Signs
from hlotool.inputs.coverage.records import DecisionRecord
from hlotool.inputs.coverage.watches import OperandWatch
from hlotool.ir.arrays import dtype_of, integer_limits
from hlotool.ir.module import Instruction, Module
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import ArrayShape, ElementType, array_shapes
from hlotool.runs.exact.questions import Question, questions
from hlotool.system.records import SourceRecord

#: What stands between a value and a comparison of it.
_MOVES: Final = opcodes_with(Trait.REGROUPS) | {"slice"}


@dataclass(frozen=True, slots=True)
class OneSided:
    """A decision that did not go one of its ways, at any point and in any element.

    Attributes:
        of_reference: it is one of the reference's, not of the tested program's.
        record: what it is and where; `never` are the sides that nothing was compared on.
        size: elements that decide.
        was_asked: it was decided at all: what stands in a branch may not have been.
        of_sizes: sizes of floats decide, not integers, nor whether numbers are equal.
        sizes: binary logarithms of the sizes of what was compared.
    """

    of_reference: bool
    record: DecisionRecord
    size: int
    was_asked: bool = True
    of_sizes: bool = True
    sizes: tuple[float, ...] = ()

    @property
    def identity(self) -> tuple[bool, str, int, str, int | None]:
        """What tells it apart from other decisions of both programs."""
        source = self.record.source
        return self.of_reference, source.instruction, source.line, self.record.kind, self.record.dimension

    @property
    def asks_for_specials(self) -> bool:
        """Whether NaN or infinity is what it never met."""
        return self.record.kind in (Kind.NAN.value, Kind.FINITENESS.value)

    def __str__(self) -> str:
        return one_sided_text("first" if self.of_reference else "second", self.record)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a comparison compared.

    Attributes:
        value: words of the first operand.
        bound: of the second one, of the same dimensions.
    """

    value: npt.NDArray[np.uint64]
    bound: npt.NDArray[np.uint64]


def one_sided_text(program: str, one: DecisionRecord) -> str:
    """`compare %c of the first (line 10, model.py:7) is never true`."""
    source = one.source
    places = [f"line {source.line}" if source.line else "", source.place]
    where = ", ".join(filter(None, places))
    return (
        f"{source.opcode} %{source.instruction} of the {program}{f' ({where})' if where else ''}"
        f" is never {' or '.join(one.never)}"
    )


def both(one: Sequence[OneSided], other: Sequence[OneSided]) -> tuple[OneSided, ...]:
    """Of decisions that were one-sided in either of two comparisons, the sides that both left out."""
    others = {side.identity: side for side in other}
    found = []
    for side in one:
        match = others.get(side.identity)
        never = [name for name in side.record.never if match is not None and name in match.record.never]
        if match is not None and never:
            occurred = list(dict.fromkeys([*side.record.occurred, *match.record.occurred]))
            record = msgspec.structs.replace(side.record, occurred=occurred, never=never)
            found.append(replace(side, record=record, was_asked=side.was_asked or match.was_asked))
    return tuple(found)


class Watched(ReadingProbe):
    """Sees the decisions of one program, at as many points as it is evaluated at.

    Args:
        module: the program, which must not change meanwhile.
        trial: the points.
        of_reference: see `OneSided`.
    """

    def __init__(self, module: Module, trial: Trial, of_reference: bool) -> None:
        super().__init__()
        self._module = module
        self._of_reference = of_reference
        self._calls = CallGraph(module)
        self._watches: list[_Watch] = [_Watch(question, trial) for question in questions(self._calls)]
        self._by_instruction: dict[Instruction, list[_Watch]] = {}
        self._sources: dict[Instruction, SourceRecord] = {}
        self._recording: list[_Watch] = []
        for watch in self._watches:
            self._by_instruction.setdefault(watch.decision.instruction, []).append(watch)
        self._resume()

    @property
    def asks_of_floats(self) -> bool:
        """Whether numbers that the field draws decide anything."""
        return any(watch.question.of_sizes or watch.is_of_floats for watch in self._watches)

    @property
    def leaves_order_open(self) -> bool:
        """Whether a sort met equal keys that it may put in any order."""
        return any(watch.question.is_open and watch.seen for watch in self._watches)

    def remembered(self) -> Callable[[int], bool]:
        """What forgets what is seen from now on, but for what so many points have had; 0 for all of it.

        A zero may hide what a tie decided, and hardly twice. It says whether anything was new.
        """
        kept = [(watch, set(watch.seen), watch.was_asked) for watch in self._watches if not watch.is_done]

        def forget(times: int) -> bool:
            is_new = False
            for watch, seen, was_asked in kept:
                if times:
                    new, was_asked = watch.seen - seen, watch.was_asked
                    seen |= new if times == 1 else new & watch.seen_before
                    watch.seen_before |= new
                    is_new |= bool(new)
                if seen != watch.seen or was_asked != watch.was_asked:
                    watch.go_back(seen, was_asked)
            self._resume()
            return is_new

        return forget

    def _resume(self) -> None:
        for instruction, watches in self._by_instruction.items():
            if not all(watch.is_done for watch in watches):
                self.readers[instruction] = self._reader(instruction, watches)

    def _reader(
        self, instruction: Instruction, watches: Sequence[_Watch]
    ) -> Callable[[Sequence[Value]], ResultReader | None]:
        def read(values: Sequence[Value]) -> ResultReader | None:
            if len(values) != len(instruction.operands):  # what follows from constants reads nothing
                for watch in watches:
                    watch.is_settled = True
                self.readers.pop(instruction, None)
                return None
            asked = [look for watch in watches if not watch.is_done and (look := watch.asked(values))]
            if all(watch.is_done for watch in watches):
                self.readers.pop(instruction, None)  # several devices may see the last side at once

            def read_result(value: Value) -> None:
                for look in asked:
                    look(value)

            return read_result if asked else None

        return read

    def record(self, most: int) -> None:
        """Begin to note what so many comparisons of floats compare that never met equal numbers."""
        for watch in self._watches:
            watch.recorded = None
        ties = [w for w in self._watches if w.decision.kind is Kind.TIES and w.compares_floats]
        self._recording = [watch for watch in ties if not watch.is_done][:most]
        for watch in self._recording:
            watch.is_recording = True

    def recorded(self) -> list[Asked | None]:
        """What was noted since; None of what the program did not come to."""
        for watch in self._recording:
            watch.is_recording = False
        return [watch.recorded for watch in self._recording]

    def one_sided(self) -> Iterator[OneSided]:
        """Decisions that did not go a way that they may go, in textual order.

        Of those that were not asked so far all sides are.
        """
        for watch in self._watches:
            if watch.is_done:
                continue
            decision, sides = watch.decision, watch.question.sides
            never = [
                name for name, shown in sides.items() if watch.question.is_open or not shown & watch.seen
            ]
            never = self._possible(watch, never) if watch.was_asked else never
            if not never:
                watch.is_settled = True
                continue
            occurred = [name for name in sides if name not in never]
            record = DecisionRecord(
                kind=decision.kind.value,
                dimension=None if decision.start is None else decision.start.dimension,
                source=self._source(decision.instruction),
                occurred=occurred,
                never=never,
            )
            size = max(decision.instruction.operands[n].array_shape.size for n in decision.operands)
            yield OneSided(
                self._of_reference, record, size, watch.was_asked, watch.question.of_sizes, watch.sizes
            )

    def _source(self, instruction: Instruction) -> SourceRecord:
        if instruction not in self._sources:
            chain = [*reversed(list(self._calls.enclosing(instruction))), instruction]
            self._sources[instruction] = source_of(self._module, chain)
        return self._sources[instruction]

    def _possible(self, watch: _Watch, never: Sequence[str]) -> list[str]:
        """Those of the sides that were not seen on which some arguments may lead."""
        decision = watch.decision
        if not never or self._is_settled(decision):
            return []
        if decision.kind is Kind.START_INDEX and not self._takes_integers:
            return []  # such positions are the program's own: it has no other ones
        excluded = set(self._excluded(decision))
        return [name for name in never if not watch.question.sides[name] <= excluded]

    def _is_settled(self, decision: Decision) -> bool:
        instruction, dependence = decision.instruction, self._dependence
        is_of_one = len({id(instruction.operands[n]) for n in decision.operands}) < len(decision.operands)
        if is_of_one and decision.kind is not Kind.NAN:
            return True
        if any(self._is_report_of_library(instruction.operands[n]) for n in decision.operands):
            return True  # that it failed; its results are NaN then
        return not any(dependence.varies(instruction.operands[n]) for n in decision.operands) and (
            dependence.runs_always_alike(instruction)
        )

    def _is_report_of_library(self, operand: Instruction) -> bool:
        """Whether an integer is what a library call returns besides its results, `info` of LAPACK."""
        if _is_float(operand):
            return False
        sources = {part for part, _ in computed_by(operand, self._calls)}
        while sources and all(s.opcode in _MOVES for s in sources):
            sources = {part for s in sources for part, _ in computed_by(s.operands[0], self._calls)}
        return bool(sources) and all(s.opcode == "custom-call" for s in sources)

    @cached_property
    def _takes_integers(self) -> bool:
        shapes = [shape for p in self._module.entry.parameters for shape in array_shapes(p.shape)]
        return any(shape.element_type.is_integer for shape in shapes)

    @cached_property
    def _unreachable(self) -> Mapping[Decision, frozenset[str]]:
        return unreachable_outcomes(self._calls, [watch.decision for watch in self._watches])

    @cached_property
    def _dependence(self) -> Dependence:
        return Dependence(self._calls)

    @cached_property
    def _signs(self) -> Signs:
        return Signs(self._module)

    def _excluded(self, decision: Decision) -> Iterator[str]:
        """Outcomes that cannot be."""
        asked = (
            structs.replace(decision, kind=Kind.COMPARISON)
            if decision.instruction.opcode == "compare"
            else decision
        )
        yield from self._unreachable.get(asked, ())
        operands = decision.instruction.operands
        match decision.kind:
            case Kind.SIGN:
                interval = self._signs.of(operands[0]).interval
                yield from ["negative"] if interval.low >= 0 else []
                yield from ["not negative"] if interval.high <= 0 else []
            case Kind.CLAMPING:
                low, value, high = operands
                yield from ["below"] if self._order(low, value) is Order.AT_MOST else []
                yield from ["above"] if self._order(value, high) is Order.AT_MOST else []
            case Kind.COMPARISON | Kind.EXTREMUM | Kind.TIES if len(operands) == 2:
                order = self._order(*operands)
                if order is not None:
                    names = ("greater", "first larger"), ("less", "second larger")
                    yield from names[order is Order.AT_LEAST]

    def _order(self, a: Instruction, b: Instruction) -> Order | None:
        """How two values compare for certain: by their ranges, those of their types, or an inequality."""
        if not _is_float(a):
            return None  # `unreachable_outcomes` knows more of integers
        if (found := self._signs.order(a, b)) is not None:
            return found[0]
        x, y = self._signs.of(a).interval, self._signs.of(b).interval
        largest = _largest(a.element_type)
        if y.low >= largest or x.high <= -largest:
            return Order.AT_MOST
        return Order.AT_LEAST if x.low >= largest or y.high <= -largest else None


class _Watch(OperandWatch):
    """One question, about words, or about integers and preds.

    Args:
        question: in question.
        trial: whose sizes decide.

    Attributes:
        was_asked: the program came to it.
        seen_before: outcomes that one point had at which numbers meet.
        is_recording: what it compares next is noted.
        recorded: what was noted.
        is_settled: nothing about it is open.
    """

    def __init__(self, question: Question, trial: Trial) -> None:
        self.seen: set[str] = set()
        self.seen_before: set[str] = set()
        self.is_recording = False
        self.recorded: Asked | None = None
        self.was_asked = self.is_settled = False
        self.question, self.decision = question, question.decision
        super().__init__(question.decision, self.seen, [])
        self._is_of_numbers = False
        self._trial = trial
        self._are_words = [_is_float(operand) for operand in self.decision.instruction.operands]
        self._largest = [0.0] * len(self._are_words)
        self._least = [inf] * len(self._are_words)
        self.go_back(set(), False)

    def go_back(self, seen: set[str], was_asked: bool) -> None:
        """Forget what was seen since."""
        self.seen.clear()
        self.seen.update(seen)
        self.was_asked = was_asked
        wanted = {o for shown in self.question.sides.values() if not shown & seen for o in shown}
        self._open = [(o, test) for o, test in self.question.tests.items() if o in wanted]

    @property
    def is_of_floats(self) -> bool:
        """Whether it reads floats."""
        return any(self._are_words[number] for number in self.decision.operands)

    @property
    def compares_floats(self) -> bool:
        """Whether it is a comparison of two of them."""
        return self.decision.instruction.opcode == "compare" and all(self._are_words)

    @property
    def is_done(self) -> bool:
        """Every side was seen, or none is possible."""
        sides = self.question.sides.values()
        return self.is_settled or (not self.question.is_open and all(s & self.seen for s in sides))

    @property
    def sizes(self) -> tuple[float, ...]:
        """See `OneSided`: of the largest and the least number of each operand, and of what a type holds."""
        found = {size for size in (*self._largest, *self._least) if 0 < size < inf}
        kind = self.decision.instruction.shape
        if (
            self.decision.kind is Kind.CONVERSION
            and isinstance(kind, ArrayShape)
            and kind.element_type.is_integer
        ):
            found |= {float(max(1, limit)) for limit in integer_limits(kind.element_type)}
        return tuple(sorted({round(log2(size)) + 0.0 for size in found}))

    def asked(self, values: Sequence[Any]) -> ResultReader | None:
        """See operands; what is returned, if anything, is to see the result."""
        self.was_asked = True
        if self.is_recording:
            self.is_recording = False  # the first time alone
            value, bound = np.broadcast_arrays(values[0], values[1])
            self.recorded = Asked(np.array(value, np.uint64), np.array(bound, np.uint64))
        self.look(values)
        shows = self.question.from_result
        return None if shows is None else lambda value: self.seen.update(shows(values, value))

    def _ask(self, values: Sequence[Any]) -> None:
        numbers = list(values)
        for place, value in enumerate(values):
            if self._are_words[place]:
                numbers[place] = self._trial.kappa(np.asarray(value))
                self._note(place, numbers[place])
        super()._ask(numbers)

    def _note(self, place: int, numbers: Any) -> None:
        absolute = np.abs(numbers)
        absolute = absolute[np.isfinite(absolute) & (absolute > 0)]
        if absolute.size:
            self._largest[place] = max(self._largest[place], float(absolute.max()))
            self._least[place] = min(self._least[place], float(absolute.min()))


def _is_float(operand: Instruction) -> bool:
    return isinstance(operand.shape, ArrayShape) and operand.shape.element_type.is_floating


def _largest(kind: ElementType) -> float:
    """The largest finite number of a float type: what is compared with it is no larger."""
    return float(ml_dtypes.finfo(dtype_of(kind)).max)  # type: ignore[no-untyped-call]
