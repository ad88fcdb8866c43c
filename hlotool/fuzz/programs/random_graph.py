"""Typed random graphs: operations are drawn one after the other, each on values that are there."""

from __future__ import annotations

import random
from collections.abc import Mapping

from hlotool.fuzz.programs import (  # noqa: F401 - importing a file registers its steps
    steps_collective,
    steps_contraction,
    steps_control,
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
from hlotool.fuzz.programs.limits import Taste, long_dims
from hlotool.fuzz.programs.steps import STEPS, draw_opcode
from hlotool.ir.module import Module

#: Instructions of a program on large arrays: the reference takes milliseconds for each. Floats are read from
#: bytes, in five instructions for each array: two patterns on floats have room.
_MOST_OF_LARGE = 32


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
    graph.fresh(taste.kind(rng), taste.dims(rng, 1, may_be_empty=False))
    for _ in range(rng.choice([1, 2, 2, 3, 4])):
        graph.attempt(lambda: emit_one(graph))
        if graph.chance(0.4):
            grow(graph, 1)
    return finished(graph), frozenset(shared.idioms)


#: What libraries have code of their own for, and loops over parts of an array, by how often it is drawn.
_PARALLEL = {
    "dot": 3.0, "reduce": 3.0, "convolution": 1.0, "reduce-window": 1.0, "sort": 1.0, "topk": 0.5,
    "gather": 1.0, "scatter": 1.0, "fft": 0.5, "concatenate": 0.5, "transpose": 0.5,
}  # fmt: skip

#: Patterns that a library runs as one call, in parts.
_OF_ONE_CALL = ("norms of a dot", "small matrix for many rows", "sum of a product")

_ELEMENTWISE = dict.fromkeys(("multiply", "add", "negate", "maximum", "convert"), 1.0)


def large_graph(rng: random.Random, taste: Taste, most: int) -> tuple[Module, frozenset[str]]:
    """A short program on large arrays: patterns or parallel operations, elementwise ones between them."""
    shared = Shared(rng, taste, min(most, _MOST_OF_LARGE) - 1)
    graph = Graph("main", shared)
    graph.fresh(graph.kind(), long_dims(rng, rng.choice([1, 2, 2, 3])))
    for _ in range(rng.choice([1, 1, 2])):
        if graph.chance():
            graph.attempt(lambda: emit_one(graph, graph.choose([_PARALLEL, _OF_ONE_CALL])))
        else:
            grow(graph, 1, _PARALLEL)
        grow(graph, rng.choice([0, 1, 1, 2]), _ELEMENTWISE)
    grow(graph, 1, _PARALLEL)
    return finished(graph), frozenset(shared.idioms)


def grow(graph: Graph, steps: int, opcodes: Mapping[str, float] | None = None) -> None:
    """Add operations, of some opcodes or of any, as many as are tried and do not decline."""
    for _ in range(steps):
        opcode = draw_opcode(graph) if opcodes is None else graph.taste.one_of(graph.rng, opcodes)
        x = graph.pick()
        assert x is not None
        graph.attempt(lambda opcode=opcode, x=x: STEPS[opcode](graph, opcode, x))  # type: ignore[misc]
