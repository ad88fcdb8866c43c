"""Which operations of a program make a result differ from that of the program it was made from.

Both programs were executed on the same inputs and traced. From the differing outputs the two are followed
back together: where both sides do the same operation on operands of which one differs already, the operand is
to blame; where all operands agree, the operation is; where an operand is right but not the one that should be
read, whatever hands it on is (a tuple, the end of a loop, a branch); where the operations differ, everything
is to blame that lies between this point and values that both programs have.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from hlotool.ir.module import Instruction
from hlotool.ir.types import ShapeIndex
from hlotool.ir.walk import branches
from hlotool.search.bisection.distance import distance
from hlotool.search.bisection.embedded import same_operation
from hlotool.search.bisection.matching import Matching, backwards, is_parameter, operands_first
from hlotool.search.bisection.trace import (
    Frame,
    Node,
    branch_frame,
    chain,
    operand_nodes,
    operand_uses,
    resolve,
)

#: Operations of the right program that are kept to show what a pass was given, even where it kept a value.
_OWN_WAY = 24

_Pair: TypeAlias = tuple[Node, Node]


@dataclass(frozen=True, slots=True)
class Blame:
    """The spot where two programs part.

    Attributes:
        before: the value in the one program.
        after: what stands for it in the other one, and differs.
        members_before: the operations that make `before` of the inputs, operands first; `before` is the last.
        members_after: likewise for `after`.
        inputs: values that both programs have: in the one, in the other, or both.
        wiring: what hands on the wrong one of right values; None when a value is wrong.
    """

    before: Node
    after: Node
    members_before: tuple[Node, ...]
    members_after: tuple[Node, ...]
    inputs: tuple[tuple[Node | None, Node | None], ...]
    wiring: Node | None = None


def find_blame(before: Frame, after: Frame, output: ShapeIndex) -> Blame:
    """Follow the leaf `output` of both results back to where they part.

    Args:
        before: the trace of the program that is right.
        after: the trace of the program that is wrong.
        output: a leaf of the result that differs.
    """
    one = Node(before, before.computation.root, output)
    other = Node(after, after.computation.root, output)
    seen = distance(_made(one).value, _made(other).value)
    return _Search(Matching(before, after, seen)).follow(one, other)


def _made(use: Node) -> Node:
    return resolve(use.frame, use.instruction, use.index)


@dataclass(frozen=True, slots=True)
class _Search:
    matching: Matching

    def follow(self, one: Node, other: Node) -> Blame:
        """Go back from what is read until nothing before it differs."""
        visited: set[_Pair] = set()
        while (one, other) not in visited:
            visited.add((one, other))
            found = self._control(one, other) or self._wiring(one, other)
            if found is None:
                made = _made(one), _made(other)
                found = self._guilty_operands(*made) or self._region(*made)
            if isinstance(found, Blame):
                return found
            one, other = found
        left, right = _made(one), _made(other)
        return Blame(left, right, (left,), (right,), tuple((n, None) for n in operand_nodes(left)))

    def _control(self, one: Node, other: Node) -> _Pair | None:
        """The conditions of a loop that ends at different iterations, or the selectors of another branch."""
        for left, right in zip(_control_flow(one), _control_flow(other)):
            a, b = left.instruction, right.instruction
            if a.opcode != b.opcode:
                return None
            if a.opcode == "while" and (pair := _decisive_conditions(left.frame, a, right.frame, b)):
                return pair
            if a.opcode == "conditional" and _branch_number(left.frame, a) != _branch_number(right.frame, b):
                return Node(left.frame, a.operands[0]), Node(right.frame, b.operands[0])
        return None

    def _wiring(self, one: Node, other: Node) -> Blame | None:
        """What hands on a right value instead of the one that should be read."""
        left, right = _made(one), _made(other)
        if not self.matching.differ(left, right):
            return None
        common = {_step_name(step) for step in chain(*_parts(one))}
        # Passes add calls and tuples on the way: what counts is the last step that both sides take.
        steps = list(chain(*_parts(other)))
        shared = [s for s in steps[:-1] if _step_name(s) in common]
        leaves_frame = bool(shared) and _is_around(right.frame, shared[-1].frame)
        is_right = self.matching.is_right(right) or (leaves_frame and self.matching.has_alike(right))
        if not shared or not is_right:
            return None
        last = shared[-1]
        if last.instruction.opcode == "while" and last != steps[-2]:
            # Both go round equally often: what the body hands on is another matter.
            last = steps[steps.index(last) + 1]
        twin = self.matching.twin_before(right)
        return Blame(left, right, (), (), ((left, None), (twin, right)), _caller_of_parameter(last))

    def _guilty_operands(self, one: Node, other: Node) -> _Pair | Blame | None:
        """The operands that are furthest apart, where both sides do the same to operands of equal shapes."""
        if one.instruction.opcode != other.instruction.opcode:
            return None
        uses = list(zip(operand_uses(one), operand_uses(other)))
        left, right = operand_nodes(one), operand_nodes(other)
        if len(left) != len(right) or any(a.array.shape != b.array.shape for a, b in zip(left, right)):
            return None
        differ = self.matching.differ
        agreeing = [(a, b) for a in left for b in right if not differ(a, b)]
        is_reordered = any(differ(a, b) for a, b in zip(left, right))
        if is_reordered and {a for a, _ in agreeing} == set(left) and {b for _, b in agreeing} == set(right):
            # The same values in another order: for what does not commute, the order is the fault.
            return None
        apart = {use: distance(a.value, b.value) for use, a, b in zip(uses, left, right) if differ(a, b)}
        wrong = [use for use in apart if not self.matching.is_right(_made(use[1])) or self._control(*use)]
        if wrong:
            return max(wrong, key=apart.__getitem__)
        if apart or not same_operation(one.instruction, other.instruction):
            return next(filter(None, (self._wiring(*use) for use in apart)), None)
        # The same operation gives something else only of something else, however near it is.
        near = {use: distance(a.value, b.value) for use, a, b in zip(uses, left, right)}
        nearest = max(near, key=near.__getitem__, default=None)
        return nearest if nearest is not None and near[nearest] > 0 else None

    def _region(self, one: Node, other: Node) -> Blame | _Pair:
        """What lies between a differing pair and agreeing values; or an earlier pair that differs."""
        matching = self.matching
        matches: dict[Node, Node] = {}
        members: list[Node] = []
        for node in backwards(other, matches):
            if node is not other and node.instruction.opcode != "constant":
                twin = matching.twin_before(node)
                if twin is not None and twin != one:
                    if matching.differ(twin, node):
                        return twin, node
                    matches[node] = twin
                    continue
                found = matching.equal_value(node, one)
                if found is not None:
                    matches[node] = found
                    continue
            members.append(node)
        return self._blame(one, other, members, matches)

    def _blame(self, one: Node, other: Node, members: list[Node], matches: dict[Node, Node]) -> Blame:
        """Complete the region on the other side."""
        ends = {twin: node for node, twin in reversed(matches.items())}
        # Several values of the one side may be the same value of the other.
        pairs: list[tuple[Node | None, Node | None]] = [
            (twin if ends[twin] == node else None, node) for node, twin in matches.items()
        ]
        known = len(ends)
        inside = _own_way(one, ends)
        if inside is None:
            inside = self._until_agreement(one, ends)
        pairs += list(ends.items())[known:]
        pairs += [(node, None) for node in inside if is_parameter(node)]
        pairs += [(None, node) for node in members if is_parameter(node)]
        return Blame(
            one,
            other,
            operands_first(one, [n for n in inside if not is_parameter(n)]),
            operands_first(other, [n for n in members if not is_parameter(n)]),
            tuple(dict.fromkeys(pairs)),
        )

    def _until_agreement(self, one: Node, ends: dict[Node, Node]) -> list[Node]:
        """What makes `one` of values that both programs have; these are added to `ends`."""
        inside: list[Node] = []
        for node in backwards(one, ends):
            if node in ends:
                continue
            twin = self.matching.twin_after(node) if node.instruction.opcode != "constant" else None
            if node is not one and twin is not None and not self.matching.differ(node, twin):
                ends[node] = twin
                continue
            inside.append(node)
        return inside


def _parts(use: Node) -> tuple[Frame, Instruction, ShapeIndex]:
    return use.frame, use.instruction, use.index


def _control_flow(use: Node) -> Iterator[Node]:
    """The loops and branches that hand a value on, from the reader's side."""
    return (s for s in chain(*_parts(use)) if s.instruction.opcode in ("while", "conditional"))


