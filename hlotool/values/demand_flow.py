"""Backward data-flow analysis: from a demand on a value to demands on entry parameters.

Demands travel through tuples, calls, fusions, branches, loop states, data movement and arithmetic; where they
cannot (through a dot, say), they end without effect.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.types import ShapeIndex
from hlotool.values.arithmetic import solved
from hlotool.values.demand_rules import Source, sources
from hlotool.values.demands import Demand, InRange
from hlotool.values.forward import ForwardRanges
from hlotool.values.movement import carried, moved

#: Values visited for one demand at most, so that the time stays linear in the size of the module.
_MOST_VISITS: Final = 500

#: Call other computations on whole values; reducers and comparators see single elements and are left out.
_CALLERS = frozenset(("async-start", "call", "conditional", "fusion", "while"))


@dataclass(frozen=True, slots=True)
class Finding:
    """A demand that reached an entry parameter.

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


def parameter_demands(module: Module) -> list[Finding]:
    """All demands on the entry parameters, in the order of the instructions that make them."""
    return list(_Trace(module).findings())


class _Trace:
    def __init__(self, module: Module) -> None:
        self.entry = module.entry
        self.callers: dict[Computation, list[Instruction]] = {module.entry: []}
        self.owners: dict[Instruction, Computation] = {}
        self._collect(module.entry)
        self.ranges = ForwardRanges(self.owners)

    def _collect(self, computation: Computation) -> None:
        """Owners and callers of everything that `computation` reaches."""
        for instruction in computation.instructions:
            self.owners[instruction] = computation
            if instruction.opcode in _CALLERS:
                for callee in instruction.called:
                    is_new = callee not in self.callers
                    self.callers.setdefault(callee, []).append(instruction)
                    if is_new:
                        self._collect(callee)

    def findings(self) -> Iterator[Finding]:
        seen: set[tuple[Instruction, Demand]] = set()
        for instruction in self.owners:
            for source in sources(instruction, self.ranges):
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
            if instruction.opcode == "parameter" and self.owners[instruction] is self.entry:
                assert instruction.parameter_number is not None
                yield Finding(instruction.parameter_number, index, demand, source.purpose)
            else:
                pending.extend(self._producers(instruction, index, demand))

    def _is_met(self, instruction: Instruction, demand: Demand) -> bool:
        """Whether a requirement holds for every input anyway."""
        if not isinstance(demand, InRange) or not demand.required:
            return False
        return all(interval.contains(self.ranges.of(instruction)) for interval in demand.intervals)

    def _producers(self, instruction: Instruction, index: ShapeIndex, demand: Demand) -> Iterator[_Item]:
        route = _ROUTES.get(instruction.opcode)
        if route is not None:
            for source, part in route(self, instruction, index):
                yield source, part, demand
            return
        rounds = instruction.opcode == "convert" and isinstance(demand, InRange)
        is_movement = carried(instruction) and not rounds
        step = moved(instruction, demand) if is_movement else solved(instruction, demand, self.ranges)
        for number, asked in step:
            yield instruction.operands[number], (), asked


_Parts: TypeAlias = Iterator[tuple[Instruction, ShapeIndex]]


def _tuple(_: _Trace, instruction: Instruction, index: ShapeIndex) -> _Parts:
    yield instruction.operands[index[0]], index[1:]


def _get_tuple_element(_: _Trace, instruction: Instruction, index: ShapeIndex) -> _Parts:
    yield instruction.operands[0], (instruction.integer("index"), *index)


def _identity(_: _Trace, instruction: Instruction, index: ShapeIndex) -> _Parts:
    yield instruction.operands[0], index


def _elementwise_tuple(_: _Trace, instruction: Instruction, index: ShapeIndex) -> _Parts:
    """Operand i becomes element i: sort, variadic collectives."""
    yield instruction.operands[index[0] if index else 0], ()


def _call(_: _Trace, instruction: Instruction, index: ShapeIndex) -> _Parts:
    yield next(instruction.called).root, index


def _async_done(_: _Trace, instruction: Instruction, index: ShapeIndex) -> _Parts:
    start = instruction.operands[0]
    while start.opcode == "async-update":
        start = start.operands[0]
    if start.opcode == "async-start":
        yield next(start.called).root, index


def _while(_: _Trace, instruction: Instruction, index: ShapeIndex) -> _Parts:
    yield instruction.operands[0], index
    yield instruction.computation("body").root, index


def _conditional(_: _Trace, instruction: Instruction, index: ShapeIndex) -> _Parts:
    for branch in instruction.called:
        yield branch.root, index


def _parameter(trace: _Trace, instruction: Instruction, index: ShapeIndex) -> _Parts:
    """The arguments of all callers; in a loop also what the body returns."""
    computation = trace.owners[instruction]
    number = instruction.parameter_number or 0
    for caller in trace.callers[computation]:
        if caller.opcode == "while":
            yield from _while(trace, caller, index)
        elif caller.opcode == "conditional":
            for position, branch in enumerate(caller.called, 1):
                if branch is computation:
                    yield caller.operands[position], index
        else:
            yield caller.operands[number], index


_Route: TypeAlias = Callable[[_Trace, Instruction, ShapeIndex], _Parts]

_ROUTES: dict[str, _Route] = {
    "tuple": _tuple,
    "get-tuple-element": _get_tuple_element,
    "add-dependency": _identity,
    "domain": _identity,
    "opt-barrier": _identity,
    "all-gather": _elementwise_tuple,
    "all-reduce": _elementwise_tuple,
    "all-to-all": _elementwise_tuple,
    "collective-broadcast": _elementwise_tuple,
    "collective-permute": _elementwise_tuple,
    "sort": _elementwise_tuple,
    "call": _call,
    "fusion": _call,
    "async-done": _async_done,
    "while": _while,
    "conditional": _conditional,
    "parameter": _parameter,
}
