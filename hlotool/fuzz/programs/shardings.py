"""Shardings at random: programs on whole arrays, which XLA's partitioner cuts among devices."""

from __future__ import annotations

from hlotool.fuzz.programs.graph import Graph
from hlotool.ir.attributes import IotaTiles, Sharding
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape

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
