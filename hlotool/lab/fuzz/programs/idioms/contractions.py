"""Idioms of products of matrices."""

from __future__ import annotations

from math import prod

from hlotool.ir.attributes import AttributeValue
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, ElementType
from hlotool.lab.fuzz.programs.draft import Declined, Dims, limit_of
from hlotool.lab.fuzz.programs.graph import Graph
from hlotool.lab.fuzz.programs.idioms.arithmetic import product
from hlotool.lab.fuzz.programs.idioms.movement import padded, reversed_, sliced
from hlotool.lab.fuzz.programs.idioms.reductions import any_reducer, reduced
from hlotool.lab.fuzz.programs.idioms.table import NUMBERS, idiom
from hlotool.lab.fuzz.programs.limits import compiles
from hlotool.lab.fuzz.programs.steps_movement import reshape


def _dot(g: Graph, x: Instruction, y: Instruction, **dims: Dims) -> Instruction:
    kind = x.array_shape.element_type
    contracting = dims["lhs_contracting_dims"]
    terms = max(1, prod(x.array_shape.dims[d] for d in contracting))
    if kind.is_inexact:
        share = (limit_of(kind) / terms) ** 0.5
        x, y = g.tamed(x, share), g.tamed(y, share)
    attributes: dict[str, AttributeValue] = dict(dims)
    reach = terms * g.reach_of(x) * g.reach_of(y)
    return g.with_attributes("dot", (x, y), attributes, reach=reach)


def _matrix(g: Graph, x: Instruction) -> Instruction:
    """`x` as a matrix of a type that is multiplied."""
    if not compiles("dot", x.array_shape.element_type):
        raise Declined("not multiplied")
    dims = x.array_shape.dims
    return x if len(dims) == 2 else g.reshape(x, (prod(dims[:1]), prod(dims[1:])))


def _product(g: Graph, a: Instruction, columns: int | None = None) -> Instruction:
    """`a` times another matrix that may be transposed."""
    kind, (_, inner) = a.array_shape.element_type, a.array_shape.dims
    n = columns or g.choose([1, 2, 3, 5])
    turned = g.chance()
    b = g.array(kind, (n, inner) if turned else (inner, n))
    return _dot(g, a, b, lhs_contracting_dims=(1,), rhs_contracting_dims=(1 if turned else 0,))


@idiom("dot of broadcast", 1, NUMBERS)
def _dot_of_broadcast(g: Graph, x: Instruction) -> None:
    """A sum, scaled."""
    a = _matrix(g, x)
    kind, (_, inner) = a.array_shape.element_type, a.array_shape.dims
    n = g.choose([1, 2, 4])
    vector = g.array(kind, g.choose([(), (inner,), (n,)]))
    places: Dims = () if not vector.array_shape.dims else (0,) if vector.dims == (inner,) else (1,)
    b = g.broadcast(vector, (inner, n), places)
    _dot(g, a, b, lhs_contracting_dims=(1,), rhs_contracting_dims=(0,))


@idiom("transpose of dot", 1, NUMBERS)
def _transpose_of_dot(g: Graph, x: Instruction) -> None:
    g.op("transpose", _product(g, _matrix(g, x)), dimensions=(1, 0))


@idiom("dot of transpose", 1, NUMBERS)
def _dot_of_transpose(g: Graph, x: Instruction) -> None:
    _product(g, g.op("transpose", _matrix(g, x), dimensions=(1, 0)))


@idiom("dot of reshape", 2, NUMBERS)
def _dot_of_reshape(g: Graph, x: Instruction) -> None:
    """Contracted dimensions merged or split."""
    y = reshape(g, "reshape", x)
    if y.array_shape.rank < 1:
        raise Declined("nothing to contract")
    _product(g, _matrix(g, y))


@idiom("dot of dot", 1, NUMBERS)
def _dot_of_dot(g: Graph, x: Instruction) -> None:
    _product(g, _product(g, _matrix(g, x)))


@idiom("dot of concatenate", 1, NUMBERS)
def _dot_of_concatenate(g: Graph, x: Instruction) -> None:
    a = _matrix(g, x)
    _product(g, g.op("concatenate", a, g.like(a), dimensions=(g.choose([0, 1]),)))


@idiom("dot of pad", 1, NUMBERS)
def _dot_of_pad(g: Graph, x: Instruction) -> None:
    """Zeros contribute nothing; other numbers do."""
    y = padded(g, _matrix(g, x))
    if not y.array_shape.size:
        raise Declined("nothing is left")
    _product(g, y)


@idiom("slice of dot", 1, NUMBERS)
def _slice_of_dot(g: Graph, x: Instruction) -> None:
    sliced(g, _product(g, _matrix(g, x)))


