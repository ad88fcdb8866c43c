"""Loops, branches and tuples on the way of a value, from the reader's side."""

from __future__ import annotations

from collections.abc import Iterator

from hlotool.ir.module import Instruction
from hlotool.ir.types import ShapeIndex
from hlotool.ir.walk import branches
from hlotool.locate.frames import Frame, Node, branch_frame, chain, iteration_of, made


def carried_round(one: Node, other: Node) -> Node | None:
    """What hands the state of a loop on as it was, where the right program computes a new one."""
    if len(iteration_of(made(one).frame)) <= len(iteration_of(made(other).frame)):
        return None
    place: Node | None = None
    for step in chain(other):
        caller = step.frame.caller
        is_body = caller is not None and caller[1].opcode == "while"
        opcode = step.instruction.opcode
        if (opcode == "tuple" and is_body) or (place is not None and opcode in ("fusion", "call")):
            place = step
        elif place is not None and opcode == "parameter" and is_body:
            return place
    return None


def control_flow(use: Node) -> Iterator[Node]:
    """The loops and branches that hand a value on, from the reader's side."""
    return (s for s in chain(use) if s.instruction.opcode in ("while", "conditional"))


def step_name(step: Node) -> tuple[str, ShapeIndex, int]:
    """What tells the same step in two versions of a program."""
    return step.instruction.name, step.index, step.frame.iteration


def is_around(outer: Frame, inner: Frame) -> bool:
    """Whether `inner` was called, directly or not, from `outer`."""
    while inner.caller is not None:
        inner = inner.caller[0]
        if inner is outer:
            return True
    return False


def caller_of_parameter(step: Node) -> Node:
    """The call that gives a parameter its value; any other step itself."""
    if step.instruction.opcode != "parameter" or step.frame.caller is None:
        return step
    return Node(*step.frame.caller)


def branch_number(frame: Frame, conditional: Instruction) -> int | None:
    """Which branch a conditional took; None where that is not known."""
    taken = branch_frame(frame, conditional)
    return None if taken is None else branches(conditional).index(taken.computation)


def decisive_conditions(
    left: Frame, loop: Instruction, right: Frame, twin: Instruction
) -> tuple[Node, Node] | None:
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
