"""Steps of random graphs: moving elements, and where values come from."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from hlotool.fuzz.programs.draft import Declined, Dims, limit_of
from hlotool.fuzz.programs.graph import Graph
from hlotool.fuzz.programs.steps import step
from hlotool.ir.attributes import PaddingDim, SliceDim
from hlotool.ir.module import Instruction
from hlotool.ir.types import ELEMENT_TYPES, ArrayShape, ElementType, Layout, TypeClass


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
    kind = graph.taste.kind(graph.rng)
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
    return graph.parameter(shape if graph.chance() else ArrayShape(graph.taste.kind(graph.rng), shape.dims))