@idiom("dot of reverse", 1, NUMBERS)
def _dot_of_reverse(g: Graph, x: Instruction) -> None:
    a = _matrix(g, x)
    b = g.array(a.array_shape.element_type, (a.dims[1], g.choose([1, 2, 3])))
    if g.chance():
        a, b = (g.op("reverse", v, dimensions=(d,)) for v, d in ((a, 1), (b, 0)))
    else:
        a = reversed_(g, a)
    _dot(g, a, b, lhs_contracting_dims=(1,), rhs_contracting_dims=(0,))


@idiom("dot over one element", 1, NUMBERS)
def _dot_over_one_element(g: Graph, x: Instruction) -> None:
    """An outer product."""
    if not compiles("dot", x.array_shape.element_type):
        raise Declined("not multiplied")
    a = g.reshape(x, (prod(x.array_shape.dims), 1))
    _product(g, a)


@idiom("one-hot dot", 1, NUMBERS)
def _one_hot_dot(g: Graph, x: Instruction) -> None:
    """A gather, written as a product with a mask."""
    a = _matrix(g, x)
    kind, (rows, _) = a.array_shape.element_type, a.array_shape.dims
    n = g.choose([1, 2, 3])
    places = g.array(ElementType.S32, (n,))
    dims = (n, rows)
    same = g.op("compare", g.broadcast(places, dims, (0,)), g.iota(ElementType.S32, dims, 1), direction="EQ")
    hot = g.op("convert", same, shape=ArrayShape(kind, dims), reach=1.0)
    _dot(g, hot, a, lhs_contracting_dims=(1,), rhs_contracting_dims=(0,))


@idiom("batch dot with one in the batch", 1, NUMBERS)
def _batch_of_one(g: Graph, x: Instruction) -> None:
    a = _matrix(g, x)
    a = g.reshape(a, (1, *a.dims))
    b = g.array(a.array_shape.element_type, (1, a.dims[2], g.choose([1, 3])))
    y = _dot(
        g,
        a,
        b,
        lhs_batch_dims=(0,),
        lhs_contracting_dims=(2,),
        rhs_batch_dims=(0,),
        rhs_contracting_dims=(1,),
    )
    g.reshape(y, y.dims[1:])


@idiom("norms of a dot", 1, NUMBERS)
def _norms_of_a_dot(g: Graph, x: Instruction) -> None:
    """Rows or columns of a product, squared or as they are, added up or compared: one call of a library.

    The other side has a few rows of its own, on the left or on the right, and what is contracted is most
    often the shorter side of the matrix.
    """
    a = _matrix(g, x)
    shorter = 0 if a.dims[0] < a.dims[1] else 1
    axis = shorter if g.chance(0.75) else 1 - shorter
    b = g.array(a.array_shape.element_type, (g.choose([1, 2, 3, 4, 5, 8]), a.dims[axis]))
    if g.chance():
        y = _dot(g, b, a, lhs_contracting_dims=(1,), rhs_contracting_dims=(axis,))
    else:
        y = _dot(g, a, b, lhs_contracting_dims=(axis,), rhs_contracting_dims=(1,))
    if g.chance():
        y = product(g, y, y)
    combine = "add" if g.chance() else any_reducer(g, y)
    reduced(g, y, combine, (g.choose([0, 1]),))


@idiom("small matrix for many rows", 1, NUMBERS)
def _small_matrix_for_many_rows(g: Graph, x: Instruction) -> None:
    """A matrix times every row of another array, its rows combined: a function of one point, for many."""
    kind, dims = x.array_shape.element_type, x.array_shape.dims
    if not compiles("dot", kind):
        raise Declined("not multiplied")
    width = g.choose([2, 3, 4])
    rows = max(*dims, *g.preferences.dims(g.rng, 1, 1, may_be_empty=False))
    points = x if len(dims) == 2 and dims[1] == width else g.fresh(kind, (rows, width))
    y = _dot(
        g,
        g.array(kind, (g.choose([1, 2, 3, 4]), width)),
        points,
        lhs_contracting_dims=(1,),
        rhs_contracting_dims=(1,),
    )
    if g.chance():
        y = product(g, y, y)
    reduced(g, y, "add" if g.chance() else any_reducer(g, y), (0,))


@idiom("sum of a product", 1, NUMBERS)
def _sum_of_a_product(g: Graph, x: Instruction) -> None:
    """A dot, written as a multiplication and a sum."""
    kind = x.array_shape.element_type
    if not compiles("dot", kind):
        raise Declined("not multiplied")
    axis = g.rng.randrange(x.array_shape.rank)
    y = g.like(x)
    if kind.is_inexact:
        share = (limit_of(kind) / (x.array_shape.size + 1)) ** 0.5
        x, y = g.tamed(x, share), g.tamed(y, share)
    reduced(g, g.op("multiply", x, y, reach=g.reach_of(x) * g.reach_of(y)), "add", (axis,))
