"""Which values of an execution are made of which."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from hlotool.inputs.frames import Node, operand_nodes


class Flow:
    """All values of one execution.

    Args:
        nodes: the arrays that were computed.

    Attributes:
        operands: what each was made of.
        readers: what was made of each.
    """

    operands: Mapping[Node, Sequence[Node]]
    readers: Mapping[Node, Sequence[Node]]

    def __init__(self, nodes: Iterable[Node]) -> None:
        self.operands = {node: operand_nodes(node) for node in nodes}
        readers: dict[Node, list[Node]] = {}
        for node, operands in self.operands.items():
            for operand in operands:
                readers.setdefault(operand, []).append(node)
        self.readers = readers

    def beyond(self, node: Node) -> set[Node]:
        """All that a value makes a part of, without itself."""
        found: set[Node] = set()
        queue = [node]
        for each in queue:
            for reader in self.readers.get(each, ()):
                if reader not in found:
                    found.add(reader)
                    queue.append(reader)
        return found

    def reach(self, ends: Sequence[Node]) -> dict[Node, int]:
        """For what some values are made of, these included, which of them: bit n for the nth one."""
        found: dict[Node, int] = {}
        for number, end in enumerate(ends):
            found[end] = found.get(end, 0) | 1 << number
        for node in sorted(self.operands, key=lambda node: -node.order):
            if bits := found.get(node, 0):
                for operand in self.operands[node]:
                    found[operand] = found.get(operand, 0) | bits
        return found
