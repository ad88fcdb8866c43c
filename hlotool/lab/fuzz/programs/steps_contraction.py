"""Steps of random graphs: products over contracted dimensions, and what libraries compute."""

from __future__ import annotations

from math import prod

from hlotool.ir.attributes import AttributeValue, ConvolutionDimensions
from hlotool.ir.module import Instruction
from hlotool.ir.shape_inference import infer_shape
from hlotool.ir.types import ELEMENT_TYPES, ArrayShape, ElementType, TupleShape
from hlotool.lab.fuzz.programs.draft import Declined, Dims, limit_of, typed
from hlotool.lab.fuzz.programs.graph import Graph, step
from hlotool.lab.fuzz.programs.limits import compiles
from hlotool.lab.fuzz.programs.steps_elementwise import at_least, of_types
from hlotool.lab.fuzz.programs.steps_reduction import positions, random_window

#: Result types other than the operands' own.
_WIDER = {
    "s8": "s32",
    "u8": "s32",
    "bf16": "f32",
    "f16": "f32",
    "f8e4m3fn": "f32",
    "f8e5m2": "f32",
    "s4": "s8",
}


def _factors(
    graph: Graph, x: Instruction, y: Instruction, terms: int, kind: ElementType
) -> tuple[Instruction, Instruction, float]:
    """Both such that `terms` products of their elements add up to a finite `kind`, and a bound on that."""
    limit = min(limit_of(kind), limit_of(x.array_shape.element_type))
    share = (limit / max(terms, 1)) ** 0.5
    x, y = graph.tamed(x, share), graph.tamed(y, share)
    return x, y, max(terms, 1) * graph.reach_of(x) * graph.reach_of(y)


def _result_type(graph: Graph, kind: ElementType) -> ElementType:
    wider = _WIDER.get(kind.value)
    return ELEMENT_TYPES[wider] if wider is not None and graph.chance() else kind


