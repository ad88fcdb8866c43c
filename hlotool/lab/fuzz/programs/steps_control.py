"""Steps of random graphs: calls, loops and branches, and collectives."""

from __future__ import annotations

from hlotool.facts.scalar_form import neutral
from hlotool.ir.attributes import AttributeValue, ReplicaGroups
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.opcodes import OPCODES, Class, Trait, opcodes_with
from hlotool.ir.types import ArrayShape, ElementType, Shape, TupleShape
from hlotool.lab.fuzz.programs.draft import Declined, limit_of
from hlotool.lab.fuzz.programs.graph import STEPS, Graph, draw_opcode, step
from hlotool.lab.fuzz.programs.steps_elementwise import BINARY, UNARY
from hlotool.lab.fuzz.programs.steps_reduction import reducers_of, summands

#: Computations call others so deep.
_DEEPEST = 2

_S32 = ArrayShape(ElementType.S32, ())


def grown(graph: Graph, x: Instruction, steps: int) -> Instruction:
    """A value of the shape of `x` that some operations compute, of which the first is on `x`."""
    y = x
    for _ in range(steps):
        opcode = draw_opcode(graph)
        if OPCODES[opcode].opcode_class is Class.COLLECTIVE:
            # Not all devices run what others do in a branch.
            continue
        at = y
        graph.attempt(lambda opcode=opcode, at=at: STEPS[opcode](graph, opcode, at))  # type: ignore[misc]
        y = graph.values[-1]
    shape = x.array_shape
    if y is not x:
        candidates = [v for v in graph.values if v.array_shape == shape and v is not x]
        y = candidates[-1] if candidates else x
    if y is x:
        y = graph.op("copy", x)
    return y


def _inner(graph: Graph, name: str) -> Graph:
    if graph.depth >= _DEEPEST:
        raise Declined("deep enough")
    return graph.inner(name)


def _function(graph: Graph, name: str, shapes: tuple[Shape, ...], reach: float) -> Computation:
    """A random computation of arrays that returns one of the shape of its first parameter."""
    inner = _inner(graph, name)
    parameters = [inner.parameter(shape, reach) for shape in shapes]
    result = grown(inner, parameters[0], graph.rng.randint(1, 3))
    kind = result.array_shape.element_type
    if kind.is_inexact:
        result = inner.tamed(result, max(min(reach, limit_of(kind)), 1.0))
    return inner.built(result)


def _bound(graph: Graph, x: Instruction) -> float:
    """What results of computations are kept below."""
    kind = x.array_shape.element_type
    return max(1.0, min(graph.reach_of(x), limit_of(kind))) if kind.is_inexact else float("inf")