def _step_name(step: Node) -> tuple[str, ShapeIndex, int]:
    return step.instruction.name, step.index, step.frame.iteration


def _is_around(outer: Frame, inner: Frame) -> bool:
    """Whether `inner` was called, directly or not, from `outer`."""
    while inner.caller is not None:
        inner = inner.caller[0]
        if inner is outer:
            return True
    return False


def _caller_of_parameter(step: Node) -> Node:
    """The call that gives a parameter its value; any other step itself."""
    if step.instruction.opcode != "parameter" or step.frame.caller is None:
        return step
    return Node(*step.frame.caller)


def _branch_number(frame: Frame, conditional: Instruction) -> int:
    return branches(conditional).index(branch_frame(frame, conditional).computation)


def _decisive_conditions(left: Frame, loop: Instruction, right: Frame, twin: Instruction) -> _Pair | None:
    """The conditions of one loop at the iteration at which only one side went on; None when both did."""
    counts = [len(frame.bodies.get(i, ())) for frame, i in ((left, loop), (right, twin))]
    frames = [
        [f for f in frame.callees.get(i, ()) if f.computation is i.attributes["condition"]]
        for frame, i in ((left, loop), (right, twin))
    ]
    decisive = min(counts)
    if counts[0] == counts[1] or any(len(own) <= decisive for own in frames):
        return None
    first, second = (own[decisive] for own in frames)
    return Node(first, first.computation.root), Node(second, second.computation.root)


def _own_way(one: Node, known: dict[Node, Node]) -> list[Node] | None:
    """All that makes `one` of known values: the pattern that the pass found; None when it is long."""
    inside: list[Node] = []
    for node in backwards(one, known):
        if node not in known:
            inside.append(node)
        if len(inside) > _OWN_WAY:
            return None
    return inside
