"""Backward data-flow analysis: from a demand on a value to demands on entry parameters.

Demands travel through tuples, calls, fusions, branches, loop states, data movement and arithmetic; where they
cannot (through a dot, say), they end without effect.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from hlotool.analysis.calls import CallGraph
from hlotool.analysis.flow import handed_on
from hlotool.analysis.ranges import ForwardRanges
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ShapeIndex
from hlotool.values.arithmetic import solved
from hlotool.values.demand_rules import Source, sources
from hlotool.values.demands import Demand, InRange
from hlotool.values.guards import is_guarded
from hlotool.values.movement import carried, is_element_by_element, moved, moved_to_operand

#: Values visited for one demand at most, so that the time stays linear in the size of the module.
_MOST_VISITS: Final = 500


@dataclass(frozen=True, slots=True)
class Finding:
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
