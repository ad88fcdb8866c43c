"""What values are made of: the operations behind them, back to constants and arguments."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from hlotool.locate.frames import FORMS, Node, operand_nodes


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


def cone_size(node: Node, inside: set[Node]) -> int:
    """How many members a member is made of, constants not counted, itself included."""
    seen = {node}
    queue = [node]
    for current in queue:
        for operand in operand_nodes(current):
            if operand in inside and operand not in seen:
                seen.add(operand)
                queue.append(operand)
    return sum(n.instruction.opcode != "constant" for n in seen)


def depends_on_arguments(node: Node) -> bool:
    """Whether a value is made of an argument of the program, as opposed to constants alone."""
    return any(map(is_parameter, backwards(node, ())))
