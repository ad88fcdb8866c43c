"""Steps of random graphs: between devices, which are replicas of one program."""

from __future__ import annotations

from hlotool.fuzz.programs.draft import Declined
from hlotool.fuzz.programs.graph import Graph
from hlotool.fuzz.programs.steps import step
from hlotool.fuzz.programs.steps_reduction import reducers_of, summands
from hlotool.ir.attributes import AttributeValue, ReplicaGroups
from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import ArrayShape, ElementType


def groups(graph: Graph) -> tuple[ReplicaGroups, int]:
    """All devices in groups of equal size, in any order, and that size."""
    devices = graph.taste.devices
    size = graph.choose([n for n in range(1, devices + 1) if devices % n == 0][-3:])
    order = list(range(devices))
    if graph.chance(0.4):
        graph.rng.shuffle(order)
    listed = tuple(tuple(order[i : i + size]) for i in range(0, devices, size))
    return ReplicaGroups(groups=listed), size


def _exchanged(graph: Graph, x: Instruction) -> Instruction:
    """An array in the entry, where all devices come by: of a type that XLA's CPU devices exchange."""
    kind = x.array_shape.element_type
    if not graph.is_entry:
        raise Declined("not all devices run what others do in a branch")
    if not x.array_shape.size:
        raise Declined("StableHLO gathers nothing of no elements")
    if kind.bits < 8 or (kind.is_narrow_float and kind.bits == 8):
        raise Declined("not exchanged")
    return x


def _reducers(kind: ElementType) -> list[str]:
    left_out = {"xor"} if kind is ElementType.PRED else opcodes_with(Trait.BITWISE)
    return [opcode for opcode in reducers_of(kind) if opcode not in left_out]


@step("all-reduce")
def all_reduce(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """By a monoid."""
    x = _exchanged(graph, x)
    kind = x.array_shape.element_type
    replica_groups, size = groups(graph)
    combine = graph.word(_reducers(kind))
    (x,), reach = summands(graph, combine, size, x)
    to_apply = graph.combiner(combine, kind)
    return graph.op(opcode, x, replica_groups=replica_groups, to_apply=to_apply, reach=reach)


@step("reduce-scatter")
def reduce_scatter(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """Along a dimension that is made to be divisible."""
    x = _exchanged(graph, x)
    shape = x.array_shape
    kind = shape.element_type
    replica_groups, size = groups(graph)
    if not shape.rank:
        raise Declined("nothing to scatter")
    axis = graph.rng.randrange(shape.rank)
    x = _divisible(graph, x, axis, size)
    combine = graph.word(_reducers(kind))
    (x,), reach = summands(graph, combine, size, x)
    attributes: dict[str, AttributeValue] = {
        "replica_groups": replica_groups,
        "dimensions": (axis,),
        "to_apply": graph.combiner(combine, kind),
    }
    return graph.with_attributes(opcode, (x,), attributes, reach=reach)


def _divisible(graph: Graph, x: Instruction, axis: int, size: int) -> Instruction:
    """`x`, or something like it with a multiple of `size` elements along the dimension."""
    shape = x.array_shape
    rounded = max(1, -(-shape.dims[axis] // size)) * size
    if rounded == shape.dims[axis]:
        return x
    return graph.array(shape.element_type, (*shape.dims[:axis], rounded, *shape.dims[axis + 1 :]))


@step("all-gather")
def all_gather(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """Along any dimension."""
    x = _exchanged(graph, x)
    replica_groups, _ = groups(graph)
    if not x.array_shape.rank:
        raise Declined("nothing to gather along")
    axis = graph.rng.randrange(x.array_shape.rank)
    return graph.op(opcode, x, replica_groups=replica_groups, dimensions=(axis,))


@step("all-to-all")
def all_to_all(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """Cut and joined along one dimension."""
    x = _exchanged(graph, x)
    shape = x.array_shape
    replica_groups, size = groups(graph)
    if not shape.rank:
        raise Declined("nothing to cut")
    axis = graph.rng.randrange(shape.rank)
    x = _divisible(graph, x, axis, size)
    return graph.op(opcode, x, replica_groups=replica_groups, dimensions=(axis,))


@step("collective-permute")
def collective_permute(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """Each device sends to one other at most; who receives nothing gets zeros."""
    x = _exchanged(graph, x)
    devices = graph.taste.devices
    targets = graph.rng.sample(range(devices), devices)
    pairs = [(source, target) for source, target in enumerate(targets) if graph.chance(0.8)]
    return graph.op(opcode, x, source_target_pairs=tuple(pairs))


@step("partition-id", "replica-id")
def device_number(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """Which device this is, as large as what is there."""
    if not graph.is_entry or graph.taste.partitioned:
        raise Declined("only where all devices come by")
    number = graph.op(opcode)
    shape = ArrayShape(ElementType.U32, x.array_shape.dims)
    return graph.broadcast(number, shape.dims, ()) if shape.dims else number
