"""How much speaks for one instruction being the other, as a sum of points.

The points are weights of evidence, chosen so that no single accident is enough: equal opcode and shape (or
an equal name) alone stay below `ENOUGH`; with equal metadata, or with a matched neighbour, they reach it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hlotool.alignment.fingerprints import Fingerprints, Table, fingerprints
from hlotool.alignment.graph import Graph
from hlotool.ir.attributes import Metadata
from hlotool.ir.module import Instruction, Module
from hlotool.ir.source_position import SourcePosition, source_position
from hlotool.ir.types import ArrayShape, Shape

#: Points that a pair needs to be matched.
ENOUGH = 8.0

#: It computes the same from the same inputs.
SAME_VALUE = 8.0
#: The same is computed from it.
SAME_CONTEXT = 6.0
#: Opcode, shape, attributes and literal are the same.
SAME_LABEL = 4.0
#: Without that: only the opcode, only the shape, only the number of elements or of dimensions.
SAME_OPCODE, SAME_SHAPE, SAME_SIZE = 2.5, 2.5, 1.0
#: The frontend's name path: the same, the same but for callers in front, only its last part.
SAME_PATH, SAME_ENDING, SAME_TAIL = 4.0, 3.0, 1.0
#: Both have one, and not even the last parts are the same.
OTHER_TAIL = -3.0
#: The same line of the user's program.
SAME_LINE = 1.0
#: The compiler keeps names of what it does not touch, and gives the names of what it drops to others.
SAME_NAME = 1.5
#: The recorded values have the same bits.
SAME_BITS = 6.0
#: Values of no more elements than this may be equal by accident.
FEW = 8
#: All operands (all users) are matched with each other; some of them: a part of it.
MATCHED_NEIGHBOURS = 6.0
#: All operands (all users) are matched with others.
STRANGE_NEIGHBOURS = -3.0

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
        bits: hash of the recorded value, where there is one.
    """

    graph: Graph
    prints: Fingerprints
    traits: Mapping[Instruction, Traits]
    bits: Mapping[Instruction, str] = field(default_factory=dict)


def side_of(module: Module, table: Table, bits: Mapping[Instruction, str] | None = None) -> Side:
    """Everything that matching needs to know of a program."""
    graph = Graph(module)
    traits = {i: _traits(i, graph) for i in graph.home}
    return Side(graph, fingerprints(graph, table), traits, bits or {})


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
    points = 0.0
    if left.prints.values[one] == right.prints.values[other]:
        points += SAME_VALUE
    context = left.prints.contexts.get(one)
    if context is not None and context == right.prints.contexts.get(other):
        points += SAME_CONTEXT
    points += _label_points(left, right, one, other)
    points += _origin_points(left.traits[one], right.traits[other])
    if one.name == other.name:
        points += SAME_NAME
    if _same_bits(left, right, one, other):
        points += SAME_BITS
    return max(points, 0.0)


def _same_bits(left: Side, right: Side, one: Instruction, other: Instruction) -> bool:
    """Whether recorded values are equal, and of so many elements that this is no accident."""
    bits, size = left.bits.get(one), left.traits[one].size
    return bits is not None and size is not None and size > FEW and bits == right.bits.get(other)


def _can_be(left: Side, right: Side, one: Instruction, other: Instruction) -> bool:
    """Whether the two can stand for each other at all."""
    if one.opcode == other.opcode:
        return True
    if one.opcode in _SOURCES or other.opcode in _SOURCES:
        return _same_bits(left, right, one, other)
    first, second = left.traits[one], right.traits[other]
    if first.size is not None and first.size == second.size:
        return True
    return _path_points(first, second) >= SAME_ENDING and _is_part(one.shape, other.shape)


def _is_part(one: Shape, other: Shape) -> bool:
    """Whether one may be what a device holds of the other."""
    if not isinstance(one, ArrayShape) or not isinstance(other, ArrayShape):
        return False
    return one.element_type is other.element_type and one.rank == other.rank


def _label_points(left: Side, right: Side, one: Instruction, other: Instruction) -> float:
    if left.prints.labels[one] == right.prints.labels[other]:
        return SAME_LABEL
    points = SAME_OPCODE if one.opcode == other.opcode else 0.0
    first, second = one.shape, other.shape
    if isinstance(first, ArrayShape) and isinstance(second, ArrayShape):
        if first.element_type is second.element_type and first.dims == second.dims:
            return points + SAME_SHAPE
        return points + (SAME_SIZE if first.size == second.size or _is_part(first, second) else 0.0)
    return points + (SAME_SHAPE if type(first) is type(second) else 0.0)


def _origin_points(one: Traits, other: Traits) -> float:
    points = SAME_LINE if one.position is not None and one.position == other.position else 0.0
    return points + _path_points(one, other)


def _path_points(one: Traits, other: Traits) -> float:
    if not one.path or not other.path:
        return 0.0
    if one.path == other.path:
        return SAME_PATH
    if one.path.endswith("/" + other.path) or other.path.endswith("/" + one.path):
        return SAME_ENDING
    return SAME_TAIL if one.tail == other.tail else OTHER_TAIL
