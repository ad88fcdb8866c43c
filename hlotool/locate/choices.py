"""Loops that end at another iteration and conditionals that take another branch."""

from __future__ import annotations

from collections.abc import Collection
from itertools import islice

from hlotool.ir.walk import branches
from hlotool.locate.blame import OWN_WAY, Blame, handing
from hlotool.locate.cone import backwards
from hlotool.locate.control import (
    Pair,
    branch_number,
    control_behind_forms,
    decisive_conditions,
    exchanged_branches,
)
from hlotool.locate.evaluation import Evaluator
from hlotool.locate.frames import Node, calls_around, chain, iteration_of, made, operand_uses
from hlotool.locate.pairing import Pairing


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
