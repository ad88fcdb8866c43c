"""Steps of random graphs: combining elements."""

from __future__ import annotations

from collections.abc import Sequence

from hlotool.facts.scalar_form import neutral
from hlotool.ir.attributes import AttributeValue, Window, WindowDim
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.shapes.base import Op
from hlotool.ir.shapes.reduction import windowed_size
from hlotool.ir.types import ArrayShape, ElementType, TupleShape
from hlotool.lab.fuzz.programs.draft import Declined, Dims, limit_of
from hlotool.lab.fuzz.programs.graph import Graph, step
from hlotool.lab.fuzz.programs.limits import compiles


def reducers_of(kind: ElementType) -> list[str]:
    """Opcodes that combine elements of a type, in whatever order."""
    if kind is ElementType.F8E8M0FNU:
        raise Declined("has no sums")
    bitwise, extrema = opcodes_with(Trait.BITWISE), opcodes_with(Trait.EXTREMUM)
    found = opcodes_with(Trait.ASSOCIATIVE)
    if kind is ElementType.PRED:
        found &= bitwise
    elif not kind.is_integer:
        found -= bitwise | extrema if kind.is_complex else bitwise
    return sorted(found)


def summands(
    graph: Graph, opcode: str, count: int, *values: Instruction
) -> tuple[tuple[Instruction, ...], float]:
    """The values such that `count` of their elements combine to a finite float, and a bound on that.

    Raises:
        Declined: a product of so many floats shows nothing.
    """
    kind = values[0].array_shape.element_type
    if not kind.is_inexact or opcode in ("maximum", "minimum"):
        return values, max(map(graph.reach_of, values))
    limit = limit_of(kind)
    if opcode == "multiply":
        if count > 12:
            raise Declined("too many factors")
        share = limit ** (1 / (count + 1))
        tamed = tuple(graph.tamed(v, share) for v in values)
        return tamed, max(1.0, *map(graph.reach_of, tamed)) ** (count + 1)
    tamed = tuple(graph.tamed(v, limit / (count + 1)) for v in values)
    return tamed, (count + 1) * max(map(graph.reach_of, tamed))


def _axes(graph: Graph, rank: int) -> Dims:
    if not rank:
        raise Declined("a scalar has nothing to combine")
    return tuple(
        sorted(graph.rng.sample(range(rank), graph.choose([n for n in (1, 1, 2, 3, 4) if n <= rank])))
    )


