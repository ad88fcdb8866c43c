"""A graph becomes a program: what it returns, what is left out, how many devices it is for."""

from __future__ import annotations

from dataclasses import replace

from hlotool.fuzz.programs.draft import GIVEN
from hlotool.fuzz.programs.graph import Graph
from hlotool.fuzz.programs.shardings import shard
from hlotool.ir.attributes import AttributeValue, EntryLayout
from hlotool.ir.module import Module
from hlotool.ir.types import ArrayShape, Layout, Shape
from hlotool.ir.walk import users

#: Results that a program returns at most.
MOST_RESULTS = 4

#: How many programs want their parameters in layouts of their own.
_WITH_LAYOUTS = 0.06


def finished(graph: Graph) -> Module:
    """The program: it returns the last value and what nobody reads; what is then not needed is left out."""
    computation = graph.builder.build()
    read = users(computation)
    loose = [v for v in graph.values if not read[v] and v.opcode not in GIVEN]
    results = loose[-MOST_RESULTS:] or [graph.values[-1]]
    root = results[0]
    if len(results) > 1 or root.opcode == "parameter" or graph.chance(0.1):
        # The one instruction that there is always room for.
        graph.shared.room = max(1, graph.shared.room)
        root = graph.op("tuple", *results)
    graph.drop_dead(root)
    attributes: dict[str, AttributeValue] = {}
    if graph.taste.exchanges:
        attributes["replica_count"] = graph.taste.devices
    elif graph.taste.partitioned:
        attributes["num_partitions"] = graph.taste.devices
        shard(graph, graph.builder.instructions)
    module = graph.builder.build_module(root)
    module.attributes = attributes
    if graph.taste.devices == 1 and graph.chance(_WITH_LAYOUTS):
        state_layouts(graph, module)
    return module


def state_layouts(graph: Graph, module: Module) -> None:
    """Parameters and results that lie in memory in another order, as the header says."""
    stated = module.entry_layout
    parameters = tuple(_laid_out(graph, shape) for shape in stated.parameters)
    module.attributes = {
        **module.attributes,
        "entry_computation_layout": EntryLayout(parameters, stated.result),
    }


def _laid_out(graph: Graph, shape: Shape) -> Shape:
    if not isinstance(shape, ArrayShape) or shape.rank < 2 or graph.chance():
        return shape
    return replace(shape, layout=Layout(tuple(graph.rng.sample(range(shape.rank), shape.rank))))
