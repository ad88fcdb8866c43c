"""Steps of random graphs: data movement, and reading and writing at positions that are data."""

from __future__ import annotations

from math import prod

import numpy as np
from msgspec.structs import replace

from hlotool.ir.attributes import AttributeValue, PaddingDim, SliceDim
from hlotool.ir.module import Instruction
from hlotool.ir.types import ELEMENT_TYPES, ArrayShape, ElementType, Layout, TypeClass
from hlotool.lab.fuzz.programs.draft import Declined, Dims, limit_of, typed
from hlotool.lab.fuzz.programs.graph import Graph, step
from hlotool.lab.fuzz.programs.steps_reduction import reducers_of, summands


@step("broadcast")
def broadcast(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """New dimensions anywhere; now and then the old ones change places."""
    target = list(x.array_shape.dims)
    places = list(range(len(target)))
    for _ in range(graph.choose([1, 1, 2])):
        position = graph.rng.randint(0, len(target))
        target.insert(position, graph.choose([1, 2, 3, 4, 5, 8]))
        places = [p + (p >= position) for p in places]
    if len(target) > 5:
        raise Declined("of too many dimensions")
    if graph.chance(0.15):
        order = graph.rng.sample(range(len(places)), len(places))
        sizes = [x.array_shape.dims[i] for i in order]
        for place, size in zip(places, sizes):
            target[place] = size
        moved = [0] * len(places)
        for place, i in zip(places, order):
            moved[i] = place
        places = moved
    return graph.broadcast(x, tuple(target), tuple(places))


@step("reshape")
def reshape(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """Dimensions merged, split, of size one added or removed, in other order."""
    dims = x.array_shape.dims
    options: list[Dims] = [
        (prod(dims),),
        dims[::-1],
        (1, *dims),
        (*dims, 1),
        tuple(n for n in dims if n != 1),
    ]
    if dims:
        d = graph.rng.randrange(len(dims))
        factors = [n for n in range(2, dims[d]) if dims[d] % n == 0]
        options += [(*dims[:d], n, dims[d] // n, *dims[d + 1 :]) for n in factors[:3]]
        merged = graph.rng.randint(1, len(dims))
        options += [(prod(dims[:merged]), *dims[merged:]), (*dims[:merged], prod(dims[merged:]))]
    target = graph.choose([o for o in options if o != dims and len(o) <= 5] or [dims])
    return graph.reshape(x, target)


@step("transpose")
def transpose(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """Any permutation."""
    rank = x.array_shape.rank
    return graph.op(opcode, x, dimensions=tuple(graph.rng.sample(range(rank), rank)))


@step("reverse")
def reverse(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """Some dimensions, or none."""
    rank = x.array_shape.rank
    chosen = graph.rng.sample(range(rank), graph.rng.randint(min(1, rank), rank))
    return graph.op(opcode, x, dimensions=tuple(sorted(chosen)))


def random_slice(graph: Graph, size: int) -> SliceDim:
    """Of a dimension of this size; empty now and then."""
    if not size or graph.chance(0.35):
        return SliceDim(0, size)
    start = graph.rng.randrange(size)
    low = start if graph.chance(0.03) else start + 1
    return SliceDim(start, graph.rng.randint(low, size), graph.choose([1, 1, 1, 2, 3]))


@step("slice")
def static_slice(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """Any part, with strides."""
    return graph.op(opcode, x, slice=tuple(random_slice(graph, n) for n in x.array_shape.dims))


def random_padding(graph: Graph, size: int) -> PaddingDim:
    """Of a dimension of this size: edges grow or are cut, elements are moved apart."""
    if graph.chance(0.4):
        return PaddingDim(0, 0)
    interior = graph.choose([0, 0, 0, 1, 2])
    grown = size + max(0, size - 1) * interior
    low = graph.rng.randint(-min(grown // 2, 2), 3)
    return PaddingDim(low, graph.rng.randint(-min((grown + min(0, low)) // 2, 2), 3), interior)


@step("pad")
def pad(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """Edges and interior, also negative."""
    shape = x.array_shape
    if not shape.rank:
        raise Declined("XLA's text of it cannot be read")
    padding = tuple(random_padding(graph, n) for n in shape.dims)
    return graph.op(opcode, x, graph.scalar(shape.element_type), padding=padding)


@step("concatenate")
def concatenate(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """Values of equal dimensions but one."""
    shape = x.array_shape
    if not shape.rank:
        raise Declined("a scalar has no sides")
    axis = graph.rng.randrange(shape.rank)
    parts = [x]
    for _ in range(graph.choose([0, 1, 1, 1, 2, 3])):
        if graph.chance(0.25):
            parts.append(graph.choose(parts))
            continue
        y = graph.pick(
            lambda s: (
                s.element_type is shape.element_type
                and s.rank == shape.rank
                and all(d == axis or a == b for d, (a, b) in enumerate(zip(s.dims, shape.dims)))
            )
        )
        size = graph.choose([0, 1, 1, 2, 3, 4])
        dims = (*shape.dims[:axis], size, *shape.dims[axis + 1 :])
        parts.append(y if y is not None and graph.chance(0.6) else graph.array(shape.element_type, dims))
    graph.rng.shuffle(parts)
    return graph.op(opcode, *parts, dimensions=(axis,))


@step("copy")
def copy(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """In another layout, or the same."""
    shape = x.array_shape
    if shape.rank > 1 and graph.chance(0.7):
        order = tuple(graph.rng.sample(range(shape.rank), shape.rank))
        copied = graph.op(opcode, x, shape=replace(shape, layout=Layout(order)))
        return graph.op("copy", copied, shape=shape.without_layout())
    return graph.op(opcode, x, shape=shape.without_layout())


@step("bitcast-convert")
def bitcast_convert(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """Between integers, or from floats, whose bits are known but for NaN; widths may differ."""
    shape = x.array_shape
    source = shape.element_type
    if source is ElementType.PRED or source.is_complex:
        raise Declined("has no bits to read")
    families = (TypeClass.SIGNED, TypeClass.UNSIGNED)
    kinds = [t for t in ELEMENT_TYPES.values() if t.family in families and t.bits > 1]
    fitting = [t for t in kinds if t.bits <= source.bits and source.bits % t.bits == 0]
    if shape.dims:
        fitting += [t for t in kinds if t.bits == source.bits * shape.dims[-1] and t not in fitting]
    target = graph.choose(fitting)
    if target.bits < source.bits:
        dims = (*shape.dims, source.bits // target.bits)
    else:
        dims = shape.dims if target.bits == source.bits else shape.dims[:-1]
    return graph.op(opcode, x, shape=ArrayShape(target, dims))


@step("iota")
def iota(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """As large as something that is there."""
    dims = x.array_shape.dims or (graph.rng.randint(1, 9),)
    kind = graph.preferences.kind(graph.rng)
    dimension = graph.rng.randrange(len(dims))
    if kind in (ElementType.PRED, ElementType.F8E8M0FNU) or dims[dimension] > limit_of(kind):
        raise Declined("of which there is no iota")
    return graph.iota(kind, dims, dimension)


@step("constant")
def constant(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """An array of known numbers of the shape of what is there."""
    shape = x.array_shape
    if shape.size > 64:
        raise Declined("too large to be written out")
    return graph.constant(graph.numbers(shape.element_type, shape.dims), shape.element_type, shape.dims)


@step("tuple", "get-tuple-element", "opt-barrier")
def through_a_tuple(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """A value taken out of a tuple, which a barrier may guard."""
    others = [graph.choose(graph.values) for _ in range(graph.choose([0, 1, 1, 2]))]
    parts = graph.rng.sample([x, *others], 1 + len(others))
    held = graph.op("tuple", *parts)
    if opcode == "opt-barrier" or graph.chance(0.3):
        held = graph.op("opt-barrier", held)
    index = parts.index(x)
    return graph.op("get-tuple-element", held, index=index, reach=graph.reach_of(x))


@step("after-all", "add-dependency")
def ordered(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """A value that waits for a token."""
    return graph.op("add-dependency", x, graph.op("after-all"), reach=graph.reach_of(x))


@step("parameter")
def parameter(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """Another parameter of the program."""
    if not graph.is_entry:
        raise Declined("a callee takes what it is given")
    shape = x.array_shape
    return graph.parameter(
        shape if graph.chance() else ArrayShape(graph.preferences.kind(graph.rng), shape.dims)
    )


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
