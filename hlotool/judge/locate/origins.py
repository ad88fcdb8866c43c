"""What values are made of: the operations behind them, through loops, branches and tuples."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TypeAlias

from msgspec import Struct

from hlotool.inputs.frames import (
    FORMS,
    Frame,
    Node,
    branch_frame,
    chain,
    iteration_of,
    made,
    operand_nodes,
)
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, ShapeIndex
from hlotool.ir.walk import branches


def is_parameter(node: Node) -> bool:
    """Whether it is an argument of the whole program."""
    return node.instruction.opcode == "parameter"


def backwards(root: Node, ends: Collection[Node]) -> Iterator[Node]:
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


def operands_first(root: Node, members: Sequence[Node]) -> tuple[Node, ...]:
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


def is_constant(node: Node) -> bool:
    """Whether it is a constant or one in other dimensions: with another in its place too much gets right."""
    if node.instruction.opcode in FORMS:
        return all(map(is_constant, operand_nodes(node)))
    return node.instruction.opcode == "constant"


def cone_sizes(root: Node, members: Sequence[Node]) -> dict[Node, int]:
    """Of how many of the members each that `root` needs is made, itself included, constants not counted."""
    cones: dict[Node, int] = {}  # a bit for each that counts
    for place, node in enumerate(operands_first(root, members)):
        cone = 0 if node.instruction.opcode == "constant" else 1 << place
        for operand in operand_nodes(node):
            cone |= cones.get(operand, 0)
        cones[node] = cone
    return {node: cone.bit_count() for node, cone in cones.items()}


def depends_on_arguments(node: Node) -> bool:
    """Whether a value is made of an argument of the program, as opposed to constants alone."""
    return any(map(is_parameter, backwards(node, ())))


#: A value of the right program and what stands for it in the wrong one.
Pair: TypeAlias = tuple[Node, Node]


def carried_round(steps: Iterable[Node]) -> Node | None:
    """What hands a part of a loop's state on as it was, among the steps on the way of a value."""
    place: Node | None = None
    for step in steps:
        caller = step.frame.caller
        is_body = caller is not None and caller[1].opcode == "while"
        opcode = step.instruction.opcode
        is_state = opcode == "tuple" and is_body and _computes(step)
        if is_state or (place is not None and is_call(step)):
            place = step
        elif place is not None and opcode == "parameter" and is_body:
            return place
    return None


def _computes(state: Node) -> bool:
    """Whether a tuple holds what its own iteration computed; others only pack what they were given."""
    arrays = (o for o in state.instruction.operands if isinstance(o.shape, ArrayShape))
    makers = (made(Node(state.frame, o)) for o in arrays)
    here = iteration_of(state.frame)
    return any(m.instruction.opcode != "constant" and iteration_of(m.frame) == here for m in makers)


class Carried(Struct, frozen=True):
    """A read of a loop's state.

    Attributes:
        loop: the `while`.
        index: of what is read.
        rounds: the iterations that were through before; the last of them made what is read.
    """

    loop: Instruction
    index: ShapeIndex
    rounds: Sequence[Frame]


def carried(use: Node) -> Iterator[Carried]:
    """The reads of loops' states on the way of a value, behind a loop or in it, from the reader's side."""
    for step in chain(use):
        opcode, caller = step.instruction.opcode, step.frame.caller
        if opcode == "while":
            yield Carried(step.instruction, step.index, step.frame.bodies.get(step.instruction, ()))
        elif _is_state(step) and caller is not None:
            outer, loop = caller
            yield Carried(loop, step.index, outer.bodies.get(loop, ())[: step.frame.iteration])


def control_behind_forms(use: Node) -> Iterator[Node]:
    """The loops and branches that hand a value on, maybe in another form, from the reader's side."""
    return filter(_is_control, behind_forms(use))


def _is_control(step: Node) -> bool:
    return step.instruction.opcode in ("while", "conditional")


