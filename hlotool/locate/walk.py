"""Which operations of a program make a result differ from that of the program it was made from.

Both programs were executed on the same inputs and traced. From the differing outputs the two are followed
back together: where both sides do the same operation on operands of which one differs already, the operand is
to blame; where all operands agree, the operation is; where an operand is right but not the one that should be
read, whatever hands it on is (a tuple, the end of a loop, a branch); where the operations differ, everything
is to blame that lies between this point and values that both programs have.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

from hlotool.ir.types import ShapeIndex
from hlotool.locate.blame import Blame, blame_of, handing, is_done, is_mere_form, members_of
from hlotool.locate.choices import other_branch, other_control, selector
from hlotool.locate.cone import depends_on_arguments, is_constant, is_parameter
from hlotool.locate.control import (
    Pair,
    behind_forms,
    carried,
    carried_round,
    control_behind_forms,
    skipped_loop,
    step_name,
)
from hlotool.locate.embedded import same_operation
from hlotool.locate.evaluation import Evaluator
from hlotool.locate.frames import Node, made, operand_nodes, operand_uses
from hlotool.locate.narrowing import Narrowing
from hlotool.locate.pairing import Pairing
from hlotool.locate.wiring import miswired


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
    return _Walk(pairing, Narrowing(pairing, Evaluator(), time.monotonic() + seconds)).follow(one, other)


@dataclass(slots=True)
class _Walk:
    pairing: Pairing
    narrowing: Narrowing
    amplified: Pair | None = None
    reader: Pair | None = None

    def follow(self, one: Node, other: Node) -> Blame:
        """Go back from what is read until nothing before it differs."""
        visited: set[Pair] = set()
        found: Blame | Pair | None = None
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

    def _step(self, one: Node, other: Node) -> Blame | Pair:
        """What a pair that differs comes from: an earlier pair, or itself."""
        left, right = made(one), made(other)
        return (
            self._earlier(one, other)
            or other_control(one, other)
            or other_branch(self.pairing, self.narrowing.evaluator, left, right, other, set())
            or miswired(self.pairing, one, other)
            or self._same(left, right)
            or self._fixed(one, other)
            or (self._narrowed(left, right) if self.pairing.is_far else None)
            or self._guilty_operands(left, right)
            or self._region(left, right)
        )

    def _earlier(self, one: Node, other: Node) -> Pair | None:
        """The first iteration in which a value differs that both sides carry round a loop."""
        for left, right in zip(carried(one), carried(other)):
            is_other_part = left.loop.name == right.loop.name and left.index != right.index
            if is_other_part or len(left.rounds) != len(right.rounds):
                return None
            for first, second in zip(left.rounds[:-1], right.rounds):
                pair = (
                    Node(first, first.computation.root, left.index),
                    Node(second, second.computation.root, right.index),
                )
                if self.pairing.differ(made(pair[0]), made(pair[1])):
                    return pair
        return None

    def _same(self, one: Node, other: Node) -> Pair | Blame | None:
        """The only operand that differs where both sides do the same; the operation where none does."""
        pairing, pairs = self.pairing, self._operands(one, other)
        left, right = [a for _, (a, _) in pairs], [b for _, (_, b) in pairs]
        apart = [(use, made) for use, made in pairs if not pairing.agree(*made)]
        is_same = same_operation(one.instruction, other.instruction)
        matches = {b: next((a for a in left if pairing.agree(a, b)), None) for b in right}
        # What is read of one name, with another value, is not read by mistake.
        is_named = is_same and any(a.instruction.name == b.instruction.name for (a, b), _ in apart)
        is_told = pairs and set(matches.values()) == set(left) and (apart or not is_same)
        if is_told and not is_named and pairing.differ(one, other):
            # The same values, be it in another order: it is what hands them on, or what is done to them.
            return self._miswired(apart) or blame_of(self.pairing, one, other, [other], matches)
        if not is_same or len(apart) != 1 or not pairing.differ(*apart[0][1]):
            return None
        [((expected, read), (_, maker))] = apart
        # A right value in the wrong place: it is handed there, or read by mistake.
        is_handed = step_name(expected) == step_name(read)
        return (expected, read) if is_handed or not pairing.is_right(maker) else None

    def _operands(self, one: Node, other: Node) -> list[tuple[Pair, Pair]]:
        """What both sides read, as it is read and as it was computed; empty where they are not alike."""
        if one.instruction.opcode != other.instruction.opcode:
            return []
        uses, operands = (list(zip(of(one), of(other))) for of in (operand_uses, operand_nodes))
        is_alike = len(operand_nodes(one)) == len(operand_nodes(other))
        return list(zip(uses, operands)) if is_alike and all(self.pairing.fit(*p) for p in operands) else []

    def _guilty_operands(self, one: Node, other: Node) -> Pair | Blame | None:
        """The operands that are furthest apart, where both sides do the same to operands of equal shapes."""
        differ, pairs = self.pairing.differ, self._operands(one, other)
        if differ(one, other) and any(
            is_done(self.pairing, one, operand) for operand in operand_nodes(other)
        ):
            return None
        far = {use: self.pairing.apart(*made) or 0.0 for use, made in pairs}
        apart = [(use, made) for use, made in pairs if differ(*made)]
        wrong = [use for use, (_, b) in apart if not self.pairing.is_right(b) or other_control(*use)]
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

    def _miswired(self, apart: list[tuple[Pair, Pair]]) -> Blame | None:
        """What hands on one of several operands wrongly, the first such."""
        return next(filter(None, (miswired(self.pairing, *use) for use, _ in apart)), None)

    def _fixed(self, one: Node, other: Node) -> Blame | Pair | None:
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
            expected = selector(left, step)
            if expected is not None and self.pairing.differ(made(expected), made(chosen)):
                return expected, chosen
        place = skipped_loop(one, other) or carried_round(behind_forms(other))
        if place is not None:
            return handing(left, None, right, place)
        if self.reader is None or right not in operand_nodes(self.reader[1]):
            return None
        one, other = self.reader
        members, matches = members_of(self.pairing, one, other)
        return blame_of(self.pairing, one, other, members, matches)

    def _narrowed(self, one: Node, other: Node) -> Pair | Blame | None:
        """An earlier value that makes this one right when it is replaced by one of the right program."""
        members, matches = members_of(self.pairing, one, other)
        inside = [m for m in members if not is_parameter(m)]
        for use in (use for member in inside for use in operand_uses(member)):
            if found := other_branch(self.pairing, self.narrowing.evaluator, one, other, use, set(inside)):
                return found
        found = self.narrowing.earliest(one, other, inside, matches, self.pairing.candidates(one))
        is_alone = sum(m.instruction.opcode != "constant" for m in inside) <= 1
        if found is None and is_alone and not same_operation(one.instruction, other.instruction):
            return blame_of(self.pairing, one, other, members, matches)
        return found

    def _region(self, one: Node, other: Node) -> Blame | Pair:
        """What lies between a differing pair and agreeing values; or an earlier pair that differs."""
        members, matches = members_of(self.pairing, one, other)
        for node in members:
            twin = self.pairing.twin_before(node)
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
        return replace(
            blame_of(self.pairing, one, other, members, matches), reader=self._reader_of_form(other, members)
        )

    def _reader_of_form(self, other: Node, members: Sequence[Node]) -> Node | None:
        """What reads a value that was given no more than other forms; it may have to read another value."""
        if self.reader is None or other not in operand_nodes(self.reader[1]):
            return None
        return self.reader[1] if all(map(is_mere_form, members)) else None
