"""Idioms of control flow and of several devices."""

from __future__ import annotations

from hlotool.ir.attributes import AttributeValue, ReplicaGroups, SliceDim
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.types import ArrayShape, ElementType, TupleShape
from hlotool.lab.fuzz.programs.draft import Declined, Dims, limit_of
from hlotool.lab.fuzz.programs.graph import Graph
from hlotool.lab.fuzz.programs.idioms.arithmetic import total
from hlotool.lab.fuzz.programs.idioms.table import INTEGERS, NUMBERS, idiom
from hlotool.lab.fuzz.programs.steps_control import groups
from hlotool.lab.fuzz.programs.steps_reduction import reducers_of, summands

_S32 = ElementType.S32


def _loop(
    g: Graph,
    held: list[Instruction],
    body: Computation,
    start: int,
    limit: int,
    direction: str,
    kind: ElementType = _S32,
) -> Instruction:
    """A while whose counter, the first of what it carries, is compared with a constant."""
    state = TupleShape(tuple(v.array_shape for v in held))
    inner = g.inner("condition")
    counter = inner.op("get-tuple-element", inner.parameter(state), index=0)
    bound = inner.constant(limit, kind)
    if g.chance(0.25):
        mirrored = {"LT": "GT", "LE": "GE", "NE": "NE", "GT": "LT", "GE": "LE"}[direction]
        condition = inner.built(inner.op("compare", bound, counter, direction=mirrored))
    else:
        condition = inner.built(inner.op("compare", counter, bound, direction=direction))
    return g.op("while", g.op("tuple", *held), shape=state, condition=condition, body=body)


def _parts(g: Graph, state: TupleShape) -> tuple[Graph, list[Instruction]]:
    """A body and what it is given."""
    if g.depth > 1:
        raise Declined("deep enough")
    inner = g.inner("body")
    carried = inner.parameter(state)
    return inner, [inner.op("get-tuple-element", carried, index=i) for i in range(len(state.elements))]


#: Start, step, limit, direction of loops: several trips, one, none.
_COUNTS = (
    (0, 1, 5, "LT"), (0, 1, 5, "LE"), (0, 2, 5, "LT"), (0, 2, 6, "NE"), (1, 3, 10, "LE"), (7, 1, 7, "LT"),
    (0, 1, 0, "LE"), (3, 1, 9, "NE"), (10, -1, 0, "GT"), (10, -3, 0, "GE"), (2, 5, 3, "LT"), (9, 1, 2, "LT"),
)  # fmt: skip


@idiom("trip count", families=INTEGERS)
def _trip_count(g: Graph, x: Instruction) -> None:
    """Known from start, step, limit and direction; also none, and types whose counter wraps."""
    kind = x.array_shape.element_type if x.array_shape.element_type.bits in (8, 32, 64) else _S32
    start, step, limit, direction = g.choose(_COUNTS)
    if kind.is_unsigned and (step < 0 or direction == "GE"):
        raise Declined("never below zero")
    counter = g.constant(start, kind)
    state = TupleShape((counter.array_shape, x.array_shape))
    inner, (i, v) = _parts(g, state)
    grown = inner.op(g.word("add xor subtract"), v, inner.filled(g.choose([1, 2, 3]), x.array_shape))
    if step < 0 and g.chance():
        i = inner.op("subtract", i, inner.constant(-step, kind))
    else:
        i = inner.op("add", i, inner.constant(step, kind))
    body = inner.built(inner.op("tuple", i, grown))
    end = _loop(g, [counter, x], body, start, limit, direction, kind)
    g.op("get-tuple-element", end, index=g.choose([0, 1, 1]))


