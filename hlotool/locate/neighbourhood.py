"""What stands around an instruction that is accused: the way that its value takes, for a picture of it."""

from __future__ import annotations

from collections.abc import Callable

from hlotool.locate.execution import Execution
from hlotool.locate.frames import Node, made, operand_nodes, operand_uses
from hlotool.locate.records import NeighbourRecord
from hlotool.locate.words import text_in

#: How far before the accused instruction, in operations.
_BEFORE = 3
#: Readers behind it that are named.
_READERS = 4
#: Characters of a text; a tuple may have thousands of operands.
_LONGEST = 400
#: More is no picture any more.
_MOST = 24


def neighbourhood(
    execution: Execution, place: Node, state: Callable[[Node], str] = lambda node: ""
) -> list[NeighbourRecord]:
    """The instruction at `place`, what it is made of, and what reads it, nearest first.

    Args:
        execution: that `place` is of.
        place: the accused instruction.
        state: what is known of an operand that is read: `agrees`, `differs`, `unknown` or nothing.
    """
    distances, states = {place: 0}, {place: ""}
    todo = [place]
    for node in todo:
        if distances[node] == _BEFORE or node.instruction.opcode == "constant":
            continue
        for use in operand_uses(node):
            source = made(use)
            if source not in distances and len(todo) < _MOST:
                distances[source] = distances[node] + 1
                states[source] = state(use)
                todo.append(source)
    for reader in _readers(place)[:_READERS]:
        distances.setdefault(reader, -1)
    found = []
    for node, distance in distances.items():
        read = [_name(execution, source) for source in operand_nodes(node) if source in distances]
        found.append(
            NeighbourRecord(
                instruction=_name(execution, node),
                opcode=execution.originals[node.instruction].opcode,
                text=text_in(execution, node)[:_LONGEST],
                operands=list(dict.fromkeys(read)),
                distance=distance,
                state=states.get(node, ""),
            )
        )
    return found


def _readers(place: Node) -> list[Node]:
    """Instructions that read the result, or that of the call whose result it is."""
    frame, read = place.frame, place.instruction
    while read is frame.computation.root and frame.caller is not None:
        frame, read = frame.caller
    return [
        Node(frame, instruction)
        for instruction in frame.computation.instructions
        if read in instruction.operands
    ]


def _name(execution: Execution, node: Node) -> str:
    return execution.originals[node.instruction].name
