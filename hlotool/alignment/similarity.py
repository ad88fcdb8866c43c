"""How much speaks for one instruction being the other, as a sum of points.

The points are weights of evidence, so that no single accident is enough: equal opcode and shape (or an equal
name) alone stay below `ENOUGH`; with equal metadata, or with a matched neighbour, they reach it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hlotool.alignment import points
from hlotool.alignment.fingerprints import Fingerprints, Table, fingerprints
from hlotool.alignment.graph import Graph
from hlotool.ir.attributes import Metadata
from hlotool.ir.module import Instruction, Module
from hlotool.ir.source_position import SourcePosition, source_position
from hlotool.ir.types import ArrayShape, Shape

_SOURCES = frozenset({"parameter", "constant"})


@dataclass(frozen=True, slots=True)
class Traits:
    """What an instruction tells about itself, besides its fingerprints.

    Attributes:
        path: the frontend's name path.
        tail: last part of the path.
        position: in the user's program.
        size: number of elements, None for tuples and tokens.
    """

    path: str
    tail: str
    position: SourcePosition | None
    size: int | None


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two programs.

    Attributes:
        graph: its instructions.
        prints: their fingerprints.
        traits: of each instruction.
    """

    graph: Graph
    prints: Fingerprints
    traits: Mapping[Instruction, Traits]


def side_of(module: Module, table: Table) -> Side:
    """Everything that matching needs to know of a program."""
    graph = Graph(module)
    traits = {i: _traits(i, graph) for i in graph.home}
    return Side(graph, fingerprints(graph, table), traits)


def _traits(instruction: Instruction, graph: Graph) -> Traits:
    metadata = instruction.metadata or Metadata()
    path = metadata.op_name
    return Traits(
        path,
        path.rpartition("/")[2],
        source_position(metadata, graph.module.stack_frames),
        _size(instruction.shape),
    )


def _size(shape: Shape) -> int | None:
    return shape.size if isinstance(shape, ArrayShape) else None


def likeness(left: Side, right: Side, one: Instruction, other: Instruction) -> float:
    """Points of the pair, its neighbours not considered; below zero where it cannot be."""
    if not _can_be(left, right, one, other):
        return -1.0
    total = _label_points(left, right, one, other) + _origin_points(left.traits[one], right.traits[other])
    if one.name == other.name:
        total += points.SAME_NAME
    return max(total, 0.0)


def _can_be(left: Side, right: Side, one: Instruction, other: Instruction) -> bool:
    """Whether the two can stand for each other at all."""
    if one.opcode == other.opcode:
        return True
    if one.opcode in _SOURCES or other.opcode in _SOURCES:
        return False
    first, second = left.traits[one], right.traits[other]
    if first.size is not None and first.size == second.size:
        return True
    return _path_points(first, second) >= points.SAME_ENDING and _is_part(one.shape, other.shape)


def _is_part(one: Shape, other: Shape) -> bool:
    """Whether one may be what a device holds of the other."""
    if not isinstance(one, ArrayShape) or not isinstance(other, ArrayShape):
        return False
    return one.element_type is other.element_type and one.rank == other.rank


def _label_points(left: Side, right: Side, one: Instruction, other: Instruction) -> float:
    if left.prints.labels[one] == right.prints.labels[other]:
        return points.SAME_LABEL
    own = points.SAME_OPCODE if one.opcode == other.opcode else 0.0
    return own + _shape_points(one.shape, other.shape)


def _shape_points(one: Shape, other: Shape) -> float:
    if not isinstance(one, ArrayShape) or not isinstance(other, ArrayShape):
        return points.SAME_SHAPE if type(one) is type(other) else 0.0
    return points.SAME_SHAPE if (one.element_type, one.dims) == (other.element_type, other.dims) else 0.0


def _origin_points(one: Traits, other: Traits) -> float:
    line = points.SAME_LINE if one.position is not None and one.position == other.position else 0.0
    return line + _path_points(one, other)


def _path_points(one: Traits, other: Traits) -> float:
    if not one.path or not other.path:
        return 0.0
    if one.path == other.path:
        return points.SAME_PATH
    if one.path.endswith("/" + other.path) or other.path.endswith("/" + one.path):
        return points.SAME_ENDING
    return 0.0 if one.tail == other.tail else points.OTHER_TAIL