@idiom("loop with an invariant", families=NUMBERS)
def _loop_with_invariant(g: Graph, x: Instruction) -> None:
    """What does not change, and what is computed of it, may move out; two that are equal may be one."""
    counter = g.constant(0, _S32)
    y = x if g.chance(0.3) else g.like(x)
    held = [counter, x, y]
    inner, (i, v, w) = _parts(g, TupleShape(tuple(h.array_shape for h in held)))
    kind = x.array_shape.element_type
    if kind.is_inexact:
        v = inner.tamed(v, limit_of(kind) ** 0.5 / 8)
    moved = inner.op(g.word("negate copy"), w) if not kind.is_unsigned else inner.op("not", w)
    v = inner.op(g.word("maximum minimum"), v, moved)
    i = inner.op("add", i, inner.constant(1, _S32))
    body = inner.built(inner.op("tuple", i, v, w))
    end = _loop(g, held, body, 0, g.choose([1, 2, 4]), "LT")
    g.op("get-tuple-element", end, index=g.choose([1, 2]), reach=max(map(g.reach_of, (x, y))))


@idiom("loop with a dead carry", families=NUMBERS)
def _loop_with_dead_carry(g: Graph, x: Instruction) -> None:
    """A value that only itself needs, and two that change places."""
    counter, dead = g.constant(0, _S32), g.like(x)
    other = g.like(x)
    held = [counter, x, other, dead]
    inner, (i, v, w, d) = _parts(g, TupleShape(tuple(h.array_shape for h in held)))
    i = inner.op("add", i, inner.constant(1, _S32))
    d = inner.op("maximum", d, v)
    body = inner.built(inner.op("tuple", i, w, v, d))
    end = _loop(g, held, body, 0, g.choose([1, 2, 3]), "LT")
    g.op("get-tuple-element", end, index=g.choose([1, 2]), reach=max(map(g.reach_of, (x, other))))


@idiom("loop over slices", 1)
def _loop_over_slices(g: Graph, x: Instruction) -> None:
    """Row by row: read by the counter, written to a buffer by it; what a scan becomes."""
    dims = x.array_shape.dims
    n = dims[0]
    if n > 20:
        raise Declined("too many trips")
    counter = g.constant(0, _S32)
    buffer = g.filled(0, x.array_shape)
    held = [counter, x, buffer]
    inner, (i, v, out) = _parts(g, TupleShape(tuple(h.array_shape for h in held)))
    zero = inner.constant(0, _S32)
    at = i
    if g.chance(0.4):
        at = inner.op("subtract", inner.constant(n - 1, _S32), i)
    rest = [zero] * (len(dims) - 1)
    row = inner.op("dynamic-slice", v, i, *rest, dynamic_slice_sizes=(1, *dims[1:]))
    if g.chance() and not x.array_shape.element_type.is_inexact:
        row = inner.op("not", row)
    out = inner.op("dynamic-update-slice", out, row, at, *rest)
    i = inner.op("add", i, inner.constant(1, _S32))
    body = inner.built(inner.op("tuple", i, v, out))
    end = _loop(g, held, body, 0, g.choose([n, n, max(1, n - 1)]), "LT")
    g.op("get-tuple-element", end, index=2, reach=g.reach_of(x))


@idiom("loop of an iota", 1, INTEGERS, bits=32)
def _loop_of_an_iota(g: Graph, x: Instruction) -> None:
    """The counter spread over an array, added up."""
    kind = x.array_shape.element_type
    if kind.bits != 32:
        raise Declined("the counter has another type")
    counter = g.constant(0, kind)
    held = [counter, x]
    inner, (i, v) = _parts(g, TupleShape(tuple(h.array_shape for h in held)))
    v = inner.op(g.word("add subtract xor"), v, inner.broadcast(i, x.array_shape.dims, ()))
    i = inner.op("add", i, inner.constant(1, kind))
    body = inner.built(inner.op("tuple", i, v))
    end = _loop(g, held, body, 0, g.choose([2, 3, 6]), "LT", kind)
    g.op("get-tuple-element", end, index=1)


def _branch(g: Graph, shape: ArrayShape, form: str) -> Computation:
    """A small computation of one array."""
    if g.depth > 1:
        raise Declined("deep enough")
    inner = g.inner("branch")
    x = inner.parameter(shape)
    if form == "same":
        return inner.built(inner.op("copy", x))
    if form == "fill":
        return inner.built(inner.filled(inner.number(shape.element_type), shape))
    reverse = tuple(range(shape.rank))
    return inner.built(inner.op("reverse", x, dimensions=reverse))


