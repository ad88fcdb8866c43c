"""Idioms of reductions, contractions, sorts, gathers and scatters."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from hlotool.fuzz.programs.graph import Declined, Dims, Graph, limit_of, typed
from hlotool.fuzz.programs.idioms.movement import padded, reversed_, sliced, widened
from hlotool.fuzz.programs.idioms.table import BITS, INTEGERS, NUMBERS, idiom
from hlotool.fuzz.programs.steps_movement import random_padding, reshape, transpose
from hlotool.fuzz.programs.steps_reduction import comparator, neutral, random_window, reducers_of, summands
from hlotool.ir.attributes import AttributeValue, SliceDim, Window, WindowDim
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, ElementType

#: What XLA's CPU compiler multiplies and sorts.
_USUAL = frozenset(typed("s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64"))


def reduced(g: Graph, x: Instruction, combine: str, axes: Dims, init: object = None) -> Instruction:
    """`x` combined along `axes`, beginning with the neutral element unless `init` is given."""
    kind = x.array_shape.element_type
    start = g.constant(neutral(combine, kind) if init is None else init, kind)
    count = prod(x.array_shape.dims[d] for d in axes)
    (x, start), reach = summands(g, combine, count, x, start)
    to_apply = g.combiner(combine, kind)
    return g.op("reduce", x, start, dimensions=axes, to_apply=to_apply, reach=reach)


def axes_of(g: Graph, x: Instruction) -> Dims:
    """One dimension, or more."""
    rank = x.array_shape.rank
    return tuple(sorted(g.rng.sample(range(rank), g.rng.randint(1, rank))))


def any_reducer(g: Graph, x: Instruction) -> str:
    """What combines elements of the type."""
    return g.word(reducers_of(x.array_shape.element_type))


@idiom("reduce of reduce", 2, NUMBERS | BITS)
def _reduce_of_reduce(g: Graph, x: Instruction) -> None:
    """By one monoid, or by two, or with an initial value between."""
    combine = any_reducer(g, x)
    y = reduced(g, x, combine, (g.rng.randrange(x.array_shape.rank),))
    again = combine if g.chance(0.7) else any_reducer(g, x)
    reduced(g, y, again, axes_of(g, y), None if g.chance(0.7) else 1)


@idiom("reduce of broadcast", 1, NUMBERS | BITS)
def _reduce_of_broadcast(g: Graph, x: Instruction) -> None:
    """A product with the number of elements, or nothing."""
    y = widened(g, x)
    reduced(g, y, any_reducer(g, x), axes_of(g, y))


@idiom("reduce of fill", 1, NUMBERS | BITS)
def _reduce_of_fill(g: Graph, x: Instruction) -> None:
    y = g.filled(g.number(x.array_shape.element_type), x.array_shape)
    reduced(g, y, any_reducer(g, x), axes_of(g, y))


@idiom("reduce of transpose", 2, NUMBERS | BITS)
def _reduce_of_transpose(g: Graph, x: Instruction) -> None:
    y = transpose(g, "transpose", x)
    reduced(g, y, any_reducer(g, x), axes_of(g, y))


@idiom("reduce of reshape", 1, NUMBERS | BITS)
def _reduce_of_reshape(g: Graph, x: Instruction) -> None:
    y = reshape(g, "reshape", x)
    if not y.array_shape.rank:
        raise Declined("nothing to combine")
    reduced(g, y, any_reducer(g, x), axes_of(g, y))


@idiom("reduce of concatenate", 1, NUMBERS | BITS)
def _reduce_of_concatenate(g: Graph, x: Instruction) -> None:
    axis = g.rng.randrange(x.array_shape.rank)
    y = g.op("concatenate", x, g.like(x), dimensions=(axis,))
    reduced(g, y, any_reducer(g, x), axes_of(g, y))


@idiom("reduce of pad", 1, NUMBERS | BITS)
def _reduce_of_pad(g: Graph, x: Instruction) -> None:
    """With the neutral element, or with another one."""
    y = padded(g, x)
    reduced(g, y, any_reducer(g, x), axes_of(g, y))


@idiom("reduce of reverse", 1, NUMBERS | BITS)
def _reduce_of_reverse(g: Graph, x: Instruction) -> None:
    y = reversed_(g, x)
    reduced(g, y, any_reducer(g, x), axes_of(g, y))


@idiom("reduce of one element", 1, NUMBERS | BITS)
def _reduce_of_one_element(g: Graph, x: Instruction) -> None:
    """A reshape, if the initial value is neutral."""
    dims = x.array_shape.dims
    y = g.reshape(x, (1, *dims))
    reduced(g, y, any_reducer(g, x), (0,), None if g.chance(0.6) else 1)


@idiom("reduce of iota", 1, INTEGERS, bits=8)
def _reduce_of_iota(g: Graph, x: Instruction) -> None:
    shape = x.array_shape
    y = g.iota(shape.element_type, shape.dims, g.rng.randrange(shape.rank))
    reduced(g, y, any_reducer(g, x), axes_of(g, y))


@idiom("reduce of a mask", 1, NUMBERS)
def _reduce_of_a_mask(g: Graph, x: Instruction) -> None:
    """Elements that a predicate chooses, or how many it chooses."""
    p = g.array(ElementType.PRED, x.array_shape.dims)
    if g.chance():
        y = g.op("select", p, x, g.filled(0, x.array_shape))
    else:
        y = g.op("convert", p, shape=ArrayShape(ElementType.S32, x.array_shape.dims))
    reduced(g, y, "add", axes_of(g, y))


@idiom("scaled sum", 1, NUMBERS)
def _scaled_sum(g: Graph, x: Instruction) -> None:
    """A factor that may move out of a sum; a negation out of a maximum."""
    kind = x.array_shape.element_type
    if g.chance():
        x = g.tamed(x, limit_of(kind) / 64) if kind.is_inexact else x
        reduced(g, g.op("multiply", x, g.filled(2, x.array_shape)), "add", axes_of(g, x))
    else:
        reduced(g, g.op("negate", x), g.word("maximum minimum"), axes_of(g, x))


@idiom("mean", 1, NUMBERS)
def _mean(g: Graph, x: Instruction) -> None:
    """A sum divided by how many there are, and what is far from it."""
    axis = g.rng.randrange(x.array_shape.rank)
    dims = x.array_shape.dims
    most = limit_of(x.array_shape.element_type)
    if dims[axis] > most:
        raise Declined("more than the type counts")
    y = reduced(g, x, "add", (axis,))
    m = g.op("divide", y, g.filled(dims[axis], y.array_shape))
    back = g.broadcast(m, dims, tuple(d for d in range(len(dims)) if d != axis))
    g.op("subtract", x, back, reach=g.reach_of(x) * 2)


@idiom("cumulative sum", 1, INTEGERS)
def _cumulative_sum(g: Graph, x: Instruction) -> None:
    """A window over all that came before, from either end."""
    dims = x.array_shape.dims
    axis = g.rng.randrange(len(dims))
    n = dims[axis]
    edge = (n - 1, 0) if g.chance() else (0, n - 1)
    window = [WindowDim(1)] * len(dims)
    window[axis] = WindowDim(n, pad_low=edge[0], pad_high=edge[1])
    combine = any_reducer(g, x)
    _windowed(g, x, combine, Window(tuple(window)))


def _windowed(g: Graph, x: Instruction, combine: str, window: Window) -> Instruction:
    kind = x.array_shape.element_type
    init = g.constant(neutral(combine, kind), kind)
    (x, init), reach = summands(g, combine, prod(d.size for d in window.dims), x, init)
    to_apply = g.combiner(combine, kind)
    return g.op("reduce-window", x, init, window=window, to_apply=to_apply, reach=reach)


@idiom("pad into window", 1, NUMBERS)
def _pad_into_window(g: Graph, x: Instruction) -> None:
    """A pad that a window may take over, of its own initial value or another."""
    combine = any_reducer(g, x)
    kind = x.array_shape.element_type
    value = g.constant(neutral(combine, kind), kind) if g.chance(0.7) else g.scalar(kind)
    y = g.op("pad", x, value, padding=tuple(random_padding(g, n) for n in x.array_shape.dims))
    if not y.array_shape.size:
        raise Declined("nothing is left")
    _windowed(g, y, combine, random_window(g, y.array_shape.dims))


@idiom("window of window", 1, NUMBERS)
def _window_of_window(g: Graph, x: Instruction) -> None:
    combine = any_reducer(g, x)
    y = _windowed(g, x, combine, random_window(g, x.array_shape.dims))
    _windowed(g, y, combine if g.chance(0.7) else any_reducer(g, x), random_window(g, y.array_shape.dims))


@idiom("window that is a reduce", 1, NUMBERS)
def _window_that_is_a_reduce(g: Graph, x: Instruction) -> None:
    """As large as the dimension, and its size-one dimension taken off."""
    dims = x.array_shape.dims
    axis = g.rng.randrange(len(dims))
    window = tuple(WindowDim(n if d == axis else 1) for d, n in enumerate(dims))
    y = _windowed(g, x, any_reducer(g, x), Window(window))
    g.reshape(y, tuple(n for d, n in enumerate(dims) if d != axis))


@idiom("window of broadcast", 1, NUMBERS)
def _window_of_broadcast(g: Graph, x: Instruction) -> None:
    y = widened(g, x)
    _windowed(g, y, any_reducer(g, x), random_window(g, y.array_shape.dims))


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
    if x.array_shape.element_type not in _USUAL:
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
    if x.array_shape.element_type not in _USUAL:
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


@idiom("sum of a product", 1, NUMBERS)
def _sum_of_a_product(g: Graph, x: Instruction) -> None:
    """A dot, written as a multiplication and a sum."""
    kind = x.array_shape.element_type
    if kind not in _USUAL:
        raise Declined("not multiplied")
    axis = g.rng.randrange(x.array_shape.rank)
    y = g.like(x)
    if kind.is_inexact:
        share = (limit_of(kind) / (x.array_shape.size + 1)) ** 0.5
        x, y = g.tamed(x, share), g.tamed(y, share)
    reduced(g, g.op("multiply", x, y, reach=g.reach_of(x) * g.reach_of(y)), "add", (axis,))


def _sorted(g: Graph, operands: list[Instruction], axis: int, direction: str, keys: int = 1) -> Instruction:
    kinds = [o.array_shape.element_type for o in operands]
    compare = comparator(g, kinds, direction, keys)
    attributes: dict[str, AttributeValue] = {"dimensions": (axis,), "to_apply": compare, "is_stable": True}
    return g.with_attributes("sort", operands, attributes)


def _sortable(x: Instruction) -> None:
    if x.array_shape.element_type not in _USUAL:
        raise Declined("not sorted by XLA")


@idiom("argsort", 1, NUMBERS, bits=8)
def _argsort(g: Graph, x: Instruction) -> None:
    """With an iota as the payload; sorted again by it, that is its inverse."""
    _sortable(x)
    axis = g.rng.randrange(x.array_shape.rank)
    order = g.iota(ElementType.S32, x.array_shape.dims, axis)
    both = _sorted(g, [x, order], axis, g.word("LT GT"))
    where = g.op("get-tuple-element", both, index=1)
    if g.chance():
        again = _sorted(g, [where, order], axis, "LT")
        g.op("get-tuple-element", again, index=1)


@idiom("sort of iota", 1, INTEGERS, bits=8)
def _sort_of_iota(g: Graph, x: Instruction) -> None:
    """Sorted already, turned round, or constant along the dimension."""
    _sortable(x)
    shape = x.array_shape
    y = g.iota(shape.element_type, shape.dims, g.rng.randrange(shape.rank))
    _sorted(g, [y], g.rng.randrange(shape.rank), g.word("LT GT"))


@idiom("sort of sort", 1, NUMBERS, bits=8)
def _sort_of_sort(g: Graph, x: Instruction) -> None:
    _sortable(x)
    rank = x.array_shape.rank
    y = _sorted(g, [x], g.rng.randrange(rank), g.word("LT GT"))
    _sorted(g, [y], g.rng.randrange(rank), g.word("LT GT"))


@idiom("first of a sort", 1, NUMBERS, bits=8)
def _first_of_a_sort(g: Graph, x: Instruction) -> None:
    """The k extreme elements: a topk."""
    _sortable(x)
    dims = x.array_shape.dims
    last = len(dims) - 1
    operands = [x] if g.chance() else [x, g.iota(ElementType.S32, dims, last)]
    y = _sorted(g, operands, last, g.word("GT LT"))
    if len(operands) > 1:
        y = g.op("get-tuple-element", y, index=g.choose([0, 1]))
    k = g.rng.randint(1, dims[last])
    g.op("slice", y, slice=(*(SliceDim(0, n) for n in dims[:-1]), SliceDim(0, k)))


@idiom("sort with equal keys", 1, NUMBERS, bits=8)
def _sort_with_equal_keys(g: Graph, x: Instruction) -> None:
    """The payload keeps its order."""
    _sortable(x)
    shape = x.array_shape
    keys = g.filled(g.number(shape.element_type), shape)
    both = _sorted(g, [keys, x], g.rng.randrange(shape.rank), g.word("LT GT"))
    g.op("get-tuple-element", both, index=1, reach=g.reach_of(x))


def _rows(g: Graph, x: Instruction, places: Instruction) -> Instruction:
    """Rows of the first dimension of `x`."""
    dims = x.array_shape.dims
    attributes: dict[str, AttributeValue] = {
        "offset_dims": tuple(range(1, len(dims))),
        "collapsed_slice_dims": (0,),
        "start_index_map": (0,),
        "index_vector_dim": 1,
        "slice_sizes": (1, *dims[1:]),
    }
    return g.with_attributes("gather", (x, places), attributes, reach=g.reach_of(x))


def _places(g: Graph, count: int, limit: int) -> Instruction:
    """Rows to take: known ones in order, all of them, or values of the program."""
    form = g.rng.randrange(3)
    if form == 0:
        return g.iota(ElementType.S32, (count, 1), 0)
    if form == 1:
        start = g.choose([0, 1, -1])
        held = np.arange(start, start + count, dtype=np.int64).reshape(count, 1)
        return g.constant(held, ElementType.S32, (count, 1))
    return g.array(ElementType.S32, (count, 1))


@idiom("gather of known rows", 1)
def _gather_of_known_rows(g: Graph, x: Instruction) -> None:
    """A slice, where they follow each other."""
    n = x.array_shape.dims[0]
    _rows(g, x, _places(g, min(g.choose([1, 2, n, n + 1]), 20), n))


@idiom("gather of reshape", 1)
def _gather_of_reshape(g: Graph, x: Instruction) -> None:
    y = reshape(g, "reshape", x)
    if not y.array_shape.dims:
        raise Declined("has no rows")
    z = _rows(g, y, _places(g, g.choose([1, 2, 3]), y.dims[0]))
    reshape(g, "reshape", z)


@idiom("gather of broadcast", 1)
def _gather_of_broadcast(g: Graph, x: Instruction) -> None:
    y = widened(g, x)
    _rows(g, y, _places(g, g.choose([1, 2, 3]), y.dims[0]))


@idiom("gather of gather", 1)
def _gather_of_gather(g: Graph, x: Instruction) -> None:
    y = _rows(g, x, _places(g, g.choose([1, 2, 4]), x.dims[0]))
    _rows(g, y, _places(g, g.choose([1, 2, 4]), y.dims[0]))


def _scattered(
    g: Graph, x: Instruction, places: Instruction, updates: Instruction, combine: str
) -> Instruction:
    """Rows of `updates` combined into rows of `x`."""
    shape = x.array_shape
    count = updates.array_shape.size + 1
    (x, updates), reach = summands(g, combine, count, x, updates)
    attributes: dict[str, AttributeValue] = {
        "update_window_dims": tuple(range(1, shape.rank)),
        "inserted_window_dims": (0,),
        "scatter_dims_to_operand_dims": (0,),
        "index_vector_dim": 1,
        "to_apply": g.combiner(combine, shape.element_type),
    }
    return g.with_attributes("scatter", (x, places, updates), attributes, reach=reach)


@idiom("scatter into a fill", 1, NUMBERS)
def _scatter_into_a_fill(g: Graph, x: Instruction) -> None:
    """Sums by index: of all rows, of some, of indices that repeat."""
    shape = x.array_shape
    count = g.choose([1, 2, shape.dims[0]])
    updates = g.array(shape.element_type, (count, *shape.dims[1:]))
    combine = g.word("add maximum minimum")
    fill = g.filled(neutral(combine, shape.element_type), shape)
    _scattered(g, fill, _places(g, count, shape.dims[0]), updates, combine)


@idiom("scatter and gather back", 1, NUMBERS)
def _scatter_and_gather(g: Graph, x: Instruction) -> None:
    shape = x.array_shape
    count = g.choose([1, 2, 3])
    places = _places(g, count, shape.dims[0])
    updates = g.array(shape.element_type, (count, *shape.dims[1:]))
    _rows(g, _scattered(g, x, places, updates, "add"), places)


@idiom("pool and its gradient", 1, frozenset(NUMBERS))
def _pool_and_gradient(g: Graph, x: Instruction) -> None:
    """A maximum over windows, and the sum that its gradient is."""
    window = random_window(g, x.array_shape.dims, plain=True)
    pooled = _windowed(g, x, "maximum", window)
    kind = x.array_shape.element_type
    pooled = g.tamed(pooled, limit_of(kind) / (pooled.array_shape.size + 1)) if kind.is_inexact else pooled

    def compare(inner: Graph) -> Instruction:
        a, b = (inner.parameter(ArrayShape(kind, ())) for _ in range(2))
        return inner.op("compare", a, b, direction="GE")

    attributes: dict[str, AttributeValue] = {
        "window": replace(window),
        "select": g.helper(("compare", "GE", kind), compare, "select"),
        "scatter": g.combiner("add", kind),
    }
    zero = g.constant(0, kind)
    reach = g.reach_of(pooled) * (pooled.array_shape.size + 1)
    g.with_attributes("select-and-scatter", (x, pooled, zero), attributes, reach=reach)
