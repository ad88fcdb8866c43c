"""How much speaks for one instruction being another, as a sum of points over two data-flow graphs.

Before optimisation a value is computed in a called function, afterwards in a fusion; the graph shows both
in the same way. What is looked through (`is_transparent`) has the value of something else: a call or fusion
that is the only caller of its computation, the parameters of that computation, an element of a tuple that
was just made. All other instructions are the graph's nodes.

Fingerprints of what a node computes, and of what is computed from it, are made by hash-consing: a table
gives each new combination of parts the next number. There are no collisions, and the numbers of all graphs
that share a table can be compared.

The points are weights of evidence, so that no single accident is enough: equal opcode and shape (or an
equal name) alone stay below `ENOUGH`; with equal metadata, or with a matched neighbour, they reach it. They
were calibrated on the corpus: 114 programs before and after optimisation, executed on the same inputs,
where a pair is right when its values agree, and 680 pairs of neighbouring passes, where what keeps its name
and opcode must be paired with itself. `benchmarks/blame/alignment.py` measures what happens without each,
with half of it and with twice as much; the table is in benchmarks/results/blame.md, "Alignment". What changed
nothing, or nothing for the better (equal values, equal users, equal last parts of paths), has no points.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property

from msgspec import Struct, field

from hlotool.facts.flow import CallGraph, Part, handed_on
from hlotool.ir.attributes import EmbeddedLiteral, Metadata
from hlotool.ir.module import Instruction, Module, computations_in
from hlotool.ir.printed_annotations import SourcePosition, source_position
from hlotool.ir.types import ArrayShape, Shape, ShapeIndex, strip_layouts
from hlotool.ir.walk import post_order

#: Points that a pair needs to be matched. Without, every fifth pair is wrong instead of every seventh; with
#: twice as many hundreds of right pairs are lost.
ENOUGH = 8.0

#: Opcode, shape, attributes and literal are the same: enough where neither paths nor neighbours contradict.
#: Without it a third of the right pairs is lost.
SAME_LABEL = 8.0
#: Without that: only the opcode, only the shape. With twice as much strangers are paired; without the
#: shape 150 right pairs are lost.
SAME_OPCODE, SAME_SHAPE = 2.5, 2.5
#: The frontend's name path: the same, or the same but for callers in front. They find what was rewritten;
#: without the second 55 right pairs are lost, and as many wrong ones.
SAME_PATH, SAME_ENDING = 4.0, 3.0
#: Both have a path, and not even the last parts are the same. Without it a quarter more pairs are wrong.
OTHER_TAIL = -3.0
#: The same line of the user's program: decides between equals, and is less than half of any path.
SAME_LINE = 1.0
#: The compiler keeps names of what it does not touch, and gives the names of what it drops to others: it
#: decides between equals, too. From pass to pass twice as many are strangers without it.
SAME_NAME = 1.5
#: All operands (all users) are matched with each other; some of them: a part of it. Not enough alone, so that
#: one wrong pair does not pull in its whole neighbourhood.
MATCHED_NEIGHBOURS = 6.0
#: All operands (all users) are matched with others.
STRANGE_NEIGHBOURS = -3.0


_WHOLE: ShapeIndex = ()


class Use(Struct, frozen=True):
    """Where a value is read.

    Attributes:
        user: the reader.
        position: which operand; a negative one means that the value is the result of a computation that
            `user` calls: -1 for the first, -2 for the second.
    """

    user: Instruction
    position: int


class View(Struct, frozen=True):
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
        """All but what is looked through, including tuples that are read only through their elements."""
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


class Table(Struct):
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


class Fingerprints(Struct, frozen=True):
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


_SOURCES = frozenset({"parameter", "constant"})


class Traits(Struct, frozen=True):
    """What an instruction says about itself, besides its fingerprints.

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


class Side(Struct, frozen=True):
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
        total += SAME_NAME
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
    return _path_points(first, second) >= SAME_ENDING and _is_part(one.shape, other.shape)


def _is_part(one: Shape, other: Shape) -> bool:
    """Whether one may be what a device holds of the other."""
    if not isinstance(one, ArrayShape) or not isinstance(other, ArrayShape):
        return False
    return one.element_type is other.element_type and one.rank == other.rank


def _label_points(left: Side, right: Side, one: Instruction, other: Instruction) -> float:
    if left.prints.labels[one] == right.prints.labels[other]:
        return SAME_LABEL
    own = SAME_OPCODE if one.opcode == other.opcode else 0.0
    return own + _shape_points(one.shape, other.shape)


def _shape_points(one: Shape, other: Shape) -> float:
    if not isinstance(one, ArrayShape) or not isinstance(other, ArrayShape):
        return SAME_SHAPE if type(one) is type(other) else 0.0
    return SAME_SHAPE if (one.element_type, one.dims) == (other.element_type, other.dims) else 0.0


def _origin_points(one: Traits, other: Traits) -> float:
    line = SAME_LINE if one.position is not None and one.position == other.position else 0.0
    return line + _path_points(one, other)


def _path_points(one: Traits, other: Traits) -> float:
    if not one.path or not other.path:
        return 0.0
    if one.path == other.path:
        return SAME_PATH
    if one.path.endswith("/" + other.path) or other.path.endswith("/" + one.path):
        return SAME_ENDING
    return 0.0 if one.tail == other.tail else OTHER_TAIL
