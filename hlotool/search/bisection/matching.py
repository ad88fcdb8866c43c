"""Values of one program that are those of another: by name, or because they are equal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape
from hlotool.search.bisection.distance import distance, rounding_error
from hlotool.search.bisection.trace import Frame, Node, operand_nodes, resolve

#: Arrays with fewer elements are equal by chance too often to be the same value for that.
_TELLING_SIZE = 8

#: The part of the observed difference that a value must show to be to blame for it.
_SHARE = 1 / 8

_Name: TypeAlias = tuple[str, str, tuple[int, ...], tuple[int, ...]]


@dataclass(slots=True)
class Matching:
    """Two executions.

    Attributes:
        before: of the program that is right.
        after: of the program that is wrong.
        seen: how far their results are apart.
    """

    before: Frame
    after: Frame
    seen: float
    _named_before: dict[_Name, Node] = field(init=False)
    _named_after: dict[_Name, Node] = field(init=False)
    _by_shape: dict[tuple[str, tuple[int, ...]], list[Node]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._named_before = {_name(n): n for n in _nodes(self.before)}
        self._named_after = {_name(n): n for n in _nodes(self.after)}
        for node in self._named_before.values():
            array = node.array
            if array.size >= _TELLING_SIZE:
                self._by_shape.setdefault((str(array.dtype), array.shape), []).append(node)

    def differ(self, one: Node, other: Node) -> bool:
        """Whether two values are further apart than rounding can put them."""
        apart = distance(one.value, other.value)
        return apart > min(rounding_error(one.value), self.seen * _SHARE)

    def twin_before(self, node: Node) -> Node | None:
        """What the right program computed under the same name, in the same iteration, of the same shape."""
        return _fitting(self._named_before.get(_name(node)), node)

    def twin_after(self, node: Node) -> Node | None:
        """Likewise of the wrong program."""
        return _fitting(self._named_after.get(_name(node)), node)

    def is_right(self, node: Node) -> bool:
        """Whether the right program has this value of the wrong one under the same name."""
        twin = self.twin_before(node)
        return twin is not None and not self.differ(twin, node)

    def has_alike(self, node: Node) -> bool:
        """Whether an operation of the same kind gives this value in the right program, under any name."""
        same = self._by_shape.get((str(node.array.dtype), node.array.shape), ())
        alike = (other for other in same if other.instruction.opcode == node.instruction.opcode)
        return any(not self.differ(other, node) for other in alike)

    def equal_value(self, node: Node, but: Node) -> Node | None:
        """A value of the right program that is this one of the wrong one by its content, and is not `but`."""
        array = node.array
        if array.size < _TELLING_SIZE or (array == array.flat[0]).all():
            return None
        for candidate in self._by_shape.get((str(array.dtype), array.shape), ()):
            if candidate != but and not self.differ(candidate, node):
                return candidate
        return None


def _fitting(twin: Node | None, node: Node) -> Node | None:
    return twin if twin is not None and same_shape(twin, node) else None


def _nodes(frame: Frame) -> Iterator[Node]:
    """Every array that was computed, and the parameters of the entry."""
    stack = [frame]
    while stack:
        current = stack.pop()
        if current.caller is None:
            stack_parameters = (p for p in current.computation.parameters)
            yield from (Node(current, p) for p in stack_parameters if isinstance(p.shape, ArrayShape))
        constants = (i for i in current.computation.instructions if i.literal is not None)
        for instruction in (*current.values, *constants):
            if isinstance(instruction.shape, ArrayShape) and not _hands_on(instruction, current):
                yield Node(current, instruction)
        stack += [callee for callees in current.callees.values() for callee in callees]


def _hands_on(instruction: Instruction, frame: Frame) -> bool:
    return resolve(frame, instruction) != Node(frame, instruction)


def _name(node: Node) -> _Name:
    """What tells the same operation in another version of the program: its name, and which iteration."""
    iterations = []
    frame = node.frame
    while frame.caller is not None:
        frame_of_caller, caller = frame.caller
        if caller.opcode == "while":
            iterations.append(frame.iteration)
        frame = frame_of_caller
    if node.instruction.opcode == "parameter":
        return str(node.instruction.parameter_number), "parameter", (), node.index
    return node.instruction.name, node.instruction.opcode, tuple(iterations), node.index


def same_shape(one: Node, other: Node) -> bool:
    """Whether two arrays have the same dimensions and type."""
    a, b = one.array, other.array
    return bool(a.shape == b.shape and a.dtype == b.dtype)


def is_parameter(node: Node) -> bool:
    """Whether it is an argument of the whole program."""
    return node.instruction.opcode == "parameter"


def backwards(root: Node, ends: dict[Node, Node]) -> Iterator[Node]:
    """`root` and what it needs, breadth first; not beyond what is in `ends` once it was yielded."""
    queue = [root]
    seen = {root}
    for node in queue:
        yield node
        if node in ends:
            continue
        for operand in operand_nodes(node):
            if operand not in seen:
                seen.add(operand)
                queue.append(operand)


def operands_first(root: Node, members: Iterable[Node]) -> tuple[Node, ...]:
    """The members in an order of execution; `root` is the last."""
    inside = set(members)
    order: dict[Node, None] = {}
    stack = [root]
    while stack:
        node = stack[-1]
        waiting = [o for o in operand_nodes(node) if o in inside and o not in order]
        if waiting:
            stack += waiting
        else:
            order.setdefault(stack.pop())
    return tuple(order)
