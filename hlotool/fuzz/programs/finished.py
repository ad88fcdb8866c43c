"""A graph becomes a program: what it returns, what is left out, its devices and shardings."""

from __future__ import annotations

from dataclasses import replace

from hlotool.fuzz.programs.draft import GIVEN
from hlotool.fuzz.programs.graph import Graph
from hlotool.ir.attributes import AttributeValue, EntryLayout, IotaTiles, Sharding
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ArrayShape, Layout, Shape
from hlotool.ir.walk import users

#: How many parameters, and how many other arrays, are sharded.
_PARAMETERS, _OTHERS = 0.8, 0.2


def shard(graph: Graph, instructions: list[Instruction]) -> None:
    """Write shardings on some of the arrays; what has none is left to the propagation."""
    for instruction in instructions:
        share = _PARAMETERS if instruction.opcode == "parameter" else _OTHERS
        if isinstance(instruction.shape, ArrayShape) and graph.chance(share):
            sharding = random_sharding(graph, instruction.shape.rank)
            instruction.attributes = {**instruction.attributes, "sharding": sharding}


def random_sharding(graph: Graph, rank: int) -> Sharding:
    """Replicated, or tiled in one or two dimensions, on the rest of which copies may lie; in any order.

    Sizes need not be divisible: XLA pads.
    """
    devices = graph.taste.devices
    if not rank or graph.chance(0.2):
        return Sharding("replicated")
    used = graph.choose([n for n in range(2, devices + 1) if devices % n == 0])
    tiles = [1] * rank
    first = graph.rng.randrange(rank)
    factor = graph.choose([n for n in range(2, used + 1) if used % n == 0])
    tiles[first] *= factor
    tiles[graph.rng.randrange(rank)] *= used // factor
    copies = devices // used
    dims = (*tiles, copies) if copies > 1 else tuple(tiles)
    if graph.chance(0.75):
        order = IotaTiles(dims, (devices,), (0,))
        return Sharding("tiled", tile_dims=dims, iota=order, last_tile_dim_replicate=copies > 1)
    listed = tuple(graph.rng.sample(range(devices), devices))
    return Sharding("tiled", tile_dims=dims, devices=listed, last_tile_dim_replicate=copies > 1)


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
