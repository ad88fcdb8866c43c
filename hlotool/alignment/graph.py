"""A program as one data-flow graph: calls, fusions and tuples in between are looked through.

Before optimisation a value is computed in a called function, afterwards in a fusion; the graph shows both in
the same way. What is looked through (`is_transparent`) has the value of something else: a call or fusion that
is the only caller of its computation, the parameters of that computation, an element of a tuple that was just
made. All other instructions are the graph's nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from hlotool.ir.attributes import AttributeValue
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.types import ShapeIndex
from hlotool.ir.walk import Context, call_sites, context_of_callees, reachable

#: Calls whose result is that of the computation, given the operands as its parameters.
INLINED = frozenset({"call", "fusion"})

_WHOLE: ShapeIndex = ()


@dataclass(frozen=True, slots=True)
class Use:
    """Where a value is read.

    Attributes:
        user: the reader.
        position: which operand; a negative one means that the value is the result of a computation that
            `user` calls: -1 for the first, -2 for the second.
    """

    user: Instruction
    position: int


@dataclass(frozen=True, slots=True)
class View:
    """Neighbours of instructions, seen in one way: through calls, or as written.

    Attributes:
        operands: of each instruction.
        users: of each instruction.
    """

    operands: Mapping[Instruction, Sequence[Instruction]]
    users: Mapping[Instruction, Sequence[Use]]


class Graph:
    """The instructions that the entry reaches, with their operands and users as seen through calls.

    Attributes:
        module: the program.
        computations: callees before callers.
        home: the computation that each instruction stands in.
        callers: the call that runs each computation; only those with a single one.
        position: number of each instruction in textual order, computations in the order above.
    """

    def __init__(self, module: Module) -> None:
        self.module = module
        self.computations = reachable(module.entry)
        self.home = {i: c for c in self.computations for i in c.instructions}
        self.position = {i: n for n, i in enumerate(self.home)}
        self.callers = _single_callers(module, set(self.computations))
        self._resolved: dict[Instruction, Instruction] = {}
        self.nodes = self._nodes()
        self.operands = {i: tuple(self.resolve(o) for o in i.operands) for i in self.nodes}
        self.users = _users(self.nodes, self.operands, self.resolve)

    def resolve(self, instruction: Instruction) -> Instruction:
        """The node that computes the value of `instruction`; itself when it is a node."""
        known = self._resolved.get(instruction)
        if known is not None:
            return known
        node, place = instruction, (instruction, _WHOLE)
        while (following := self._step(*place)) is not None:
            place = following
            if not place[1]:
                node = place[0]
        self._resolved[instruction] = node
        return node

    def part(self, instruction: Instruction, index: ShapeIndex) -> tuple[Instruction, ShapeIndex]:
        """Where a part of a value comes from: the node that makes it, and which part of the node's value."""
        place = instruction, index
        while (following := self._step(*place)) is not None:
            place = following
        return place

    def is_transparent(self, instruction: Instruction) -> bool:
        """Whether its value is that of another instruction."""
        return self.resolve(instruction) is not instruction

    def dependencies(self, instruction: Instruction) -> tuple[Instruction, ...]:
        """The nodes that a node is computed from: operands, then results of the computations it calls."""
        if self.is_transparent(instruction):
            return (self.resolve(instruction),)
        operands = tuple(self.resolve(operand) for operand in instruction.operands)
        return operands + tuple(self.resolve(callee.root) for callee in instruction.called)

    def _nodes(self) -> list[Instruction]:
        """All but what is looked through, tuples included that nobody reads but through their elements."""
        found = [i for i in self.home if not self.is_transparent(i)]
        read = {self.resolve(o) for i in found for o in i.operands}
        read |= {self.resolve(callee.root) for i in found for callee in i.called}
        read.add(self.resolve(self.module.entry.root))
        return [i for i in found if i.opcode != "tuple" or i in read]

    def enclosing(self, instruction: Instruction) -> Iterator[Instruction]:
        """The calls around an instruction, innermost first, as far as there is a single one."""
        call = self.callers.get(self.home[instruction])
        while call is not None:
            yield call
            call = self.callers.get(self.home[call])

    def _step(self, instruction: Instruction, index: ShapeIndex) -> tuple[Instruction, ShapeIndex] | None:
        """One step towards the origin of a value; None at a node."""
        opcode = instruction.opcode
        if opcode == "get-tuple-element":
            return instruction.operands[0], (_number(instruction.attributes["index"]), *index)
        if opcode == "tuple" and index:
            return instruction.operands[index[0]], index[1:]
        if opcode == "opt-barrier":
            return instruction.operands[0], index
        if opcode in INLINED or opcode == "async-done":
            start = instruction if opcode in INLINED else _async_start(instruction)
            callee = next(start.called)
            return (callee.root, index) if callee in self.callers else None
        if opcode == "parameter":
            caller = self.callers.get(self.home[instruction])
            if caller is not None and caller.opcode in (*INLINED, "async-start"):
                return caller.operands[instruction.parameter_number or 0], index
        return None

    @cached_property
    def through_calls(self) -> View:
        """The nodes and what they read, wherever that is computed."""
        return View(self.operands, self.users)

    @cached_property
    def as_written(self) -> View:
        """All instructions and their operands as in the text."""
        operands = {i: i.operands for i in self.home}
        return View(operands, _users(self.home, operands, lambda instruction: instruction))


def _users(
    members: Iterable[Instruction],
    operands: Mapping[Instruction, Sequence[Instruction]],
    resolve: Callable[[Instruction], Instruction],
) -> dict[Instruction, list[Use]]:
    found: dict[Instruction, list[Use]] = {i: [] for i in members}
    for user in found:
        for position, operand in enumerate(operands[user]):
            found[operand].append(Use(user, position))
        for number, callee in enumerate(user.called):
            found[resolve(callee.root)].append(Use(user, -1 - number))
    return found


def _async_start(done: Instruction) -> Instruction:
    """What begins the asynchronous call that `done` ends."""
    start = done.operands[0]
    while start.opcode == "async-update":
        start = start.operands[0]
    return start


def _number(value: AttributeValue) -> int:
    assert isinstance(value, int)
    return value


def _single_callers(module: Module, reached: set[Computation]) -> dict[Computation, Instruction]:
    """The call of each computation that runs step by step and is called from one place."""
    found: dict[Computation, Instruction] = {}
    for callee, sites in call_sites(module).items():
        inside = [site.instruction for site in sites if site.caller in reached]
        if len(inside) == 1 and context_of_callees(inside[0]) is not Context.EMBEDDED:
            found[callee] = inside[0]
    return found
