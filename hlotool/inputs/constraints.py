"""From a demand on a value back to demands on entry parameters, combined into what each leaf will be.

Demands travel through tuples, calls, fusions, branches, loop states, data movement and arithmetic; where
they cannot (through a dot, say), they end without effect.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import Struct, field

from hlotool.facts.demands import (
    AnyBits,
    Demand,
    Exactly,
    InRange,
    Matrix,
    MatrixKind,
    Ordered,
    Scaled,
)
from hlotool.facts.flow import CallGraph, handed_on
from hlotool.facts.ranges import ANY, ForwardRanges, Interval
from hlotool.inputs.demand_arithmetic import solved
from hlotool.inputs.demand_movement import (
    carried,
    is_element_by_element,
    is_guarded,
    moved,
    moved_to_operand,
)
from hlotool.inputs.demand_rules import Source, sources
from hlotool.ir.module import Instruction, Module
from hlotool.ir.opcodes import Identity
from hlotool.ir.types import ShapeIndex

#: Values visited for one demand at most, so that the time stays linear in the size of the module.
_MOST_VISITS: Final = 500


class Finding(Struct, frozen=True):
    """A demand that reached an entry parameter, or another instruction that is to get a value.

    Attributes:
        number: of the parameter.
        index: of the leaf within it.
        demand: what is asked of its values.
        purpose: by whom and for what.
    """

    number: int
    index: ShapeIndex
    demand: Demand
    purpose: str


#: A demand on the part at an index of an instruction's value.
_Item: TypeAlias = tuple[Instruction, ShapeIndex, Demand]


def parameter_demands(module: Module, may_skip: bool = False) -> list[Finding]:
    """All demands on the entry parameters, in the order of the instructions that make them.

    Args:
        module: the program.
        may_skip: whether loops may as well run no iteration at all, and what a program guards by itself is
            left free: the operand of a select that is only taken where a comparison of it says so.
    """
    return demands_on(module, {p: p.parameter_number or 0 for p in module.entry.parameters}, may_skip)


def demands_on(module: Module, values: Mapping[Instruction, int], may_skip: bool = False) -> list[Finding]:
    """All demands on some instructions, which are to get values, by a number for each; in the same order."""
    return list(_Trace(module, values, may_skip).findings())


class _Trace:
    def __init__(self, module: Module, values: Mapping[Instruction, int], may_skip: bool) -> None:
        self.values = values
        self._may_skip = may_skip
        self.calls = CallGraph(module)
        self.ranges = ForwardRanges(self.calls.home)

    def findings(self) -> Iterator[Finding]:
        seen: set[tuple[Instruction, Demand]] = set()
        for instruction in self.calls.in_order_of_execution():
            for source in sources(instruction, self.ranges, self._may_skip):
                if (source.value, source.demand) not in seen:
                    seen.add((source.value, source.demand))
                    yield from self._follow(source)

    def _follow(self, source: Source) -> Iterator[Finding]:
        """Breadth first; every part of every value is asked once."""
        pending: deque[_Item] = deque([(source.value, (), source.demand)])
        visited: set[tuple[Instruction, ShapeIndex]] = set()
        while pending and len(visited) < _MOST_VISITS:
            instruction, index, demand = pending.popleft()
            if (instruction, index) in visited or self._is_met(instruction, demand):
                continue
            visited.add((instruction, index))
            if instruction in self.values:
                yield Finding(self.values[instruction], index, demand, source.purpose)
            else:
                pending.extend(self._producers(instruction, index, demand))

    def _is_met(self, instruction: Instruction, demand: Demand) -> bool:
        """Whether a requirement holds for every input anyway."""
        if not isinstance(demand, InRange) or not demand.required:
            return False
        return all(interval.contains(self.ranges.of(instruction)) for interval in demand.intervals)

    def _producers(self, instruction: Instruction, index: ShapeIndex, demand: Demand) -> Iterator[_Item]:
        if is_element_by_element(instruction):
            number = index[0] if index else 0
            asked_of_operand = moved_to_operand(instruction, number, demand)
            if asked_of_operand is not None:
                yield instruction.operands[number], (), asked_of_operand
            return
        handed = list(handed_on((instruction, index), self.calls))
        if handed:
            yield from ((source, part, demand) for source, part in handed)
            return
        rounds = instruction.opcode == "convert" and isinstance(demand, InRange)
        is_movement = carried(instruction) and not rounds
        step = moved(instruction, demand) if is_movement else solved(instruction, demand, self.ranges)
        for number, asked in step:
            is_required = isinstance(asked, InRange) and asked.required
            if self._may_skip and is_required and is_guarded(instruction, number, self.calls):
                continue
            yield instruction.operands[number], (), asked


class Constraint(Struct):
    """How the values of a leaf are to be chosen.

    Attributes:
        intervals: one, or one per position along `axis`.
        axis: None when there is one interval.
        order: distinct or ascending elements or vectors.
        exactly: one value for all elements.
        matrix: what the last two dimensions are.
        scale: typical magnitude of floats that no interval bounds.
        all_bits: integers use their whole width.
        purposes: who asked, in program order.
        unmet: demands that contradict earlier ones, with who asked.
    """

    intervals: tuple[Interval, ...] = (ANY,)
    axis: int | None = None
    order: Ordered | None = None
    exactly: Identity | None = None
    matrix: MatrixKind | None = None
    scale: float = 1.0
    all_bits: bool = False
    purposes: list[str] = field(default_factory=list)
    unmet: list[str] = field(default_factory=list)

    @property
    def is_bounded(self) -> bool:
        """Whether some interval excludes a number."""
        return any(interval != ANY for interval in self.intervals)

    def add(self, demand: Demand, purpose: str) -> None:
        """Take in one more demand."""
        if self._merge(demand):
            self.purposes.append(purpose)
        else:
            self.unmet.append(purpose)

    def _merge(self, demand: Demand) -> bool:
        """Whether the demand can be met together with the earlier ones."""
        match demand:
            case InRange():
                return self._merge_range(demand)
            case Ordered():
                self.order = demand if self.order is None else _both(self.order, demand)
            case Exactly():
                if self.exactly not in (None, demand.value):
                    return False
                self.exactly = demand.value
            case Matrix():
                # Positive definite matrices have well-conditioned triangles, not the other way round.
                if self.matrix in (None, demand.kind) or demand.kind is MatrixKind.POSITIVE_DEFINITE:
                    self.matrix = demand.kind
                return self.matrix in (demand.kind, MatrixKind.POSITIVE_DEFINITE)
            case Scaled():
                self.scale = min(self.scale, demand.factor)
            case AnyBits():
                self.all_bits = True
        return True

    def _merge_range(self, demand: InRange) -> bool:
        axis, mine, asked = _aligned(self.axis, self.intervals, demand)
        merged = tuple(a.intersect(b) for a, b in zip(mine, asked))
        if any(interval.is_empty for interval in merged):
            return False
        self.axis, self.intervals = axis, merged
        return True


def _both(a: Ordered, b: Ordered) -> Ordered:
    return Ordered(a.distinct or b.distinct, a.ascending or b.ascending, a.axis, a.batch)


def _aligned(
    axis: int | None, mine: tuple[Interval, ...], demand: InRange
) -> tuple[int | None, Sequence[Interval], Sequence[Interval]]:
    """Both sets of intervals along one axis; two different axes collapse."""
    if axis == demand.axis and len(mine) == len(demand.intervals):
        return axis, mine, demand.intervals
    if axis is None:
        return demand.axis, mine * len(demand.intervals), demand.intervals
    if demand.axis is None:
        return axis, mine, demand.intervals * len(mine)
    return None, (InRange(mine).narrowest,), (demand.narrowest,)


def combine(findings: Iterable[Finding]) -> dict[tuple[int, ShapeIndex], Constraint]:
    """Constraints by parameter number and leaf index; requirements go before wishes, else program order."""
    constraints: dict[tuple[int, ShapeIndex], Constraint] = {}
    for finding in sorted(findings, key=_strength):
        key = (finding.number, finding.index)
        constraints.setdefault(key, Constraint()).add(finding.demand, finding.purpose)
    return constraints


def _strength(finding: Finding) -> bool:
    """False sorts first: what the program needs to be defined at all."""
    return isinstance(finding.demand, InRange) and not finding.demand.required
