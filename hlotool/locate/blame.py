"""Which operations of a program make a result differ from that of the program it was made from.

Both programs were executed on the same inputs and traced. From the differing outputs the two are followed
back together: where both sides do the same operation on operands of which one differs already, the operand is
to blame; where all operands agree, the operation is; where an operand is right but not the one that should be
read, whatever hands it on is (a tuple, the end of a loop, a branch); where the operations differ, everything
is to blame that lies between this point and values that both programs have.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from itertools import islice
from math import inf
from typing import TypeAlias

from hlotool.ir.types import ShapeIndex
from hlotool.ir.walk import branches
from hlotool.locate.control import (
    behind_forms,
    branch_number,
    caller_of_parameter,
    carried_round,
    control_behind_forms,
    control_flow,
    decisive_conditions,
    depends_on_arguments,
    handed_through,
    is_handed_through,
    skipped_loop,
    step_name,
)
from hlotool.locate.embedded import same_operation
from hlotool.locate.evaluation import Evaluator
from hlotool.locate.frames import (
    Node,
    calls_around,
    chain,
    iteration_of,
    made,
    operand_nodes,
    operand_uses,
)
from hlotool.locate.narrowing import Narrowing, is_constant
from hlotool.locate.pairing import Pairing, backwards, is_parameter, operands_first

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
        amplified: a later pair that differs because a difference as small as rounding grows in it.
    """

    before: Node
    after: Node
    members_before: tuple[Node, ...]
    members_after: tuple[Node, ...]
    inputs: tuple[tuple[Node | None, Node | None], ...]
    wiring: Node | None = None
    amplified: tuple[Node, Node] | None = None


def find_blame(pairing: Pairing, output: ShapeIndex, seconds: float = inf) -> Blame:
    """Follow the leaf `output` of both results back to where they part.

    Args:
        pairing: of the two executions.
        output: a leaf of the result that differs.
        seconds: after which no other value is put to the test.
    """
    one = Node(pairing.before, pairing.before.computation.root, output)
    other = Node(pairing.after, pairing.after.computation.root, output)
    if pairing.after.trace.incomplete and (first := pairing.first_difference()):
        one, other = first
    for each in (pairing, *(pairing.others if pairing.is_far else ())):
        ends = (Node(f, f.computation.root, output) for f in (each.before, each.after))
        each.seen = each.apart(*map(made, ends)) or inf
    return _Search(pairing, Narrowing(pairing, Evaluator(), time.monotonic() + seconds)).follow(one, other)


