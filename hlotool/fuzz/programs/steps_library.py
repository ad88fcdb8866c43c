"""Steps of random graphs: linear algebra, transforms, batch normalisation, random bits."""

from __future__ import annotations

from hlotool.fuzz.programs.draft import Declined, limit_of, typed
from hlotool.fuzz.programs.graph import Graph
from hlotool.fuzz.programs.steps import step
from hlotool.fuzz.programs.steps_functions import at_least, of_types
from hlotool.ir.attributes import AttributeValue
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, ElementType, TupleShape

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
    if graph.taste.integers_only:
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
