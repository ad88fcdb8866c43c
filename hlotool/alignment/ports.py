"""Where a value, or a part of a tuple, comes from: backwards through calls, loops and branches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from hlotool.alignment.graph import Graph
from hlotool.analysis.flow import Part, handed_on
from hlotool.ir.module import Instruction
from hlotool.ir.types import ShapeIndex

#: A part of a node's value.
Port: TypeAlias = Part


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
        node, _ = port
        handed = list(handed_on(port, self._graph))
        yield from (self.of(*part) for part in handed)
        if node.opcode == "while":
            yield self.of(node.computation("condition").root)
        elif node.opcode == "conditional":
            yield self.of(node.operands[0])
        elif not handed:
            yield from (self.of(operand) for operand in node.operands)
