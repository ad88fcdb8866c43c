"""Typed random graphs: operations are drawn one after the other, each on values that are there."""

from __future__ import annotations

import random

from hlotool.fuzz.programs import steps_elementwise  # noqa: F401 - registers its steps
from hlotool.fuzz.programs.graph import Graph, Shared
from hlotool.fuzz.programs.steps import STEPS, draw_opcode
from hlotool.fuzz.programs.taste import Taste
from hlotool.ir.module import Instruction, Module
from hlotool.ir.walk import users

#: Results that a program returns at most.
_MOST_RESULTS = 4


def random_graph(rng: random.Random, taste: Taste, most: int) -> tuple[Module, frozenset[str]]:
    """A program of at most `most` instructions, and the names of the idioms in it."""
    shared = Shared(rng, taste, most - _MOST_RESULTS)
    graph = Graph("main", shared)
    for _ in range(rng.choice([1, 1, 2])):
        graph.fresh(taste.kind(rng), taste.dims(rng))
    grow(graph, rng.randint(3, max(4, most // 2)))
    return finished(graph), frozenset(shared.idioms)


def grow(graph: Graph, steps: int) -> None:
    """Add operations, as many as are tried and do not decline."""
    for _ in range(steps):
        opcode = draw_opcode(graph)
        x = graph.pick()
        assert x is not None
        graph.attempt(lambda opcode=opcode, x=x: STEPS[opcode](graph, opcode, x))  # type: ignore[misc]


def finished(graph: Graph) -> Module:
    """The program: it returns the last value and what nobody reads; what is then not needed is left out."""
    computation = graph.builder.build()
    read = users(computation)
    loose = [v for v in graph.values if not read[v] and v.opcode not in ("parameter", "constant", "iota")]
    results = loose[-_MOST_RESULTS:] or [graph.values[-1]]
    root = results[0]
    if len(results) > 1 or root.opcode == "parameter" or graph.chance(0.1):
        graph.shared.room += 1
        root = graph.op("tuple", *results)
    _drop_dead(graph, root)
    return graph.builder.build_module(root)


def _drop_dead(graph: Graph, root: Instruction) -> None:
    """Remove what the root does not need; parameters stay."""
    needed = {root}
    for instruction in reversed(graph.builder.instructions):
        if instruction in needed:
            needed.update(instruction.operands)
    graph.builder.instructions = [
        i for i in graph.builder.instructions if i in needed or i.opcode == "parameter"
    ]
