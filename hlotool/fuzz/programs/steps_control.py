"""Steps of random graphs: calls, branches, loops, whose computations are random graphs themselves."""

from __future__ import annotations

from hlotool.fuzz.programs.draft import Declined, limit_of
from hlotool.fuzz.programs.graph import Graph
from hlotool.fuzz.programs.steps import STEPS, draw_opcode, step
from hlotool.fuzz.programs.steps_elementwise import BINARY, UNARY
from hlotool.ir.attributes import AttributeValue
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.opcodes import OPCODES, Class
from hlotool.ir.types import ArrayShape, ElementType, Shape, TupleShape

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
    # Whoever calls may pass larger numbers than those of x.
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
