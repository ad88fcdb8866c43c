"""Where a value, or a part of a tuple, comes from: backwards through calls, loops and branches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from hlotool.alignment.graph import Graph
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.types import ShapeIndex
from hlotool.ir.walk import branches

#: A part of a node's value.
Port: TypeAlias = "tuple[Instruction, ShapeIndex]"


def loop_parts(loop: Instruction) -> tuple[Computation, Computation]:
    """Condition and body of a `while`."""
    condition, body = loop.attributes["condition"], loop.attributes["body"]
    assert isinstance(condition, Computation)
    assert isinstance(body, Computation)
    return condition, body


class Ports:
    """The parts of values of a graph, and what each is computed from.

    Args:
        graph: of a program whose calls are flattened.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._readers: dict[Port, Instruction] = {}
        for node in graph.nodes:
            self._readers.setdefault(graph.part(node, ()), node)

    def of(self, instruction: Instruction, index: ShapeIndex = ()) -> Port:
        """The port that a part of an instruction's value is, seen through calls and tuples."""
        return self._graph.part(instruction, index)

    def node(self, port: Port) -> Instruction | None:
        """The node whose value is that of `port`: the producer, or an element taken out of its tuple."""
        return self._readers.get(port) or (port[0] if not port[1] else None)

    def sources(self, port: Port) -> Iterator[Port]:
        """What a port is computed from.

        Args:
            port: of a value.
        """
        node, index = port
        if node.opcode == "while":
            yield from self._loop_sources(node, index)
            yield self.of(loop_parts(node)[0].root)
        elif node.opcode == "parameter":
            yield from self._argument_sources(node, index)
        elif node.opcode == "conditional":
            yield from (self.of(branch.root, index) for branch in branches(node))
            yield self.of(node.operands[0])
        else:
            yield from (self.of(operand) for operand in node.operands)

    def _loop_sources(self, loop: Instruction, index: ShapeIndex) -> Iterator[Port]:
        yield self.of(loop_parts(loop)[1].root, index)
        yield self.of(loop.operands[0], index)

    def _argument_sources(self, parameter: Instruction, index: ShapeIndex) -> Iterator[Port]:
        """Of a loop's state: what the body made of it, and what it began with; of a branch: its operand."""
        home = self._graph.home[parameter]
        call = self._graph.callers.get(home)
        if call is None:
            return
        if call.opcode == "while":
            yield from self._loop_sources(call, index)
        elif call.opcode == "conditional":
            for branch, operand in zip(branches(call), call.operands[1:]):
                if branch is home:
                    yield self.of(operand, index)
