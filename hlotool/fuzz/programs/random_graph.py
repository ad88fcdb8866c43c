"""Typed random graphs: operations are drawn one after the other, each on values that are there."""

from __future__ import annotations

import random

from hlotool.fuzz.programs import (  # noqa: F401 - importing a file registers its steps
    steps_collective,
    steps_contraction,
    steps_control,
    steps_dynamic,
    steps_elementwise,
    steps_functions,
    steps_indexing,
    steps_library,
    steps_movement,
    steps_reduction,
)
from hlotool.fuzz.programs.draft import Shared
from hlotool.fuzz.programs.finished import finished
from hlotool.fuzz.programs.graph import Graph
from hlotool.fuzz.programs.idioms import emit_one
from hlotool.fuzz.programs.steps import STEPS, draw_opcode
from hlotool.fuzz.programs.taste import Taste
from hlotool.ir.module import Module


def random_graph(rng: random.Random, taste: Taste, most: int) -> tuple[Module, frozenset[str]]:
    """A program of at most `most` instructions, and the names of the idioms in it."""
    shared = Shared(rng, taste, most - 1)
    graph = Graph("main", shared)
    for _ in range(rng.choice([1, 1, 2])):
        graph.fresh(taste.kind(rng), taste.dims(rng))
    grow(graph, rng.randint(3, max(4, most // 3)))
    return finished(graph), frozenset(shared.idioms)


def idiom_graph(rng: random.Random, taste: Taste, most: int) -> tuple[Module, frozenset[str]]:
    """A program of a few idioms, each on what is there, with single operations between them."""
    shared = Shared(rng, taste, most - 1)
    graph = Graph("main", shared)
    graph.fresh(taste.kind(rng), tuple(max(1, n) for n in taste.dims(rng, 1)))
    for _ in range(rng.choice([1, 2, 2, 3, 4])):
        graph.attempt(lambda: emit_one(graph))
        if graph.chance(0.4):
            grow(graph, 1)
    return finished(graph), frozenset(shared.idioms)


def grow(graph: Graph, steps: int) -> None:
    """Add operations, as many as are tried and do not decline."""
    for _ in range(steps):
        opcode = draw_opcode(graph)
        x = graph.pick()
        assert x is not None
        graph.attempt(lambda opcode=opcode, x=x: STEPS[opcode](graph, opcode, x))  # type: ignore[misc]
