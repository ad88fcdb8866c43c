"""Where operations of random graphs are registered, by opcode, and how one is drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, TypeVar

from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import OPCODES, Class, by_opcode
from hlotool.lab.fuzz.programs.graph import Graph

#: Adds one operation of the opcode, on a value that is there, or raises Declined.
Step: TypeAlias = Callable[[Graph, str, Instruction], object]

_Step = TypeVar("_Step", bound=Step)

STEPS: dict[str, Step] = {}

#: How often operations of a class are drawn: what rewrites most have rules for comes first.
_CLASSES = {
    Class.ELEMENTWISE: 30.0, Class.DATA_MOVEMENT: 26.0, Class.INDEXING: 12.0, Class.REDUCTION: 12.0,
    Class.CONTRACTION: 8.0, Class.CONTROL: 6.0, Class.LIBRARY: 3.0, Class.DYNAMIC: 2.0, Class.TUPLE: 1.0,
    Class.SOURCE: 3.0, Class.RANDOM: 1.0, Class.ANNOTATION: 1.0, Class.COLLECTIVE: 2.0,
}  # fmt: skip
#: The same where several devices take part.
_COLLECTIVE_SHARE = 20.0


def step(*opcodes: str) -> Callable[[_Step], _Step]:
    """Register what adds operations of these opcodes."""
    enter = by_opcode(STEPS, opcodes)

    def register(function: _Step) -> _Step:
        enter(function)
        return function

    return register


def draw_opcode(graph: Graph) -> str:
    """A class of operations, then one of the class; the same whatever file registers which first."""
    classes: dict[str, float] = {}
    members: dict[str, list[str]] = {}
    for opcode in sorted(STEPS):
        kind = OPCODES[opcode].opcode_class
        members.setdefault(kind.value, []).append(opcode)
        share = _CLASSES[kind]
        if kind is Class.COLLECTIVE and graph.taste.devices > 1:
            share = _COLLECTIVE_SHARE if graph.taste.exchanges else 0.0
        classes[kind.value] = share
    return graph.word(members[graph.taste.one_of(graph.rng, classes)])
