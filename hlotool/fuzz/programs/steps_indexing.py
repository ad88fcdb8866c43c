"""Steps of random graphs: reading and writing at computed positions."""

from __future__ import annotations

import numpy as np

from hlotool.fuzz.programs.draft import Declined, Dims, typed
from hlotool.fuzz.programs.graph import Graph
from hlotool.fuzz.programs.steps import step
from hlotool.fuzz.programs.steps_reduction import reducers_of, summands
from hlotool.ir.attributes import AttributeValue
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, ElementType

#: Types of start indices.
_INDEX_TYPES = typed("s32", "s32", "s32", "s64", "u32", "u8", "s8", "s16", "u64")


def start_indices(graph: Graph, dims: Dims) -> list[Instruction]:
    """One scalar for each dimension: constants inside and beyond both ends, or values of the program."""
    kind = graph.choose(_INDEX_TYPES)
    starts = []
    for size in dims:
        found = graph.pick(lambda s: s.element_type is kind and not s.dims)
        if found is not None and graph.chance(0.5):
            starts.append(found)
        elif graph.is_entry and graph.chance(0.2):
            starts.append(graph.parameter(ArrayShape(kind, ())))
        else:
            low = -2 if kind.is_signed else 0
            starts.append(graph.constant(min(graph.rng.randint(low, size + 1), 100), kind))
    return starts


def part_of(graph: Graph, dims: Dims) -> Dims:
    """Sizes of a window in an array of these dimensions."""
    return tuple(n if graph.chance(0.4) else graph.rng.randint(min(1, n), n) for n in dims)


@step("dynamic-slice")
def dynamic_slice(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """Of any size, with starts that are clamped."""
    dims = x.array_shape.dims
    if not dims:
        raise Declined("a scalar has no parts")
    sizes = part_of(graph, dims)
    return graph.op(
        opcode, x, *start_indices(graph, dims), dynamic_slice_sizes=sizes, reach=graph.reach_of(x)
    )


@step("dynamic-update-slice")
def dynamic_update_slice(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """By an update of any size."""
    shape = x.array_shape
    if not shape.dims:
        raise Declined("a scalar has no parts")
    update = graph.array(shape.element_type, part_of(graph, shape.dims))
    reach = max(graph.reach_of(x), graph.reach_of(update))
    return graph.op(opcode, x, update, *start_indices(graph, shape.dims), reach=reach)


def _index_array(graph: Graph, dims: Dims, most: int) -> Instruction:
    """Positions: small constants, some of them out of bounds, or a parameter, or an iota."""
    kind = graph.choose(_INDEX_TYPES)
    if dims and graph.chance(0.15) and 0 < max(dims) < 100:
        return graph.iota(kind, dims, graph.rng.randrange(len(dims)))
    found = graph.pick(lambda s: s.element_type.is_integer and s.dims == dims and s.element_type.bits >= 8)
    if found is not None and graph.chance(0.4):
        return found
    if graph.is_entry and graph.chance(0.4):
        return graph.parameter(ArrayShape(kind, dims))
    low = -1 if kind.is_signed else 0
    size = ArrayShape(kind, dims).size
    if size > 64:
        raise Declined("too many positions to write out")
    flat = [graph.rng.randint(low, min(most, 100)) for _ in range(size)]
    return graph.constant(np.array(flat, np.int64).reshape(dims), kind, dims)


class Windows:
    """Attributes of a gather or a scatter on an array of given dimensions, drawn at random.

    Attributes:
        slices: sizes of the windows.
        collapsed: dimensions of the operand, of size 1 in the window, that windows lack.
        operand_batch, indices_batch: dimensions that operand and indices share.
        mapped: dimensions of the operand that the components of an index mean.
        indices: dimensions of the indices.
        vector_dim: which of them holds the components.
        places: dimensions of the result that are the window's.
        result: dimensions of the result, or of the updates.
    """

    def __init__(self, graph: Graph, dims: Dims) -> None:
        rng, rank = graph.rng, len(dims)
        self.operand_batch = (rng.randrange(rank),) if rank > 1 and graph.chance(0.15) else ()
        others = [d for d in range(rank) if d not in self.operand_batch]
        self.mapped = tuple(rng.sample(others, rng.randint(1, len(others))))
        self.slices = tuple(
            1 if d in self.operand_batch else n if graph.chance(0.4) else rng.randint(1, n)
            for d, n in enumerate(dims)
        )
        self.collapsed = tuple(d for d in others if self.slices[d] == 1 and graph.chance(0.6))
        batch = [rng.randint(1, 4) for _ in range(rng.randint(0, 2))]
        self.indices_batch: Dims = ()
        if self.operand_batch:
            self.indices_batch = (rng.randint(0, len(batch)),)
            batch.insert(self.indices_batch[0], dims[self.operand_batch[0]])
        self.vector_dim = rng.randint(0, len(batch))
        implicit = len(self.mapped) == 1 and graph.chance(0.3)
        if implicit:
            self.vector_dim, self.indices = len(batch), tuple(batch)
        else:
            self.indices = (*batch[: self.vector_dim], len(self.mapped), *batch[self.vector_dim :])
            self.indices_batch = tuple(d + (d >= self.vector_dim) for d in self.indices_batch)
        hidden = (*self.collapsed, *self.operand_batch)
        window = [n for d, n in enumerate(self.slices) if d not in hidden]
        self.places = tuple(sorted(rng.sample(range(len(batch) + len(window)), len(window))))
        left, right = iter(window), iter(batch)
        self.result = tuple(
            next(left if d in self.places else right) for d in range(len(batch) + len(window))
        )
        self.largest = max(dims)


def _windows(graph: Graph, x: Instruction) -> Windows:
    dims = x.array_shape.dims
    if not dims or 0 in dims:
        raise Declined("nothing to find there")
    return Windows(graph, dims)


@step("gather")
def gather(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """Windows anywhere, their dimensions anywhere in the result, batch dimensions."""
    w = _windows(graph, x)
    attributes: dict[str, AttributeValue] = {
        "offset_dims": w.places,
        "collapsed_slice_dims": w.collapsed,
        "start_index_map": w.mapped,
        "index_vector_dim": w.vector_dim,
        "slice_sizes": w.slices,
    }
    if w.operand_batch:
        attributes["operand_batching_dims"] = w.operand_batch
        attributes["start_indices_batching_dims"] = w.indices_batch
    indices = _index_array(graph, w.indices, w.largest)
    return graph.with_attributes(opcode, (x, indices), attributes, reach=graph.reach_of(x))


@step("scatter")
def scatter(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """Windows combined into an array by a monoid, or by the update alone where no two overlap."""
    w = _windows(graph, x)
    kind = x.array_shape.element_type
    updates = graph.array(kind, w.result)
    indices = _index_array(graph, w.indices, w.largest)
    if kind is ElementType.F8E8M0FNU:
        raise Declined("has no sums")
    combine = graph.word(reducers_of(kind))
    attributes: dict[str, AttributeValue] = {
        "update_window_dims": w.places,
        "inserted_window_dims": w.collapsed,
        "scatter_dims_to_operand_dims": w.mapped,
        "index_vector_dim": w.vector_dim,
        "to_apply": graph.combiner(combine, kind),
    }
    if w.operand_batch:
        attributes["input_batching_dims"] = w.operand_batch
        attributes["scatter_indices_batching_dims"] = w.indices_batch
    count = updates.array_shape.size + 1
    (x, updates), reach = summands(graph, combine, count, x, updates)
    return graph.with_attributes(opcode, (x, indices, updates), attributes, reach=reach)