@idiom("conditional by a constant")
def _conditional_by_a_constant(g: Graph, x: Instruction) -> None:
    """One branch is dead."""
    p = g.constant(g.chance(), ElementType.PRED)
    branches = [_branch(g, x.array_shape, g.choose(["same", "fill", "reverse"])) for _ in range(2)]
    attributes: dict[str, AttributeValue] = {
        "true_computation": branches[0], "false_computation": branches[1],
    }  # fmt: skip
    g.with_attributes("conditional", (p, x, x), attributes, x.array_shape, max(g.reach_of(x), 4.0))


@idiom("conditional with equal branches")
def _conditional_with_equal_branches(g: Graph, x: Instruction) -> None:
    """Or the same operation last in both."""
    index = g.array(_S32, ())
    form = g.choose(["same", "reverse"])
    branches = tuple(_branch(g, x.array_shape, form) for _ in range(g.choose([1, 2, 3])))
    attributes: dict[str, AttributeValue] = {"branch_computations": branches}
    g.with_attributes("conditional", (index, *[x] * len(branches)), attributes, x.array_shape, g.reach_of(x))


@idiom("call of a call")
def _call_of_a_call(g: Graph, x: Instruction) -> None:
    inner = g.inner("outer")
    if g.depth > 1:
        raise Declined("deep enough")
    p = inner.parameter(x.array_shape)
    branch = _branch(inner, x.array_shape, g.choose(["same", "reverse"]))
    y = inner.op("call", p, shape=x.array_shape, to_apply=branch)
    outer = inner.built(y)
    g.op("call", x, shape=x.array_shape, to_apply=outer, reach=g.reach_of(x))


@idiom("elements of a tuple of elements")
def _elements_of_elements(g: Graph, x: Instruction) -> None:
    """A tuple taken apart and put together, its elements exchanged."""
    y = g.choose(g.values)
    first = g.op("tuple", x, y)
    a, b = (g.op("get-tuple-element", first, index=i, reach=g.reach_of(v)) for i, v in enumerate((x, y)))
    second = g.op("tuple", b, a)
    index = g.rng.randrange(2)
    g.op("get-tuple-element", second, index=index, reach=g.reach_of((b, a)[index]))


@idiom("tokens in a chain")
def _tokens_in_a_chain(g: Graph, x: Instruction) -> None:
    token = g.op("after-all", g.op("after-all"), g.op("after-all"))
    g.op("add-dependency", x, token, reach=g.reach_of(x))


@idiom("size set and asked for", 1, INTEGERS, bits=8)
def _size_set_and_asked_for(g: Graph, x: Instruction) -> None:
    """A dynamic size that is a constant, or the whole."""
    n = x.array_shape.dims[0]
    size = g.constant(g.choose([n, max(0, n - 1), 1]), _S32)
    cut = g.op("set-dimension-size", x, size, dimensions=(0,))
    asked = g.op("get-dimension-size", cut, dimensions=(0,))
    total(g, "add", asked, g.array(_S32, ()))


# Several devices.


def _exchangeable(x: Instruction) -> None:
    kind = x.array_shape.element_type
    if kind.bits < 16 and kind.is_inexact:
        raise Declined("not exchanged")


def _all_reduce(g: Graph, x: Instruction, combine: str, among: ReplicaGroups, size: int) -> Instruction:
    (x,), reach = summands(g, combine, size, x)
    to_apply = g.combiner(combine, x.array_shape.element_type)
    return g.op("all-reduce", x, replica_groups=among, to_apply=to_apply, reach=reach)


def _combine(g: Graph, x: Instruction) -> str:
    allowed = [c for c in reducers_of(x.array_shape.element_type) if c in ("add", "maximum", "minimum")]
    return g.word(allowed)


@idiom("all-reduce of all-reduce", 0, NUMBERS, several=True, bits=8)
def _all_reduce_of_all_reduce(g: Graph, x: Instruction) -> None:
    """Among the same devices, among others."""
    _exchangeable(x)
    among, size = groups(g)
    combine = _combine(g, x)
    y = _all_reduce(g, x, combine, among, size)
    if g.chance():
        among, size = groups(g)
    _all_reduce(g, y, combine, among, size)


