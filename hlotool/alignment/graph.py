"""A program as one data-flow graph: calls, fusions and tuples in between are looked through.

Before optimisation a value is computed in a called function, afterwards in a fusion; the graph shows both in
the same way. What is looked through (`is_transparent`) has the value of something else: a call or fusion that
is the only caller of its computation, the parameters of that computation, an element of a tuple that was just
made. All other instructions are the graph's nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from hlotool.analysis.calls import CallGraph
from hlotool.analysis.flow import Part, handed_on
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ShapeIndex

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


class Graph(CallGraph):
    """The instructions that the entry reaches, with their operands and users as seen through calls.

    Attributes:
        position: number of each instruction in textual order, computations in the order of `computations`.
        nodes: instructions whose value is no other's.
        operands: of each node, as nodes.
        users: of each node, as nodes.
    """

    def __init__(self, module: Module) -> None:
        super().__init__(module)
        self.position = {i: n for n, i in enumerate(self.home)}
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
        while (following := self._step(place)) is not None:
            place = following
            if not place[1]:
                node = place[0]
        self._resolved[instruction] = node
        return node

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

    def _step(self, part: Part) -> Part | None:
        """One step towards the origin of a value; None at a node."""
        found = list(handed_on(part, self))
        if len(found) != 1:
            return None
        (instruction, _), (origin, _) = part, found[0]
        if self.home[origin] is self.home[instruction]:
            return found[0]
        callee = self.home[instruction if instruction.opcode == "parameter" else origin]
        call = self.only_caller(callee)
        return None if call is None or call.opcode == "conditional" else found[0]

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
