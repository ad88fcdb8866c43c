"""Decisions of a program that went the same way at all points: their other side was not compared.

A field decides by made-up sizes (`backends.field.pseudo_real`), which lie between 2^-8 and 2^8: `x > 1e30`
is false for all of them, and `select(x > 1e30, 0, x)` looks like x. So comparisons, clamps, extrema and signs
are watched while both programs are evaluated. Those whose other side is impossible, as ranges, signs or the
types say, or which depend on no argument, are no news.

NaN and infinity are no real numbers: that nothing was infinite is not reported. Ties of floats are single
points; where `==` never held, that is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, log2
from typing import Any, Final, TypeAlias

import ml_dtypes
import msgspec
import numpy as np

from hlotool.analysis.calls import CallGraph
from hlotool.analysis.decisions import Decision, Kind, decisions
from hlotool.analysis.dependence import Dependence
from hlotool.analysis.flow import computed_by
from hlotool.analysis.signs import Order, Signs
from hlotool.analysis.unreachable import unreachable_outcomes
from hlotool.backends.base import ReadingProbe, ResultReader, Value
from hlotool.backends.field.trial import Trial
from hlotool.coverage.outcomes import outcome_tests
from hlotool.coverage.records import DecisionRecord
from hlotool.coverage.watches import OperandWatch
from hlotool.findings.provenance import source_of
from hlotool.ir.dtypes import dtype_of
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ArrayShape, ElementType

#: By the name of each side the outcomes that show it.
_Sides: TypeAlias = Mapping[str, frozenset[str]]

_LESS, _EQUAL, _GREATER = frozenset({"less"}), frozenset({"equal"}), frozenset({"greater"})
#: Direction → outcomes by which a comparison of integers is true; the others make it false.
_TRUE: Final = {
    "EQ": _EQUAL,
    "GE": _EQUAL | _GREATER,
    "GT": _GREATER,
    "LE": _EQUAL | _LESS,
    "LT": _LESS,
    "NE": _LESS | _GREATER,
}
#: Kinds whose every outcome is a side.
_BY_OUTCOME: Final = frozenset({Kind.CLAMPING, Kind.EXTREMUM, Kind.SIGN})


#: What stands between a value and a comparison of it.
_MOVES: Final = frozenset({"bitcast", "broadcast", "copy", "reshape", "slice", "transpose"})


@dataclass(frozen=True, slots=True)
class OneSided:
    """A decision that did not go one of its ways, at any point and in any element.

    Attributes:
        of_reference: it is one of the reference's, not of the tested program's.
        record: what it is and where; `never` are the sides that nothing was compared on.
        size: elements that decide.
        is_of_floats: floats decide, not integers.
        sizes: binary logarithms of the sizes of what was compared.
    """

    of_reference: bool
    record: DecisionRecord
    size: int
    is_of_floats: bool = True
    sizes: tuple[float, ...] = ()

    @property
    def was_asked(self) -> bool:
        """Whether it was decided at all: what stands in a branch may not have been."""
        return bool(self.record.occurred)

    @property
    def identity(self) -> tuple[bool, str, int, str]:
        """What tells it apart from other decisions of both programs."""
        return self.of_reference, self.record.source.instruction, self.record.source.line, self.record.kind

    def __str__(self) -> str:
        return one_sided_text("first" if self.of_reference else "second", self.record)


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
    others = {side.identity: side.record for side in other}
    found = []
    for side in one:
        record = others.get(side.identity)
        never = [name for name in side.record.never if record is not None and name in record.never]
        if record is not None and never:
            occurred = list(dict.fromkeys([*side.record.occurred, *record.occurred]))
            record = msgspec.structs.replace(side.record, occurred=occurred, never=never)
            found.append(replace(side, record=record))
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
        self._sides: dict[Decision, _Sides] = {}
        self._watches: dict[Decision, _Watch] = {}
        for decision in decisions(self._calls):
            sides = _sides(decision)
            if sides:
                self._sides[decision] = sides
                watch = self._watches[decision] = _Watch(decision, sides, trial)
                self.readers[decision.instruction] = self._reader(decision.instruction, watch)

    def _reader(
        self, instruction: Instruction, watch: _Watch
    ) -> Callable[[Sequence[Value]], ResultReader | None]:
        def read(values: Sequence[Value]) -> None:
            if len(values) == len(instruction.operands):
                watch.look(values)
            else:  # what follows from constants reads nothing
                self._sides.pop(watch.decision, None)
            if watch.is_done:
                self.readers.pop(instruction, None)  # several devices may see the last side at once

        return read

    def one_sided(self) -> Iterator[OneSided]:
        """Decisions that did not go a way that they may go, in textual order.

        Of those that were not asked so far all sides are.
        """
        for decision, sides in list(self._sides.items()):
            watch = self._watches[decision]
            if watch.is_done:
                continue
            never = [name for name, shown in sides.items() if not shown & watch.seen]
            never = self._possible(decision, never) if watch.seen else never
            if not never:
                self.readers.pop(decision.instruction, None)
                del self._sides[decision]
                continue
            occurred = [name for name, shown in sides.items() if shown & watch.seen]
            record = DecisionRecord(
                kind=decision.kind.value,
                source=self._source(decision.instruction),
                occurred=occurred,
                never=never,
            )
            size = max(decision.instruction.operands[n].array_shape.size for n in decision.operands)
            is_of_floats = _is_float(decision.instruction.operands[decision.operands[0]])
            yield OneSided(self._of_reference, record, size, is_of_floats, watch.sizes)

    def _source(self, instruction: Instruction) -> Any:
        chain = [*reversed(list(self._calls.enclosing(instruction))), instruction]
        return source_of(self._module, chain)

    def _possible(self, decision: Decision, never: Sequence[str]) -> list[str]:
        """Those of the sides that were not seen on which some arguments may lead."""
        if not never or self._is_settled(decision):
            return []
        excluded = set(self._excluded(decision))
        return [name for name in never if not self._sides[decision][name] <= excluded]

    def _is_settled(self, decision: Decision) -> bool:
        instruction, dependence = decision.instruction, self._dependence
        if len({id(instruction.operands[n]) for n in decision.operands}) < len(decision.operands):
            return True  # x == x asks for NaN
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
    def _dependence(self) -> Dependence:
        return Dependence(self._calls)

    @cached_property
    def _signs(self) -> Signs:
        return Signs(self._module)

    def _excluded(self, decision: Decision) -> Iterator[str]:
        """Outcomes that cannot be."""
        yield from unreachable_outcomes(self._calls, [decision]).get(decision, ())
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
            case Kind.COMPARISON | Kind.EXTREMUM:
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
    """A decision about words, or about integers.

    Args:
        decision: in question.
        sides: that it has.
        trial: whose sizes decide.
    """

    def __init__(self, decision: Decision, sides: _Sides, trial: Trial) -> None:
        self.seen: set[str] = set()
        known = outcome_tests(decision)
        super().__init__(
            decision, self.seen, [o for o in known if any(o in shown for shown in sides.values())]
        )
        self._is_of_numbers = False
        self.decision = decision
        self._sides = sides
        self._trial = trial
        self._are_words = [_is_float(operand) for operand in decision.instruction.operands]
        self._largest = [0.0] * len(self._are_words)
        self._least = [inf] * len(self._are_words)

    @property
    def is_done(self) -> bool:
        """Every side was seen."""
        return all(shown & self.seen for shown in self._sides.values())

    @property
    def sizes(self) -> tuple[float, ...]:
        """See `OneSided`: of the largest and the least number that each operand was."""
        found = {size for size in (*self._largest, *self._least) if 0 < size < inf}
        return tuple(sorted({round(log2(size)) + 0.0 for size in found}))

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


def _sides(decision: Decision) -> _Sides:
    """The sides of a decision that is made by numbers; none of others."""
    instruction = decision.instruction
    shape = instruction.operands[decision.operands[0]].shape if decision.operands else None
    if not isinstance(shape, ArrayShape) or shape.element_type.is_complex:
        return {}
    if shape.element_type is ElementType.PRED or instruction.opcode == "reduce":
        return {}
    if decision.kind in _BY_OUTCOME:
        return {outcome: frozenset({outcome}) for outcome in decision.outcomes}
    if decision.kind is not Kind.COMPARISON:
        return {}
    direction = instruction.text("direction")
    yes = _TRUE.get(direction, frozenset())
    if shape.element_type.is_floating and direction not in ("EQ", "NE"):
        # That two floats are equal says nothing of what lies on either side.
        return {"true": yes - _EQUAL, "false": (_LESS | _GREATER) - yes}
    return {"true": yes, "false": (_LESS | _EQUAL | _GREATER) - yes}


def _is_float(operand: Instruction) -> bool:
    return isinstance(operand.shape, ArrayShape) and operand.shape.element_type.is_floating


def _largest(kind: ElementType) -> float:
    """The largest finite number of a float type: what is compared with it is no larger."""
    return float(ml_dtypes.finfo(dtype_of(kind)).max)  # type: ignore[no-untyped-call]