@step("reduce")
def reduce(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """By a monoid, to the largest element and its place, or by composing affine maps."""
    return graph.rng.choices([_monoid, _arg_largest, _affine], [8, 1, 1])[0](graph, x)


def _monoid(graph: Graph, x: Instruction) -> Instruction:
    shape = x.array_shape
    combine = graph.word(reducers_of(shape.element_type))
    axes = _axes(graph, shape.rank)
    count = 1
    for d in axes:
        count *= shape.dims[d]
    init = graph.constant(neutral(combine, shape.element_type), shape.element_type)
    (x, init), reach = summands(graph, combine, count, x, init)
    to_apply = graph.combiner(combine, shape.element_type)
    return graph.op("reduce", x, init, dimensions=axes, to_apply=to_apply, reach=reach)


def _arg_largest(graph: Graph, x: Instruction) -> Instruction:
    """Two results: an extreme element and the first place where it is."""
    shape = x.array_shape
    kind = shape.element_type
    if not shape.rank or kind.is_complex or kind is ElementType.PRED or kind.bits < 8:
        raise Declined("nothing to compare")
    if kind is ElementType.F8E8M0FNU:
        raise Declined("has no sign")
    axis = graph.rng.randrange(shape.rank)
    direction = graph.word("GT LT")
    places = graph.iota(ElementType.S32, shape.dims, axis)
    extreme = neutral({"GT": "maximum", "LT": "minimum"}[direction], kind)
    inits = graph.constant(extreme, kind), graph.constant(0, ElementType.S32)
    to_apply = graph.helper(("arg", direction, kind), lambda g: _extreme(g, kind, direction), "arg")
    both = graph.op("reduce", x, places, *inits, dimensions=(axis,), to_apply=to_apply)
    index = graph.rng.randrange(2)
    return graph.op("get-tuple-element", both, index=index, reach=graph.reach_of(x))


def _extreme(g: Graph, kind: ElementType, direction: str) -> Instruction:
    """(value, place) of the more extreme, of equal ones the first."""
    a, i, b, j = (g.parameter(ArrayShape(t, ())) for t in (kind, ElementType.S32) * 2)
    more = g.op("compare", a, b, direction=direction)
    same = g.op("and", g.op("compare", a, b, direction="EQ"), g.op("compare", i, j, direction="LT"))
    first = g.op("or", more, same)
    return g.op("tuple", g.op("select", more, a, b), g.op("select", first, i, j))


def _affine(graph: Graph, x: Instruction) -> Instruction:
    """The composition of maps v -> scale * v + offset: associative, and the order of the elements shows."""
    shape = x.array_shape
    kind = shape.element_type
    if not shape.rank or not kind.is_integer or kind.bits < 8:
        raise Declined("exact for integers only")
    y = graph.like(x)
    axis = graph.rng.randrange(shape.rank)
    inits = graph.constant(1, kind), graph.constant(0, kind)

    def compose(g: Graph) -> Instruction:
        scale, offset, scale_2, offset_2 = (g.parameter(ArrayShape(kind, ())) for _ in range(4))
        moved = g.op("add", g.op("multiply", scale_2, offset), offset_2)
        return g.op("tuple", g.op("multiply", scale, scale_2), moved)

    to_apply = graph.helper(("affine", kind), compose, "affine")
    both = graph.op("reduce", x, y, *inits, dimensions=(axis,), to_apply=to_apply)
    return graph.op("get-tuple-element", both, index=graph.rng.randrange(2))


def random_window(graph: Graph, dims: Dims, *, plain: bool = False, reversal: bool = False) -> Window:
    """A window that has a position in each dimension; `plain` ones have no dilation and cut nothing off."""
    return Window(tuple(_window_dim(graph, n, plain, reversal) for n in dims))


def _window_dim(graph: Graph, size: int, plain: bool, reversal: bool) -> WindowDim:
    for _ in range(8):
        if graph.chance(0.3):
            dim = WindowDim(1)
        else:
            least = 0 if plain or graph.chance(0.8) else -1
            dim = WindowDim(
                size=graph.choose([1, 2, 2, 3, 4]),
                stride=graph.choose([1, 1, 1, 2, 3]),
                pad_low=graph.choose([least, 0, 0, 1, 2]),
                pad_high=graph.choose([least, 0, 0, 1, 2]),
                base_dilation=1 if plain else graph.choose([1, 1, 1, 2]),
                window_dilation=1 if plain else graph.choose([1, 1, 1, 2]),
                reversal=reversal and graph.chance(0.3),
            )
        # XLA's CPU compiler dies where padding takes all of a dimension away.
        left = (size - 1) * dim.base_dilation + 1 + min(0, dim.pad_low) + min(0, dim.pad_high)
        if left > 0 and positions(size, dim) > 0:
            return dim
    return WindowDim(1)


def positions(size: int, dim: WindowDim) -> int:
    """How often a window fits into a dimension."""
    return windowed_size(Op("reduce-window", (), {}), size, dim)


@step("reduce-window")
def reduce_window(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """By a monoid."""
    shape = x.array_shape
    if not shape.rank:
        raise Declined("a scalar has no windows")
    combine = graph.word(reducers_of(shape.element_type))
    window = random_window(graph, shape.dims)
    count = 1
    for dim in window.dims:
        count *= dim.size
    init = graph.constant(neutral(combine, shape.element_type), shape.element_type)
    (x, init), reach = summands(graph, combine, count, x, init)
    to_apply = graph.combiner(combine, shape.element_type)
    return graph.op(opcode, x, init, window=window, to_apply=to_apply, reach=reach)


@step("select-and-scatter")
def select_and_scatter(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """The gradient of a pooling."""
    shape = x.array_shape
    kind = shape.element_type
    if (
        not shape.rank
        or not shape.size
        or kind.is_complex
        or kind in (ElementType.PRED, ElementType.F8E8M0FNU)
    ):
        raise Declined("nothing to select")
    window = random_window(graph, shape.dims, plain=True)
    source = graph.array(kind, tuple(positions(n, d) for n, d in zip(shape.dims, window.dims)))
    init = graph.constant(0, kind)
    (source, init), reach = summands(graph, "add", source.array_shape.size, source, init)
    direction = graph.word("GE GT LE LT")

    def compare(g: Graph) -> Instruction:
        a, b = (g.parameter(ArrayShape(kind, ())) for _ in range(2))
        return g.op("compare", a, b, direction=direction)

    attributes: dict[str, AttributeValue] = {
        "window": window,
        "select": graph.helper(("compare", direction, kind), compare, "select"),
        "scatter": graph.combiner("add", kind),
    }
    return graph.with_attributes(opcode, (x, source, init), attributes, reach=reach)


def comparator(
    graph: Graph, kinds: Sequence[ElementType], direction: str, keys: int, swapped: bool = False
) -> Computation:
    """Whether the first `keys` operands come before: the second decides where the first are equal."""

    def make(g: Graph) -> Instruction:
        sides = [g.parameter(ArrayShape(kind, ())) for kind in kinds for _ in range(2)]
        pairs = [(sides[2 * i], sides[2 * i + 1]) for i in range(len(kinds))]
        result: Instruction | None = None
        for a, b in reversed(pairs[:keys]):
            a, b = (b, a) if swapped else (a, b)
            before = _compared(g, a, b, direction)
            result = before if result is None else g.op("select", _compared(g, a, b, "EQ"), result, before)
        assert result is not None
        return result

    return graph.helper(("compare", tuple(kinds), direction, keys, swapped), make, "compare")


def _compared(g: Graph, a: Instruction, b: Instruction, direction: str) -> Instruction:
    if a.array_shape.element_type.is_floating:
        return g.op("compare", a, b, direction=direction, type="TOTALORDER")
    return g.op("compare", a, b, direction=direction)


@step("sort")
def sort(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """Stable, with payloads, by one or two keys; floats in total order."""
    shape = x.array_shape
    if not shape.rank or not compiles(opcode, shape.element_type):
        raise Declined("not sorted by XLA")
    operands = [x]
    for _ in range(graph.choose([0, 0, 1, 2])):
        kind = graph.choose([shape.element_type, ElementType.S32, ElementType.U8])
        operands.append(graph.array(kind, shape.dims))
    kinds = [o.array_shape.element_type for o in operands]
    keys = 2 if len(operands) > 1 and graph.chance(0.3) else 1
    compare = comparator(graph, kinds, graph.word("LT GT"), keys, graph.chance(0.15))
    # Without payloads equal elements cannot be told apart, and an unstable sort gives the same.
    stable = len(operands) > 1 or graph.chance()
    attributes: dict[str, AttributeValue] = {
        "dimensions": (graph.rng.randrange(shape.rank),), "to_apply": compare,
    }  # fmt: skip
    if stable:
        attributes["is_stable"] = True
    result = graph.with_attributes(opcode, operands, attributes)
    if len(operands) == 1:
        return result
    index = graph.rng.randrange(len(operands))
    return graph.op("get-tuple-element", result, index=index, reach=graph.reach_of(operands[index]))


@step("topk")
def topk(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """The extreme elements of the last dimension, or where they are."""
    shape = x.array_shape
    if not shape.rank or not shape.dims[-1] or not compiles(opcode, shape.element_type):
        raise Declined("nothing on top")
    if shape.element_type is ElementType.U8 or shape.rank > 2:
        raise Declined("XLA's CPU compiler takes no more")
    k = graph.rng.randint(1, shape.dims[-1])
    both = graph.op(opcode, x, k=k, largest=True)
    return graph.op(
        "get-tuple-element", both, index=graph.rng.randrange(2), reach=max(graph.reach_of(x), 600.0)
    )


@step("scan")
def scan(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """A running combination along one dimension."""
    shape = x.array_shape
    kind = shape.element_type
    if not shape.rank or not shape.size or kind.is_complex or kind.bits < 8 or kind is ElementType.F8E8M0FNU:
        raise Declined("nothing to run over")
    axis = graph.rng.randrange(shape.rank)
    rest = (*shape.dims[:axis], *shape.dims[axis + 1 :])
    combine = graph.word("and or" if kind is ElementType.PRED else "add maximum minimum")
    carry = graph.array(kind, rest)
    (x, carry), reach = summands(graph, combine, shape.dims[axis], x, carry)
    item = ArrayShape(kind, rest)

    def body(g: Graph) -> Instruction:
        element, carried = g.parameter(item), g.parameter(item)
        combined = g.op(combine, carried, element)
        return g.op("tuple", combined, combined)

    attributes: dict[str, AttributeValue] = {
        "dimensions": (axis,),
        "is_reverse": graph.chance(),
        "num_carries": 1,
        "to_apply": graph.helper(("scan", combine, item), body, "scan"),
    }
    both = graph.with_attributes(opcode, (x, carry), attributes, TupleShape((shape, item)))
    return graph.op("get-tuple-element", both, index=graph.rng.randrange(2), reach=reach)
