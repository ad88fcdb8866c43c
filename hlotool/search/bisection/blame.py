"""Which operations of a program make a result differ from that of the program it was made from.

Both programs were executed on the same inputs and traced. From the differing outputs the two are followed
back together: where both sides do the same operation on operands of which one differs already, the operand is
to blame; where all operands agree, the operation is; where the operations differ, everything is to blame that
lies between this point and values that both programs have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from hlotool.ir.module import Computation, Instruction
from hlotool.ir.types import ArrayShape, ShapeIndex
from hlotool.search.bisection.distance import distance, rounding_error
from hlotool.search.bisection.trace import Frame, Node, operand_nodes, resolve

#: Arrays with fewer elements are equal by chance too often to be the same value for that.
_TELLING_SIZE = 8

#: The part of the observed difference that an operand must show to be to blame for it.
_SHARE = 1 / 8

#: Operations of the right program that are kept to show what a pass was given, even where it kept a value.
_OWN_WAY = 24

_Name: TypeAlias = tuple[str, str, tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Blame:
    """The spot where two programs part.

    Attributes:
        before: the value in the one program.
        after: what stands for it in the other one, and differs.
        members_before: the operations that make `before` of the inputs, operands first; `before` is the last.
        members_after: likewise for `after`.
        inputs: values that both programs have: in the one, in the other, or both.
    """

    before: Node
    after: Node
    members_before: tuple[Node, ...]
    members_after: tuple[Node, ...]
    inputs: tuple[tuple[Node | None, Node | None], ...]


def find_blame(before: Frame, after: Frame, output: ShapeIndex) -> Blame:
    """Follow the leaf `output` of both results back to where they part.

    Args:
        before: the trace of the program that is right.
        after: the trace of the program that is wrong.
        output: a leaf of the result that differs.
    """
    one = resolve(before, before.computation.root, output)
    other = resolve(after, after.computation.root, output)
    search = _Search(before, after, distance(one.value, other.value))
    return search.follow(one, other)


@dataclass(slots=True)
class _Search:
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

    def follow(self, one: Node, other: Node) -> Blame:
        """Go back until nothing before the pair differs."""
        visited = set()
        while (one, other) not in visited:
            visited.add((one, other))
            pair = _loop_conditions(one, other) or self._guilty_operands(one, other)
            if pair is not None:
                one, other = pair
                continue
            blame = self._region(one, other)
            if isinstance(blame, Blame):
                return blame
            one, other = blame
        return Blame(one, other, (one,), (other,), tuple((n, None) for n in operand_nodes(one)))

    def _guilty_operands(self, one: Node, other: Node) -> tuple[Node, Node] | None:
        """The operands that are furthest apart, where both sides do the same to operands of equal shapes."""
        if one.instruction.opcode != other.instruction.opcode:
            return None
        left, right = operand_nodes(one), operand_nodes(other)
        if len(left) != len(right) or any(a.array.shape != b.array.shape for a, b in zip(left, right)):
            return None
        agreeing = [(a, b) for a in left for b in right if not self.differ(a, b)]
        if {a for a, _ in agreeing} == set(left) and {b for _, b in agreeing} == set(right):
            # The same values in another order: for what does not commute, the order is the fault.
            return None
        guilty = [(a, b) for a, b in zip(left, right) if self.differ(a, b) and not self._is_right(b)]
        return max(guilty, key=lambda pair: distance(pair[0].value, pair[1].value), default=None)

    def _is_right(self, node: Node) -> bool:
        """Whether the right program has the value by that name, too: then whoever reads it reads amiss."""
        twin = self._named_before.get(_name(node))
        return twin is not None and _same_shape(twin, node) and not self.differ(twin, node)

    def _region(self, one: Node, other: Node) -> Blame | tuple[Node, Node]:
        """What lies between a differing pair and agreeing values; or an earlier pair that differs."""
        matches: dict[Node, Node] = {}
        members: list[Node] = []
        for node in _backwards(other, matches):
            if node is not other and node.instruction.opcode != "constant":
                twin = self._named_before.get(_name(node))
                if twin is not None and twin != one and _same_shape(twin, node):
                    if self.differ(twin, node):
                        return twin, node
                    matches[node] = twin
                    continue
                found = self._equal_value(node, one)
                if found is not None:
                    matches[node] = found
                    continue
            members.append(node)
        known = {twin: node for node, twin in matches.items()}
        return self._blame(one, other, members, known)

    def _blame(self, one: Node, other: Node, members: list[Node], known: dict[Node, Node]) -> Blame:
        """Complete the region on the other side."""
        ends = dict(known)
        inside = self._own_way(one, known)
        if inside is None:
            inside = self._until_agreement(one, ends)
        pairs: dict[Node, tuple[Node | None, Node | None]] = {n: (n, twin) for n, twin in ends.items()}
        for node in inside:
            if _is_parameter(node):
                pairs.setdefault(node, (node, None))
        for node in members:
            if _is_parameter(node):
                pairs.setdefault(node, (None, node))
        return Blame(
            one,
            other,
            _operands_first(one, [n for n in inside if not _is_parameter(n)]),
            _operands_first(other, [n for n in members if not _is_parameter(n)]),
            tuple(dict.fromkeys(pairs.values())),
        )

    def _own_way(self, one: Node, known: dict[Node, Node]) -> list[Node] | None:
        """All that makes `one` of known values: the pattern that the pass found; None when it is long."""
        inside: list[Node] = []
        for node in _backwards(one, known):
            if node not in known:
                inside.append(node)
            if len(inside) > _OWN_WAY:
                return None
        return inside

    def _until_agreement(self, one: Node, ends: dict[Node, Node]) -> list[Node]:
        """What makes `one` of values that both programs have; these are added to `ends`."""
        inside: list[Node] = []
        for node in _backwards(one, ends):
            if node in ends:
                continue
            twin = self._named_after.get(_name(node)) if node.instruction.opcode != "constant" else None
            if node is not one and twin and _same_shape(twin, node) and not self.differ(node, twin):
                ends[node] = twin
                continue
            inside.append(node)
        return inside

    def _equal_value(self, node: Node, one: Node) -> Node | None:
        """A value of the right program that is this one; not what is in question itself."""
        array = node.array
        if array.size < _TELLING_SIZE or (array == array.flat[0]).all():
            return None
        for candidate in self._by_shape.get((str(array.dtype), array.shape), ()):
            if candidate != one and not self.differ(candidate, node):
                return candidate
        return None


def _loop_conditions(one: Node, other: Node) -> tuple[Node, Node] | None:
    """Where the two are of different iterations of a loop: the conditions that made one side go on."""
    if one.frame.caller is None or other.frame.caller is None:
        return None
    (left, loop), (right, twin) = one.frame.caller, other.frame.caller
    counts = len(left.bodies.get(loop, ())), len(right.bodies.get(twin, ()))
    is_same = loop.opcode == "while" and (loop.name, loop.opcode) == (twin.name, twin.opcode)
    if not is_same or counts[0] == counts[1] or one.frame.iteration == other.frame.iteration:
        return None
    conditions = [
        [f for f in frame.callees[i] if f.computation is i.attributes["condition"]]
        for frame, i in ((left, loop), (right, twin))
    ]
    decisive = min(counts)
    if any(len(frames) <= decisive for frames in conditions):
        return None
    first, second = (frames[decisive] for frames in conditions)
    return resolve(first, first.computation.root), resolve(second, second.computation.root)


def _nodes(frame: Frame) -> Iterator[Node]:
    """Every array that was computed, and the parameters of the entry."""
    stack = [frame]
    while stack:
        current = stack.pop()
        if current.caller is None:
            stack_parameters = (p for p in current.computation.parameters)
            yield from (Node(current, p) for p in stack_parameters if isinstance(p.shape, ArrayShape))
        for instruction in current.values:
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


def _same_shape(one: Node, other: Node) -> bool:
    a, b = one.array, other.array
    return bool(a.shape == b.shape and a.dtype == b.dtype)


def _is_parameter(node: Node) -> bool:
    return node.instruction.opcode == "parameter"


def _backwards(root: Node, ends: dict[Node, Node]) -> Iterator[Node]:
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


def _operands_first(root: Node, members: Iterable[Node]) -> tuple[Node, ...]:
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


def embedded_difference(one: Instruction, other: Instruction) -> Instruction | None:
    """The first instruction of a scalar computation of `other` that is not as in `one`; None if all are."""
    for left, right in zip(one.called, other.called):
        found = _computation_difference(left, right)
        if found is not None:
            return found
    return None


def _computation_difference(left: Computation, right: Computation) -> Instruction | None:
    for a, b in zip(left.instructions, right.instructions):
        if a.opcode != b.opcode or _operand_positions(left, a) != _operand_positions(right, b):
            return b
        if a.literal is not None and b.literal is not None:
            same: Callable[..., bool] = np.array_equal
            if not same(a.literal.array, b.literal.array):
                return b
    return None if len(left.instructions) == len(right.instructions) else right.root


def _operand_positions(computation: Computation, instruction: Instruction) -> list[int]:
    return [computation.instructions.index(o) for o in instruction.operands]
