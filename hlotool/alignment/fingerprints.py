"""What a node computes, and what is computed from it, as numbers that are equal only where the two are equal.

Both are made by hash-consing: a table gives each new combination of parts the next number. There are no
collisions, and the numbers of all graphs that share a table can be compared.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

from hlotool.alignment.graph import Graph
from hlotool.ir.attributes import EmbeddedLiteral
from hlotool.ir.module import Instruction, computations_in
from hlotool.ir.types import Shape, strip_layouts
from hlotool.ir.walk import post_order

#: Attributes that say how, where or by whom, not what is computed.
ANNOTATIONS = frozenset(
    {
        "backend_config",
        "frontend_attributes",
        "metadata",
        "origin",
        "sharding",
        "statistics",
        "control-predecessors",
    }
)


@dataclass(slots=True)
class Table:
    """Numbers of combinations, and what has been worked out once for values that instructions share."""

    _numbers: dict[Hashable, int] = field(default_factory=dict)
    _shapes: dict[int, tuple[Shape, int]] = field(default_factory=dict)

    def number(self, key: Hashable) -> int:
        """The number of `key`; a new one where it was never seen."""
        return self._numbers.setdefault(key, len(self._numbers))

    def logical(self, shape: Shape) -> int:
        """The number of a shape without its layouts."""
        known = self._shapes.get(id(shape))
        if known is None:
            known = self._shapes[id(shape)] = shape, self.number(("shape", strip_layouts(shape)))
        return known[1]

    def label(self, instruction: Instruction) -> int:
        """What the instruction says of itself: opcode, shape, attributes, value; no names, no operands."""
        parts: list[Hashable] = [instruction.opcode, self.logical(instruction.shape)]
        parts += [item for name in sorted(instruction.attributes) for item in _item(name, instruction)]
        if instruction.literal is not None:
            parts.append(instruction.literal.key)
        if instruction.parameter_number is not None:
            parts.append(instruction.parameter_number)
        return self.number(tuple(parts))


def _item(name: str, instruction: Instruction) -> Iterable[Hashable]:
    value = instruction.attributes[name]
    if name in ANNOTATIONS or computations_in(value):
        return
    yield name
    yield value.literal.key if isinstance(value, EmbeddedLiteral) else value


@dataclass(frozen=True, slots=True)
class Fingerprints:
    """The numbers of every instruction that a graph reaches, nodes and transparent ones.

    Attributes:
        labels: what each says of itself.
        values: what each computes, from the parameters of its computation or the entry on.
        contexts: what is computed from it and how; of nodes only.
    """

    labels: dict[Instruction, int]
    values: dict[Instruction, int]
    contexts: dict[Instruction, int]


def fingerprints(graph: Graph, table: Table) -> Fingerprints:
    """The fingerprints of a graph; comparable with those of others made with the same table."""
    labels = {i: table.label(i) for i in graph.home}
    order = post_order(graph.home, graph.dependencies)
    values: dict[Instruction, int] = {}
    for instruction in order:
        needed = tuple(values[d] for d in graph.dependencies(instruction))
        transparent = instruction not in graph.operands
        values[instruction] = table.number(("=", *needed) if transparent else (labels[instruction], needed))
    contexts: dict[Instruction, int] = {}
    root = graph.resolve(graph.module.entry.root)
    for node in reversed(order):
        if node in graph.users:
            uses = sorted((contexts[use.user], use.position) for use in graph.users[node])
            contexts[node] = table.number(("context", labels[node], node is root, *uses))
    return Fingerprints(labels, values, contexts)