def behind_forms(use: Node) -> Iterator[Node]:
    """What hands a value on, from the reader's side, with what only gives it another form."""
    yield from chain(use)
    while (maker := made(use)).instruction.opcode in FORMS:
        use = Node(maker.frame, maker.instruction.operands[0])
        yield from chain(use)


def is_result(use: Node) -> bool:
    """Whether it is what a computation returns."""
    return use.instruction is use.frame.computation.root


def is_rewritten_loop(one: Node, other: Node) -> bool:
    """Whether the nearest loops that hand the two on are one that was given another name."""
    loops = [next((s for s in chain(use) if s.instruction.opcode == "while"), None) for use in (one, other)]
    left, right = loops
    if left is None or right is None:
        return False
    return left.instruction.name != right.instruction.name and left.index == right.index


def skipped_loop(one: Node, other: Node) -> Node | None:
    """A loop that hands its initial state on, never entered, where the right program has no such loop."""
    if any(map(_is_skipped, behind_forms(one))):
        return None
    return next(filter(_is_skipped, behind_forms(other)), None)


def _is_skipped(step: Node) -> bool:
    return step.instruction.opcode == "while" and not step.frame.bodies.get(step.instruction)


def is_call(step: Node) -> bool:
    """Whether it hands on what the root of a computation gives."""
    return step.instruction.opcode in ("fusion", "call")


def is_handed_through(steps: Sequence[Node]) -> bool:
    """Whether the first of these steps is a call that returns what it was given, and computes nothing."""
    return len(steps) > 1 and is_call(steps[0]) and steps[1].instruction.opcode == "parameter"


def handed_through(use: Node) -> Node | None:
    """The first call on the way of a value that returns what it was given."""
    steps = list(chain(use))
    return next((step for n, step in enumerate(steps) if is_handed_through(steps[n:])), None)


def step_name(step: Node) -> tuple[str, ShapeIndex, int]:
    """A key that the same step has in two versions of a program."""
    return step.instruction.name, step.index, step.frame.iteration


def alike_at_first(one: Node, other: Node) -> list[Node]:
    """The first steps on the way of the second value that are like those of the first, whatever their names.

    Empty where they do not come to the state of a loop: two reads of a tuple look alike everywhere.
    """
    shared: list[Node] = []
    for left, right in zip(chain(one), list(chain(other))[:-1]):
        if (left.instruction.opcode, left.index) != (right.instruction.opcode, right.index):
            break
        shared.append(right)
    return shared if any(map(_is_state, shared)) else []


def _is_state(step: Node) -> bool:
    caller = step.frame.caller
    return step.instruction.opcode == "parameter" and caller is not None and caller[1].opcode == "while"


def caller_of_parameter(step: Node) -> Node:
    """The call that gives a parameter its value; any other step itself."""
    if step.instruction.opcode != "parameter" or step.frame.caller is None:
        return step
    return Node(*step.frame.caller)


def branch_number(frame: Frame, conditional: Instruction) -> int | None:
    """Which branch a conditional took; None where that is not known."""
    taken = branch_frame(frame, conditional)
    return None if taken is None else branches(conditional).index(taken.computation)


def exchanged_branches(one: Instruction, other: Instruction) -> bool:
    """Whether two conditionals have branches of the same names in another order."""
    names = [[branch.name for branch in branches(each)] for each in (one, other)]
    return names[0] != names[1] and sorted(names[0]) == sorted(names[1])


def decisive_conditions(left: Frame, loop: Instruction, right: Frame, twin: Instruction) -> Pair | None:
    """The conditions of one loop at the iteration at which only one side went on; None when both did."""
    counts = [len(frame.bodies.get(i, ())) for frame, i in ((left, loop), (right, twin))]
    frames = [
        [f for f in frame.callees.get(i, ()) if f.computation is i.computation("condition")]
        for frame, i in ((left, loop), (right, twin))
    ]
    decisive = min(counts)
    if counts[0] == counts[1] or any(len(own) <= decisive for own in frames):
        return None
    first, second = (own[decisive] for own in frames)
    return Node(first, first.computation.root), Node(second, second.computation.root)