@idiom("all-reduce of sums", 0, NUMBERS, several=True, bits=8)
def _all_reduce_of_sums(g: Graph, x: Instruction) -> None:
    """Two all-reduces added, and one of a negation."""
    _exchangeable(x)
    among, size = groups(g)
    y = g.like(x)
    a = _all_reduce(g, x, "add", among, size)
    b = _all_reduce(g, y, "add", among, size)
    total(g, g.word("add subtract"), a, b)


@idiom("all-reduce of a fill", 0, NUMBERS, several=True, bits=8)
def _all_reduce_of_a_fill(g: Graph, x: Instruction) -> None:
    """The number of devices, times."""
    _exchangeable(x)
    among, size = groups(g)
    _all_reduce(g, g.filled(g.choose([0, 1, 2]), x.array_shape), _combine(g, x), among, size)


@idiom("own part of an all-reduce", 1, NUMBERS, several=True, bits=8)
def _own_part_of_all_reduce(g: Graph, x: Instruction) -> None:
    """A slice at the number of the device: a reduce-scatter, if that is its place in the group."""
    _exchangeable(x)
    dims = x.array_shape.dims
    among, size = groups(g)
    rows = max(1, dims[0] // g.preferences.devices)
    y = _all_reduce(g, x, "add", among, size)
    number = g.op("convert", g.op("replica-id"), shape=ArrayShape(_S32, ()))
    at = g.op("multiply", number, g.constant(rows, _S32))
    zero = g.constant(0, _S32)
    sizes: Dims = (rows, *dims[1:])
    starts = [at, *[zero] * (len(dims) - 1)]
    g.op("dynamic-slice", y, *starts, dynamic_slice_sizes=sizes, reach=g.reach_of(y))


@idiom("slice of all-gather", 1, several=True, bits=8)
def _slice_of_all_gather(g: Graph, x: Instruction) -> None:
    """One device's part, or everybody's first."""
    _exchangeable(x)
    among, size = groups(g)
    axis = g.rng.randrange(x.array_shape.rank)
    y = g.op("all-gather", x, replica_groups=among, dimensions=(axis,))
    n = x.array_shape.dims[axis]
    start = n * g.rng.randrange(size)
    parts = [SliceDim(0, m) for m in y.array_shape.dims]
    parts[axis] = SliceDim(start, start + n)
    g.op("slice", y, slice=tuple(parts))


@idiom("permute of permute", 0, several=True, bits=8)
def _permute_of_permute(g: Graph, x: Instruction) -> None:
    """There and back, or further; those left out get zeros."""
    _exchangeable(x)
    n = g.preferences.devices
    targets = g.rng.sample(range(n), n)
    pairs = tuple((s, t) for s, t in enumerate(targets) if g.chance(0.85))
    y = g.op("collective-permute", x, source_target_pairs=pairs)
    back = tuple((t, s) for s, t in pairs) if g.chance() else tuple((s, (s + 1) % n) for s in range(n))
    g.op("collective-permute", y, source_target_pairs=back)


@idiom("all-to-all and back", 1, several=True, bits=8)
def _all_to_all_and_back(g: Graph, x: Instruction) -> None:
    _exchangeable(x)
    among, size = groups(g)
    dims = x.array_shape.dims
    y = g.array(x.array_shape.element_type, (size * g.choose([1, 2]), *dims[1:]))
    y = g.op("all-to-all", y, replica_groups=among, dimensions=(0,))
    g.op("all-to-all", y, replica_groups=among, dimensions=(0,))


@idiom("collective of a transpose", 2, NUMBERS, several=True, bits=8)
def _collective_of_a_transpose(g: Graph, x: Instruction) -> None:
    _exchangeable(x)
    among, size = groups(g)
    order = tuple(g.rng.sample(range(x.array_shape.rank), x.array_shape.rank))
    y = _all_reduce(g, g.op("transpose", x, dimensions=order), _combine(g, x), among, size)
    g.op("transpose", y, dimensions=tuple(order.index(d) for d in range(len(order))))