@step("dot")
def dot(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """Any number of batch, contracting and free dimensions, in any order."""
    if not compiles(opcode, x.array_shape.element_type) or x.array_shape.rank > 4:
        raise Declined("not multiplied")
    shape = x.array_shape
    order = graph.rng.sample(range(shape.rank), shape.rank)
    batch = order[: graph.choose([0, 0, 0, 1, 2])]
    contracting = order[len(batch) :][: graph.choose([0, 1, 1, 1, 2])]
    named = [("batch", d, shape.dims[d]) for d in batch] + [("sum", d, shape.dims[d]) for d in contracting]
    named += [("free", n, graph.choose([1, 2, 3, 4, 5, 8])) for n in range(graph.choose([0, 1, 1, 2]))]
    placed = graph.rng.sample(named, len(named))
    where = {(role, d): position for position, (role, d, _) in enumerate(placed)}
    y = graph.array(shape.element_type, tuple(size for _, _, size in placed))
    kind = _result_type(graph, shape.element_type)
    terms = prod(shape.dims[d] for d in contracting)
    x, y, reach = _factors(graph, x, y, terms, kind)
    attributes: dict[str, AttributeValue] = {
        "lhs_contracting_dims": tuple(contracting),
        "rhs_contracting_dims": tuple(where["sum", d] for d in contracting),
    }
    if batch:
        attributes["lhs_batch_dims"] = tuple(batch)
        attributes["rhs_batch_dims"] = tuple(where["batch", d] for d in batch)
    free = [n for d, n in enumerate(shape.dims) if d not in (*batch, *contracting)]
    free += [size for role, _, size in placed if role == "free"]
    result = ArrayShape(kind, (*(shape.dims[d] for d in batch), *free))
    if result.size * max(terms, 1) > 200_000:
        raise Declined("too many products")
    if graph.chance():
        return graph.with_attributes(opcode, (x, y), attributes, result, reach)
    return _swapped(graph, opcode, (y, x), attributes, kind, reach)


#: Sides of what tensor cores multiply at once, and a few of them.
_TILES = (8, 16, 16, 24, 32, 40)
#: What they multiply, and what other units do, by how often it is drawn.
_OF_TENSOR_CORES = {
    "s8": 3.0,
    "bf16": 3.0,
    "f32": 3.0,
    "f16": 2.0,
    "f8e4m3fn": 1.0,
    "f8e5m2": 1.0,
    "f64": 1.0,
}


def product_in_tiles(graph: Graph) -> None:
    """A product of two matrices of the sizes and types that tensor cores have code for, a row added to it."""
    types = {
        name: share
        for name, share in _OF_TENSOR_CORES.items()
        if not (graph.preferences.integers_only and ELEMENT_TYPES[name].is_inexact)
    }
    kind = ELEMENT_TYPES[graph.preferences.one_of(graph.rng, types)]
    rows, terms, columns = (graph.choose(_TILES) for _ in range(3))
    left, right = (graph.rng.randrange(2) for _ in range(2))
    x = graph.array(kind, (rows, terms) if left else (terms, rows))
    y = graph.array(kind, (columns, terms) if right else (terms, columns))
    result = _result_type(graph, kind)
    x, y, reach = _factors(graph, x, y, terms, result)
    contracted: dict[str, AttributeValue] = {
        "lhs_contracting_dims": (left,),
        "rhs_contracting_dims": (right,),
    }
    made = graph.with_attributes("dot", (x, y), contracted, ArrayShape(result, (rows, columns)), reach)
    if graph.chance():
        row = graph.tamed(graph.array(result, (columns,)), limit_of(result) / 2)
        added = graph.broadcast(row, (rows, columns), (1,))
        graph.op("add", graph.tamed(made, limit_of(result) / 2), added, reach=limit_of(result))


def _swapped(
    graph: Graph,
    opcode: str,
    operands: tuple[Instruction, Instruction],
    attributes: dict[str, AttributeValue],
    kind: ElementType,
    reach: float,
) -> Instruction:
    """The same product with its sides exchanged."""
    other = {"lhs": "rhs", "rhs": "lhs"}
    turned = {other[name[:3]] + name[3:]: value for name, value in attributes.items()}
    ordered = {name: turned[name] for name in sorted(turned)}
    inferred = infer_shape(opcode, [o.shape for o in operands], ordered)
    assert isinstance(inferred, ArrayShape)
    return graph.with_attributes(opcode, operands, ordered, ArrayShape(kind, inferred.dims), reach)


@step("convolution")
def convolution(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """Any number of spatial dimensions, any labels, groups."""
    kind = x.array_shape.element_type
    if not compiles(opcode, kind):
        raise Declined("not multiplied")
    count = graph.choose([0, 1, 1, 2, 2])
    spatial = tuple(graph.choose([1, 2, 3, 4, 5, 7]) for _ in range(count))
    window = random_window(graph, spatial, reversal=True)
    groups, mode = graph.choose([1, 1, 1, 2, 3]), graph.choose(["feature", "batch"])
    images, features, outputs = (graph.choose([1, 1, 2, 3]) for _ in range(3))
    images *= groups if mode == "batch" else 1
    outputs *= groups
    lhs_features = features * (groups if mode == "feature" else 1)
    sizes = tuple(positions(n, d) for n, d in zip(spatial, window.dims))
    lhs, lhs_at = _placed(graph, (images, lhs_features, *spatial))
    rhs, rhs_at = _placed(graph, (features, outputs, *(d.size for d in window.dims)))
    result, result_at = _placed(graph, (images // (groups if mode == "batch" else 1), outputs, *sizes))
    shape = x.array_shape
    left = x if shape.dims == lhs else graph.array(kind, lhs)
    right = graph.array(kind, rhs)
    terms = features * prod(d.size for d in window.dims)
    target = _result_type(graph, kind)
    left, right, reach = _factors(graph, left, right, terms, target)
    attributes: dict[str, AttributeValue] = {}
    if count:
        attributes["window"] = window
    attributes["dim_labels"] = ConvolutionDimensions(
        lhs_at[0], lhs_at[1], lhs_at[2:], rhs_at[0], rhs_at[1], rhs_at[2:], result_at[0], result_at[1],
        result_at[2:],
    )  # fmt: skip
    if groups > 1:
        attributes[f"{mode}_group_count"] = groups
    return graph.with_attributes(opcode, (left, right), attributes, ArrayShape(target, result), reach)


def _placed(graph: Graph, sizes: Dims) -> tuple[Dims, Dims]:
    """The sizes in a random order, and where each of them went; half of the time the usual order."""
    order = list(range(len(sizes)))
    if graph.chance():
        graph.rng.shuffle(order)
    return tuple(sizes[i] for i in order), tuple(order.index(i) for i in range(len(sizes)))


_LAPACK = frozenset(typed("f32", "f64"))


def _matrix(graph: Graph, x: Instruction) -> tuple[Instruction, int]:
    """A batch of square matrices whose elements are small, and the size of one."""
    x = of_types(graph, x, _LAPACK)
    kind = x.array_shape.element_type
    size = graph.choose([1, 2, 3, 4, 5])
    batch = graph.choose([(), (), (2,), (1,)])
    return graph.tamed(graph.array(kind, (*batch, size, size)), PIVOT / 4), size


#: On the diagonal: larger than what stands beside it, so that no solution is far off.
PIVOT = 32.0


def _on_the_diagonal(graph: Graph, a: Instruction, value: float) -> Instruction:
    """`a` with `value` on the diagonal of each of its matrices."""
    shape = a.array_shape
    rows, columns = (graph.iota(ElementType.S32, shape.dims, shape.rank - d) for d in (2, 1))
    diagonal = graph.op("compare", rows, columns, direction="EQ")
    return graph.op("select", diagonal, graph.filled(value, shape), a, reach=value)


@step("cholesky")
def cholesky(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """Of a matrix that is positive definite, of which one triangle is read."""
    a, size = _matrix(graph, x)
    a = _on_the_diagonal(graph, a, 8 * size * PIVOT)
    lower = graph.chance()
    factor = graph.op(opcode, a, lower=lower, reach=(8 * size * PIVOT) ** 0.5)
    # What stands in the other triangle is not specified.
    shape = factor.array_shape
    rows, columns = (graph.iota(ElementType.S32, shape.dims, shape.rank - d) for d in (2, 1))
    inside = graph.op("compare", rows, columns, direction="GE" if lower else "LE")
    return graph.op("select", inside, factor, graph.filled(0.0, shape), reach=graph.reach_of(factor))


@step("triangular-solve")
def triangular_solve(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """From both sides, of both triangles, transposed."""
    a, size = _matrix(graph, x)
    a = _on_the_diagonal(graph, a, PIVOT)
    shape = a.array_shape
    left, columns = graph.chance(), graph.choose([1, 2, 3])
    sides = (size, columns) if left else (columns, size)
    b = graph.tamed(graph.array(shape.element_type, (*shape.dims[:-2], *sides)), 100.0)
    attributes: dict[str, AttributeValue] = {
        "left_side": left,
        "lower": graph.chance(),
        "transpose_a": graph.word("NO_TRANSPOSE TRANSPOSE"),
        "unit_diagonal": False,
    }
    return graph.with_attributes(opcode, (a, b), attributes, reach=1e3)


@step("fft")
def fft(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """Complex, or from and to real numbers; along the last dimension or two."""
    kind = graph.word("FFT IFFT RFFT IRFFT")
    real = graph.choose(typed("f32", "f64"))
    pair = {ElementType.F32: ElementType.C64, ElementType.F64: ElementType.C128}[real]
    if graph.preferences.integers_only:
        raise Declined("there are only integers")
    rank = graph.choose([1, 1, 2])
    length = tuple(graph.choose([1, 2, 3, 4, 5, 8, 16]) for _ in range(rank))
    dims = (*graph.choose([(), (2,), (3,)]), *length)
    if kind == "IRFFT":
        dims = (*dims[:-1], dims[-1] // 2 + 1)
    operand = graph.array(real if kind == "RFFT" else pair, dims)
    operand = graph.tamed(operand, 1e3)
    reach = graph.reach_of(operand)
    for n in length:
        reach *= n
    return graph.op(opcode, operand, fft_type=kind, fft_length=length, reach=reach)


@step("batch-norm-training", "batch-norm-inference", "batch-norm-grad")
def batch_norm(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """Along any dimension of a few elements."""
    x = of_types(graph, x, _LAPACK)
    shape = x.array_shape
    if not shape.rank or not shape.size:
        raise Declined("nothing to normalise")
    axis = graph.rng.randrange(shape.rank)
    row = ArrayShape(shape.element_type, (shape.dims[axis],))
    x = graph.tamed(x, 100.0)
    scale, offset = (graph.tamed(graph.array(row.element_type, row.dims), 100.0) for _ in range(2))
    operands = [x, scale, offset]
    if opcode == "batch-norm-inference":
        mean = graph.tamed(graph.array(row.element_type, row.dims), 100.0)
        operands += [mean, at_least(graph, offset, 0.25)]
    elif opcode == "batch-norm-grad":
        operands = [x, scale, offset, at_least(graph, offset, 0.25), graph.tamed(graph.like(x), 100.0)]
    result = graph.op(opcode, *operands, epsilon=0.25, feature_index=axis, reach=limit_of(ElementType.F32))
    if opcode == "batch-norm-inference":
        return result
    return graph.op("get-tuple-element", result, index=graph.rng.randrange(3), reach=1e8)


@step("rng-bit-generator")
def random_bits(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """Of a generator whose bits are specified, and its next state; unsigned, as StableHLO makes them all."""
    algorithm, words = graph.choose([("rng_three_fry", 2), ("rng_philox", 2), ("rng_philox", 3)])
    state = graph.array(ElementType.U64, (words,))
    kind = graph.choose(typed("u8", "u16", "u32", "u64"))
    dims = x.array_shape.dims
    shape = TupleShape((state.array_shape, ArrayShape(kind, dims)))
    both = graph.op(opcode, state, shape=shape, algorithm=algorithm)
    return graph.op("get-tuple-element", both, index=graph.choose([0, 1, 1]))
