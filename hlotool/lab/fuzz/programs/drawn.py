"""Random programs: graphs of operations drawn at random, finished into modules that XLA takes."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from hlotool.ir.attributes import (
    AttributeValue,
    EntryLayout,
    Ints,
    IotaTiles,
    PaddingDim,
    Sharding,
    SliceDim,
    Window,
)
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ArrayShape, Layout, Shape, array_shapes
from hlotool.ir.walk import users
from hlotool.lab.fuzz.programs import (  # noqa: F401 - importing a file registers its steps
    steps_contraction,
    steps_control,
    steps_elementwise,
    steps_movement,
    steps_reduction,
)
from hlotool.lab.fuzz.programs.draft import GIVEN, Shared
from hlotool.lab.fuzz.programs.graph import STEPS, Graph, draw_opcode
from hlotool.lab.fuzz.programs.idioms import emit_one
from hlotool.lab.fuzz.programs.limits import Preferences, long_dims

#: Attributes whose value is a word, or a number of a handful.
_WORDS = ("direction", "type", "fft_type", "algorithm", "distribution", "transpose_a", "kind", "mode")
#: Attributes that are on or off.
_FLAGS = (
    "is_stable", "indices_are_sorted", "unique_indices", "is_reverse", "largest", "lower", "left_side",
    "unit_diagonal", "use_global_device_ids",
)  # fmt: skip


@dataclass(frozen=True)
class Drawn:
    """One program.

    Attributes:
        module: that hlotool's verifier accepts; `module.to_text()` is what a compiler gets.
        origin: see `source.ORIGINS`.
        seed: of the source.
        index: of the program there; both, and the weights that the source was given, make it again.
        features: words for what is in it: see `words_of`, and `idiom:NAME` of the patterns it was made of.
    """

    module: Module
    origin: str
    seed: int
    index: int
    features: frozenset[str]


def words_of(module: Module) -> frozenset[str]:
    """What is in a program: `OPCODE`, `OPCODE:TYPE` of each array of a result, `OPCODE ATTRIBUTE…`.

    Numbers of attributes are named by what rewrites ask of them (`pad negative`, `slice stride`), shapes by
    their corners (`add:dims 0`, `dot:dims 1`).
    """
    return frozenset(word for i in module.instructions() for word in _words(i))


def _words(instruction: Instruction) -> Iterator[str]:
    opcode = instruction.opcode
    yield opcode
    for shape in array_shapes(instruction.shape):
        yield f"{opcode}:{shape.element_type}"
        for corner in _corners(shape):
            yield f"{opcode}:{corner}"
    for operand in instruction.operands:
        if opcode in ("convert", "bitcast-convert", "compare") and isinstance(operand.shape, ArrayShape):
            yield f"{opcode}<{operand.shape.element_type}"
    for name, value in instruction.attributes.items():
        for word in _of_attribute(name, value):
            yield f"{opcode} {word}"


def _corners(shape: ArrayShape) -> Iterator[str]:
    if 0 in shape.dims:
        yield "dims 0"
    if 1 in shape.dims:
        yield "dims 1"
    if shape.dims and max(shape.dims) > 100:
        yield "dims large"
    if not shape.dims:
        yield "scalar"
    if shape.is_dynamic:
        yield "dynamic"
    if shape.layout is not None and not shape.layout.is_descending:
        yield "layout"


def _of_attribute(name: str, value: object) -> Iterator[str]:
    if name in _WORDS and isinstance(value, str):
        yield f"{name}={value}"
    elif name in _FLAGS and value is True:
        yield name
    elif name == "dimensions" and isinstance(value, tuple):
        numbers: Ints = tuple(n for n in value if isinstance(n, int))
        yield f"{len(numbers)} dimensions" + ("" if list(numbers) == sorted(numbers) else " permuted")
    elif isinstance(value, Window):
        yield from _of_window(value)
    elif isinstance(value, tuple):
        for part in value:
            if isinstance(part, SliceDim) and part.stride > 1:
                yield "stride"
            elif isinstance(part, PaddingDim):
                yield from (w for w, on in _of_padding(part).items() if on)
    elif isinstance(value, int) and not isinstance(value, bool) and name.endswith("_count") and value > 1:
        yield name
    elif name == "sharding":
        yield "sharding"


def _of_padding(part: PaddingDim) -> dict[str, bool]:
    return {
        "negative": min(part.low, part.high) < 0,
        "interior": part.interior > 0,
        "edge": max(part.low, part.high) > 0,
    }


def _of_window(window: Window) -> Iterator[str]:
    for dim in window.dims:
        found = {
            "stride": dim.stride > 1,
            "base dilation": dim.base_dilation > 1,
            "window dilation": dim.window_dilation > 1,
            "reversal": dim.reversal,
            "pad": max(dim.pad_low, dim.pad_high) > 0,
            "negative pad": min(dim.pad_low, dim.pad_high) < 0,
            "whole": dim.size > 1 and dim.stride == 1,
        }
        yield from (f"window {word}" for word, on in found.items() if on)


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
    devices = graph.preferences.devices
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
    """The program: it returns the last value and all unread ones; what is then not needed is left out."""
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
    if graph.preferences.exchanges:
        attributes["replica_count"] = graph.preferences.devices
    elif graph.preferences.partitioned:
        attributes["num_partitions"] = graph.preferences.devices
        shard(graph, graph.builder.instructions)
    module = graph.builder.build_module(root)
    module.attributes = attributes
    if graph.preferences.devices == 1 and graph.chance(_WITH_LAYOUTS):
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


#: Instructions of a program on large arrays: the reference takes milliseconds for each. Floats are read from
#: bytes, in five instructions for each array: two patterns on floats have room.
_MOST_OF_LARGE = 32


def random_graph(rng: random.Random, preferences: Preferences, most: int) -> tuple[Module, frozenset[str]]:
    """A program of at most `most` instructions, and the names of the idioms in it."""
    shared = Shared(rng, preferences, most - 1)
    graph = Graph("main", shared)
    for _ in range(rng.choice([1, 1, 2])):
        graph.fresh(preferences.kind(rng), preferences.dims(rng))
    grow(graph, rng.randint(3, max(4, most // 3)))
    return finished(graph), frozenset(shared.idioms)


def idiom_graph(rng: random.Random, preferences: Preferences, most: int) -> tuple[Module, frozenset[str]]:
    """A program of a few idioms, each on what is there, with single operations between them."""
    shared = Shared(rng, preferences, most - 1)
    graph = Graph("main", shared)
    graph.fresh(preferences.kind(rng), preferences.dims(rng, 1, may_be_empty=False))
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


def large_graph(rng: random.Random, preferences: Preferences, most: int) -> tuple[Module, frozenset[str]]:
    """A short program on large arrays: patterns or parallel operations, elementwise ones between them."""
    shared = Shared(rng, preferences, min(most, _MOST_OF_LARGE) - 1)
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


def tiled_graph(rng: random.Random, preferences: Preferences, most: int) -> tuple[Module, frozenset[str]]:
    """What GPUs have code of several kinds for: a product or two in tiles, and other parallel operations."""
    shared = Shared(rng, preferences, most - 1)
    graph = Graph("main", shared)
    graph.fresh(preferences.kind(rng), preferences.dims(rng, 1, may_be_empty=False))
    for _ in range(rng.choice([1, 1, 2])):
        graph.attempt(lambda: steps_contraction.product_in_tiles(graph))
        grow(graph, rng.choice([0, 1, 1, 2]), _ELEMENTWISE)
        grow(graph, rng.choice([0, 0, 1]), _PARALLEL)
    return finished(graph), frozenset(shared.idioms)


def grow(graph: Graph, steps: int, opcodes: Mapping[str, float] | None = None) -> None:
    """Add operations, of some opcodes or of any, as many as are tried and do not decline."""
    for _ in range(steps):
        opcode = draw_opcode(graph) if opcodes is None else graph.preferences.one_of(graph.rng, opcodes)
        x = graph.pick()
        assert x is not None
        graph.attempt(lambda opcode=opcode, x=x: STEPS[opcode](graph, opcode, x))  # type: ignore[misc]