@step("call")
def call(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """Of one to three arrays."""
    operands = [x, *(graph.choose(graph.values) for _ in range(graph.choose([0, 1, 2])))]
    reach = _bound(graph, x)
    # The caller may pass larger numbers than those of x.
    most = max([reach, *(graph.reach_of(o) for o in operands)])
    called = _function(graph, "called", tuple(o.shape for o in operands), most)
    known = most if x.array_shape.element_type.is_inexact else float("inf")
    return graph.op(opcode, *operands, shape=x.shape, to_apply=called, reach=known)


@step("conditional")
def conditional(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """By a pred, or by a number that may be out of range."""
    reach = _bound(graph, x)
    shape = x.array_shape
    count = graph.choose([1, 2, 2, 2, 3])
    operands = [x if graph.chance() else graph.like(x) for _ in range(count)]
    most = max([reach, *(graph.reach_of(o) for o in operands)])
    branches = tuple(_function(graph, "branch", (shape,), most) for _ in range(count))
    if count == 2 and graph.chance(0.6):
        index = graph.array(ElementType.PRED, ())
        attributes: dict[str, AttributeValue] = {
            "true_computation": branches[0], "false_computation": branches[1],
        }  # fmt: skip
    else:
        index = graph.array(ElementType.S32, ())
        attributes = {"branch_computations": branches}
    return graph.with_attributes(opcode, (index, *operands), attributes, shape, most)


@step("while")
def loop(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """A counted loop: a number of trips that the text says, or one that depends on a value."""
    shape = x.array_shape
    reach = _bound(graph, x)
    trips: Instruction | None = None
    if graph.chance(0.4):
        asked = graph.op("and", graph.array(ElementType.S32, ()), graph.constant(7, ElementType.S32))
        trips = asked
    invariant = graph.choose(graph.values) if graph.chance(0.4) else None
    counter = graph.constant(graph.choose([0, 0, 0, 1, 3, -1]), ElementType.S32)
    others = [v for v in (trips, invariant) if v is not None]
    held = [counter, x, *others]
    state = TupleShape(tuple(v.array_shape for v in held))
    step_size = graph.choose([1, 1, 1, 2, 3])
    condition = _condition(graph, state, 2 if trips is not None else None)
    inner = _inner(graph, "body")
    carried = inner.parameter(state)
    taken = [inner.op("get-tuple-element", carried, index=i) for i in range(len(held))]
    for part, value in zip(taken, held):
        inner.reach[part] = graph.reach_of(value)
    inner.reach[taken[1]] = reach
    result = grown(inner, taken[1], graph.rng.randint(1, 4))
    if shape.element_type.is_inexact:
        result = inner.tamed(result, reach)
    following = inner.op("add", taken[0], inner.constant(step_size, ElementType.S32))
    body = inner.built(inner.op("tuple", following, result, *taken[2:]))
    start = graph.op("tuple", *held)
    end = graph.op(opcode, start, shape=state, condition=condition, body=body)
    index = 0 if graph.chance(0.1) else 1
    return graph.op("get-tuple-element", end, index=index, reach=reach)


def _condition(graph: Graph, state: TupleShape, limit: int | None) -> Computation:
    """The counter is below what the state holds at `limit`, or below a constant."""
    inner = _inner(graph, "condition")
    carried = inner.parameter(state)
    counter = inner.op("get-tuple-element", carried, index=0)
    if limit is not None:
        most = inner.op("get-tuple-element", carried, index=limit)
    else:
        most = inner.constant(graph.choose([0, 1, 2, 3, 5, 8]), ElementType.S32)
    if graph.chance(0.2):
        return inner.built(inner.op("compare", most, counter, direction="GT"))
    return inner.built(inner.op("compare", counter, most, direction="LT"))


@step("map")
def map_elements(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """One or two arrays by a small computation of scalars."""
    kind = x.array_shape.element_type
    unary = [o for o, families in UNARY.items() if kind.family in families and o not in ("real", "imag")]
    binary = [o for o, families in BINARY.items() if kind.family in families]
    first, second = graph.word(binary), graph.word([o for o in unary if o != "is-finite"] or ["copy"])
    if kind.is_complex or kind is ElementType.F8E8M0FNU:
        raise Declined("its functions leave the type")
    y = graph.like(x)
    if kind.is_inexact:
        share = limit_of(kind) ** 0.5 / 2
        x, y = graph.tamed(x, share), graph.tamed(y, share)

    def body(g: Graph) -> Instruction:
        a, b = (g.parameter(ArrayShape(kind, ())) for _ in range(2))
        return g.op(first, a, g.op(second, b))

    to_apply = graph.helper(("map", first, second, kind), body, "mapped")
    reach = max(graph.reach_of(x), graph.reach_of(y), 2.0) ** 2
    dimensions = tuple(range(x.array_shape.rank))
    return graph.op(opcode, x, y, dimensions=dimensions, to_apply=to_apply, reach=reach)


def _size(graph: Graph, bound: int) -> Instruction:
    """A number from 0 to `bound`: a constant, or computed."""
    if graph.chance(0.4):
        return graph.constant(graph.rng.randint(0, bound), ElementType.S32)
    zero, most = graph.constant(0, ElementType.S32), graph.constant(bound, ElementType.S32)
    return graph.op("clamp", zero, graph.array(ElementType.S32, ()), most)


@step("set-dimension-size")
def set_dimension_size(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """Cut at run time, computed with, and combined along the dimension, or asked for its size."""
    shape = x.array_shape
    if not shape.rank or not shape.size or shape.element_type.bits < 8:
        raise Declined("nothing to cut")
    kind = shape.element_type
    axis = graph.rng.randrange(shape.rank)
    reach = graph.reach_of(x)
    cut = graph.op(opcode, x, _size(graph, shape.dims[axis]), dimensions=(axis,), reach=reach)
    if graph.chance(0.4) and kind is not ElementType.PRED:
        cut = graph.op("negate", cut)
    if graph.chance(0.3):
        order = tuple(graph.rng.sample(range(shape.rank), shape.rank))
        cut, axis = graph.op("transpose", cut, dimensions=order), order.index(axis)
    if graph.chance(0.3):
        return graph.op("get-dimension-size", cut, dimensions=(axis,))
    combine = graph.word(reducers_of(kind))
    init = graph.constant(neutral(combine, kind), kind)
    (cut, init), reach = summands(graph, combine, shape.size, cut, init)
    axes = tuple(sorted({axis, *(d for d in range(shape.rank) if graph.chance(0.3))}))
    to_apply = graph.combiner(combine, kind)
    return graph.op("reduce", cut, init, dimensions=axes, to_apply=to_apply, reach=reach)


@step("get-dimension-size")
def get_dimension_size(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """Of an array of known size."""
    rank = x.array_shape.rank
    if not rank:
        raise Declined("a scalar has no dimensions")
    return graph.op(opcode, x, dimensions=(graph.rng.randrange(rank),))


def groups(graph: Graph) -> tuple[ReplicaGroups, int]:
    """All devices in groups of equal size, in any order, and that size."""
    devices = graph.preferences.devices
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
    devices = graph.preferences.devices
    targets = graph.rng.sample(range(devices), devices)
    pairs = [(source, target) for source, target in enumerate(targets) if graph.chance(0.8)]
    return graph.op(opcode, x, source_target_pairs=tuple(pairs))


@step("partition-id", "replica-id")
def device_number(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """Which device this is, as large as what is there."""
    if not graph.is_entry or graph.preferences.partitioned:
        raise Declined("only where all devices come by")
    number = graph.op(opcode)
    shape = ArrayShape(ElementType.U32, x.array_shape.dims)
    return graph.broadcast(number, shape.dims, ()) if shape.dims else number