@dataclass(slots=True)
class _Search:
    pairing: Pairing
    narrowing: Narrowing
    amplified: _Pair | None = None
    reader: _Pair | None = None

    def follow(self, one: Node, other: Node) -> Blame:
        """Go back from what is read until nothing before it differs."""
        visited: set[_Pair] = set()
        found: Blame | _Pair | None = None
        while (one, other) not in visited and not isinstance(found, Blame):
            visited.add((one, other))
            found = self._step(one, other)
            if not isinstance(found, Blame):
                self.reader = made(one), made(other)
                one, other = found
        if not isinstance(found, Blame):
            left, right = made(one), made(other)
            found = Blame(left, right, (left,), (right,), tuple((n, None) for n in operand_nodes(left)))
        return replace(found, amplified=self.amplified)

    def _step(self, one: Node, other: Node) -> Blame | _Pair:
        """What a pair that differs comes from: an earlier pair, or itself."""
        left, right = made(one), made(other)
        return (
            self._earlier(one, other)
            or self._control(one, other)
            or self._other_branch(left, right, other, set())
            or self._wiring(one, other)
            or self._same(left, right)
            or self._fixed(one, other)
            or (self._narrowed(left, right) if self.pairing.is_far else None)
            or self._guilty_operands(left, right)
            or self._region(left, right)
        )

    def _earlier(self, one: Node, other: Node) -> _Pair | None:
        """The first iteration in which a value differs that both sides carry round a loop equally often."""
        for left, right in zip(control_flow(one), control_flow(other)):
            a, b = left.instruction, right.instruction
            if a.opcode != "while" or b.opcode != "while":
                continue
            rounds = left.frame.bodies.get(a, []), right.frame.bodies.get(b, [])
            is_other_part = a.name == b.name and left.index != right.index
            if is_other_part or len(rounds[0]) != len(rounds[1]):
                return None
            for first, second in zip(*(r[:-1] for r in rounds)):
                pair = (
                    Node(first, first.computation.root, left.index),
                    Node(second, second.computation.root, right.index),
                )
                if self.pairing.differ(made(pair[0]), made(pair[1])):
                    return pair
        return None

    def _narrowed(self, one: Node, other: Node) -> _Pair | Blame | None:
        """An earlier value that makes this one right when it is replaced by one of the right program."""
        members, matches = self._members(one, other)
        inside = [m for m in members if not is_parameter(m)]
        for use in (use for member in inside for use in operand_uses(member)):
            if found := self._other_branch(one, other, use, set(inside)):
                return found
        found = self.narrowing.earliest(one, other, inside, matches, self.pairing.candidates(one))
        is_alone = sum(m.instruction.opcode != "constant" for m in inside) <= 1
        if found is None and is_alone and not same_operation(one.instruction, other.instruction):
            return self._blame(one, other, members, matches)
        return found

    def _other_branch(self, one: Node, other: Node, use: Node, inside: set[Node]) -> Blame | _Pair | None:
        """A conditional that took one branch where another one gives the right value.

        Where the right program chooses by another value at this point, that value is the next to look at.
        """
        for step in chain(use):
            conditional = step.instruction
            if conditional.opcode != "conditional":
                continue
            taken = branch_number(step.frame, conditional)
            for number, branch in enumerate(branches(conditional)):
                if number == taken or taken is None:
                    continue
                argument = Node(step.frame, conditional.operands[1 + number])
                value = self.narrowing.evaluator.called(branch, argument)
                for i in step.index:
                    value = value[i] if isinstance(value, tuple) else None
                if value is not None:
                    value = self.narrowing.evaluator.changed(other, made(use), value, inside)
                if value is not None and self.pairing.is_near(value, one):
                    chosen = Node(step.frame, conditional.operands[0])
                    if (right := self._selector(one, step)) and self.pairing.differ(
                        made(right), made(chosen)
                    ):
                        return right, chosen
                    return _handing(one, None, other, step)
        return None

    def _selector(self, one: Node, step: Node) -> Node | None:
        """What the right program chooses one of as many branches by, on the way to a value."""
        count, at = len(branches(step.instruction)), iteration_of(step.frame)
        nearby = islice(backwards(one, {}), _OWN_WAY)
        uses = (use for node in nearby for use in (node, *operand_uses(node)))
        for taken in (each for use in uses for each in chain(use)):
            is_alike = taken.instruction.opcode == "conditional" and iteration_of(taken.frame) == at
            if is_alike and len(branches(taken.instruction)) == count:
                return Node(taken.frame, taken.instruction.operands[0])
        around = reversed(calls_around(one.frame))
        return next((Node(f, call.operands[0]) for f, call in around if call.opcode == "conditional"), None)

    def _handed_on(self, one: Node, other: Node) -> Blame | None:
        """What hands on another value than it should: a loop, or any step where names do not tell."""
        left, right = made(one), made(other)
        alike = self.pairing.equal_value(right, left)
        place = carried_round(one, other)
        if self.pairing.is_far:
            is_like = alike is not None and alike.instruction.opcode == right.instruction.opcode
            tuples = (s for s in chain(other) if is_like and s.instruction.opcode == "tuple")
            place = place or handed_through(other) or next(tuples, None)
        return _handing(left, alike, right, place) if place is not None else None

    def _control(self, one: Node, other: Node) -> _Pair | None:
        """The conditions of a loop that ends at different iterations, or the selectors of another branch."""
        for left, right in zip(control_behind_forms(one), control_behind_forms(other)):
            a, b = left.instruction, right.instruction
            if a.opcode != b.opcode:
                return None
            if a.opcode == "while" and (pair := decisive_conditions(left.frame, a, right.frame, b)):
                return pair
            if a.opcode == "conditional" and branch_number(left.frame, a) != branch_number(right.frame, b):
                return Node(left.frame, a.operands[0]), Node(right.frame, b.operands[0])
        return None

    def _wiring(self, one: Node, other: Node) -> Blame | None:
        """What hands on a right value instead of the one that should be read."""
        left, right = made(one), made(other)
        if not self.pairing.differ(left, right):
            return None
        # Passes add calls and tuples on the way: what counts is the last step that both sides take.
        common = {step_name(step) for step in behind_forms(one)}
        steps = list(chain(other))
        shared = [s for s in steps[:-1] if step_name(s) in common]
        if not shared or not self.pairing.is_right(right):
            return self._handed_on(one, other) if shared or self.pairing.is_far else None
        last = shared[-1]
        following = steps[steps.index(last) + 1 :]
        if last.instruction.opcode == "while" and len(following) > 1:
            # Both go round equally often: what the body hands on is another matter.
            last, *following = following
        if is_handed_through(following):
            last = following[0]
        return _handing(left, self.pairing.twin_before(right), right, caller_of_parameter(last))

    def _miswired(self, apart: list[tuple[_Pair, _Pair]]) -> Blame | None:
        """What hands on one of several operands wrongly, the first such."""
        return next(filter(None, (self._wiring(*use) for use, _ in apart)), None)

    def _fixed(self, one: Node, other: Node) -> Blame | _Pair | None:
        """What puts constants in the place of a value that the right program makes of its arguments.

        No constant can be right there, so these are not to blame: it is what chooses, hands on or reads them.
        """
        left, right = made(one), made(other)
        if not is_constant(right) or not self.pairing.differ(left, right) or not depends_on_arguments(left):
            return None
        for step in control_behind_forms(other):
            if step.instruction.opcode != "conditional":
                continue
            chosen = Node(step.frame, step.instruction.operands[0])
            expected = self._selector(left, step)
            if expected is not None and self.pairing.differ(made(expected), made(chosen)):
                return expected, chosen
        place = skipped_loop(one, other)
        if place is not None:
            return _handing(left, None, right, place)
        if self.reader is None or right not in operand_nodes(self.reader[1]):
            return None
        one, other = self.reader
        members, matches = self._members(one, other)
        return self._blame(one, other, members, matches)

    def _operands(self, one: Node, other: Node) -> list[tuple[_Pair, _Pair]]:
        """What both sides read, as it is read and as it was computed; empty where they are not alike."""
        if one.instruction.opcode != other.instruction.opcode:
            return []
        uses, operands = (list(zip(of(one), of(other))) for of in (operand_uses, operand_nodes))
        is_alike = len(operand_nodes(one)) == len(operand_nodes(other))
        return list(zip(uses, operands)) if is_alike and all(self.pairing.fit(*p) for p in operands) else []

    def _same(self, one: Node, other: Node) -> _Pair | Blame | None:
        """The only operand that differs where both sides do the same; the operation where none does."""
        pairing, pairs = self.pairing, self._operands(one, other)
        left, right = [a for _, (a, _) in pairs], [b for _, (_, b) in pairs]
        apart = [(use, made) for use, made in pairs if not pairing.agree(*made)]
        is_same = same_operation(one.instruction, other.instruction)
        matches = {b: next((a for a in left if pairing.agree(a, b)), None) for b in right}
        is_told = pairs and set(matches.values()) == set(left) and (apart or not is_same)
        if is_told and pairing.differ(one, other):
            # The same values, be it in another order: it is what hands them on, or what is done to them.
            return self._miswired(apart) or self._blame(one, other, [other], matches)
        if not is_same or len(apart) != 1 or not pairing.differ(*apart[0][1]):
            return None
        [((expected, read), (_, maker))] = apart
        # A right value in the wrong place: it is handed there, or read by mistake.
        is_handed = step_name(expected) == step_name(read)
        return (expected, read) if is_handed or not pairing.is_right(maker) else None

    def _guilty_operands(self, one: Node, other: Node) -> _Pair | Blame | None:
        """The operands that are furthest apart, where both sides do the same to operands of equal shapes."""
        differ, pairs = self.pairing.differ, self._operands(one, other)
        far = {use: self.pairing.apart(*made) or 0.0 for use, made in pairs}
        apart = [(use, made) for use, made in pairs if differ(*made)]
        wrong = [use for use, (_, b) in apart if not self.pairing.is_right(b) or self._control(*use)]
        if wrong:
            return max(wrong, key=far.__getitem__)
        if apart or not same_operation(one.instruction, other.instruction):
            return self._miswired(apart)
        # The same operation gives something else only of something else, however near it is.
        furthest = max(far, key=far.__getitem__, default=None)
        if furthest is None or far[furthest] == 0:
            return None
        if self.amplified is None and differ(one, other):
            self.amplified = one, other
        return furthest

    def _region(self, one: Node, other: Node) -> Blame | _Pair:
        """What lies between a differing pair and agreeing values; or an earlier pair that differs."""
        members, matches = self._members(one, other)
        for node in members:
            twin = self.pairing.twin_before(node) if node is not other else None
            # Values that agree may be computed in two ways: what differs before them is no fault.
            is_named = (
                not self.pairing.is_far
                and self.pairing.differ(one, other)
                and node.instruction.opcode != "constant"
                and not (node.is_exact and is_constant(node))
            )
            if is_named and twin is not None and twin != one and self.pairing.differ(twin, node):
                return twin, node
        if not self.pairing.is_far and sum(m.instruction.opcode != "constant" for m in members) > 1:
            found = self._narrowed(one, other)
            if found is not None:
                return found
        return self._blame(one, other, members, matches)

    def _members(self, one: Node, other: Node) -> tuple[list[Node], dict[Node, Node | None]]:
        """What `other` is made of, up to values that both programs have, breadth first; and these."""
        pairing = self.pairing
        matches: dict[Node, Node | None] = {}
        members: list[Node] = []
        for node in backwards(other, matches):
            if node is not other and node.instruction.opcode != "constant":
                twin = pairing.twin_before(node)
                if twin is None or twin == one or not pairing.agree(twin, node):
                    twin = pairing.equal_value(node, one)
                if twin is not None:
                    matches[node] = twin
                    continue
                if pairing.has_bits(node, one):
                    matches[node] = None
                    continue
            members.append(node)
        return members, matches

    def _blame(self, one: Node, other: Node, members: list[Node], matches: dict[Node, Node | None]) -> Blame:
        """Complete the region on the other side."""
        ends = {twin: node for node, twin in reversed(matches.items()) if twin is not None}
        # Several values of the one side may be the same value of the other.
        pairs: list[tuple[Node | None, Node | None]] = [
            (twin if twin is not None and ends[twin] == node else None, node)
            for node, twin in matches.items()
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
            twin = self.pairing.twin_after(node) if node.instruction.opcode != "constant" else None
            if node is not one and twin is not None and self.pairing.agree(node, twin):
                ends[node] = twin
                continue
            inside.append(node)
        return inside


def _handing(one: Node, alike: Node | None, other: Node, place: Node) -> Blame:
    """The blame of what hands on `other`, which the right program has as `alike`, instead of `one`."""
    return Blame(one, other, (), (), ((one, None), (alike, other)), place)


def _own_way(one: Node, known: dict[Node, Node]) -> list[Node] | None:
    """All that makes `one` of known values: the pattern that the pass found; None when it is long."""
    inside: list[Node] = []
    for node in backwards(one, known):
        if node not in known:
            inside.append(node)
        if len(inside) > _OWN_WAY:
            return None
    return inside
