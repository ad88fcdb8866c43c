"""Which operations of a program make a result differ from that of the program it was made from.

Both programs were executed on the same inputs and traced. From the differing outputs the two are followed
back together: where both sides do the same operation on operands of which one differs already, the operand is
to blame; where all operands agree, the operation is; where an operand is right but not the one that should be
read, whatever hands it on is (a tuple, the end of a loop, a branch); where the operations differ, everything
is to blame that lies between this point and values that both programs have.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import inf

from hlotool.inputs.evaluation import Evaluator
from hlotool.inputs.frames import (
    Node,
    calls_around,
    chain,
    iteration_of,
    made,
    operand_nodes,
    operand_uses,
)
from hlotool.ir.types import ShapeIndex
from hlotool.ir.walk import branches
from hlotool.judge.locate.blame import (
    OWN_WAY,
    Blame,
    blame_of,
    handing,
    is_done,
    is_mere_form,
    members_of,
)
from hlotool.judge.locate.likeness import same_operation
from hlotool.judge.locate.origins import (
    Pair,
    alike_at_first,
    backwards,
    behind_forms,
    branch_number,
    caller_of_parameter,
    carried,
    carried_round,
    control_behind_forms,
    decisive_conditions,
    depends_on_arguments,
    exchanged_branches,
    handed_through,
    is_call,
    is_constant,
    is_handed_through,
    is_parameter,
    is_result,
    is_rewritten_loop,
    skipped_loop,
    step_name,
)
from hlotool.judge.locate.pairing import Pairing
from hlotool.judge.locate.repair import Narrowing


def find_blame(pairing: Pairing, output: ShapeIndex, narrowing: Narrowing) -> Blame:
    """Follow the leaf `output` of both results back to where they part.

    Args:
        pairing: of the two executions.
        output: a leaf of the result that differs.
        narrowing: puts other values to the test.
    """
    one = Node(pairing.before, pairing.before.computation.root, output)
    other = Node(pairing.after, pairing.after.computation.root, output)
    if pairing.after.trace.incomplete and (first := pairing.first_difference()):
        one, other = first
    for each in (pairing, *(pairing.others if pairing.is_far else ())):
        ends = (Node(f, f.computation.root, output) for f in (each.before, each.after))
        each.seen = each.apart(*map(made, ends)) or inf
    return _Walk(pairing, narrowing).follow(one, other)


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


# Loops that end at another iteration and conditionals that take another branch.


def other_control(one: Node, other: Node) -> Pair | Blame | None:
    """The conditions of a loop that ends at different iterations, or what chose another branch."""
    for left, right in zip(control_behind_forms(one), control_behind_forms(other)):
        a, b = left.instruction, right.instruction
        if a.opcode != b.opcode:
            return None
        if a.opcode == "while" and (pair := decisive_conditions(left.frame, a, right.frame, b)):
            return pair
        if a.opcode == "conditional" and branch_number(left.frame, a) != branch_number(right.frame, b):
            return Node(left.frame, a.operands[0]), Node(right.frame, b.operands[0])
        if a.opcode == "conditional" and exchanged_branches(a, b):
            return handing(made(one), None, made(other), right)
    return None


def other_branch(
    pairing: Pairing, evaluator: Evaluator, one: Node, other: Node, use: Node, inside: Collection[Node]
) -> Blame | Pair | None:
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
            value = evaluator.called(branch, argument)
            for i in step.index:
                value = value[i] if isinstance(value, tuple) else None
            if value is not None:
                value = evaluator.changed(other, made(use), value, inside)
            if value is not None and pairing.is_near(value, one):
                chosen = Node(step.frame, conditional.operands[0])
                if (right := selector(one, step)) and pairing.differ(made(right), made(chosen)):
                    return right, chosen
                return handing(one, None, other, step)
    return None


def selector(one: Node, step: Node) -> Node | None:
    """What the right program chooses one of as many branches by, on the way to a value."""
    count, at = len(branches(step.instruction)), iteration_of(step.frame)
    nearby = islice(backwards(one, {}), OWN_WAY)
    uses = (use for node in nearby for use in (node, *operand_uses(node)))
    for taken in (each for use in uses for each in chain(use)):
        is_alike = taken.instruction.opcode == "conditional" and iteration_of(taken.frame) == at
        if is_alike and len(branches(taken.instruction)) == count:
            return Node(taken.frame, taken.instruction.operands[0])
    around = reversed(calls_around(one.frame))
    return next((Node(f, call.operands[0]) for f, call in around if call.opcode == "conditional"), None)


# Right values that are read where others should be: what hands them there.


def miswired(pairing: Pairing, one: Node, other: Node) -> Blame | None:
    """What hands on a right value instead of the one that should be read."""
    left, right = made(one), made(other)
    if not pairing.differ(left, right):
        return None
    # Passes add calls and tuples on the way: what counts is the last step that both sides take.
    common = {step_name(step) for step in behind_forms(one)}
    steps = list(chain(other))
    shared = [s for s in steps[:-1] if step_name(s) in common] or alike_at_first(one, other)
    if not shared or not pairing.is_right(right):
        # Results of the same loop or call are alike, whatever their names.
        is_alike = bool(shared) or (is_result(one) and is_result(other))
        return _handed_on(pairing, one, other) if is_alike or pairing.is_far else None
    last = shared[-1]
    if is_rewritten_loop(one, other) and (place := _carried_round(one, other)):
        return handing(left, pairing.twin_before(right), right, place)
    following = steps[steps.index(last) + 1 :]
    if last.instruction.opcode == "while" and len(following) > 1:
        # Both go round equally often: what the body hands on is another matter.
        last, *following = following
    if is_handed_through(following) or (len(following) > 1 and _is_cut_short(pairing, left, following[0])):
        last = following[0]
    return handing(left, pairing.twin_before(right), right, caller_of_parameter(last))


def _handed_on(pairing: Pairing, one: Node, other: Node) -> Blame | None:
    """What hands on another value than it should: a loop, or any step where names do not show it."""
    left, right = made(one), made(other)
    alike = pairing.equal_value(right, left)
    place = _carried_round(one, other)
    if pairing.is_far:
        is_like = alike is not None and alike.instruction.opcode == right.instruction.opcode
        tuples = (s for s in chain(other) if is_like and s.instruction.opcode == "tuple")
        place = place or handed_through(other) or next(tuples, None)
    return handing(left, alike, right, place) if place is not None else None


def _carried_round(one: Node, other: Node) -> Node | None:
    """What hands the state of a loop on as it was, where the right program computes a new one."""
    is_newer = len(iteration_of(made(one).frame)) > len(iteration_of(made(other).frame))
    return carried_round(chain(other)) if is_newer else None


def _is_cut_short(pairing: Pairing, one: Node, step: Node) -> bool:
    """Whether a pass made a call, and nothing computes the value that it should return."""
    is_new = is_call(step) and not pairing.is_far and pairing.is_new(step)
    return is_new and not pairing.is_computed(one)
