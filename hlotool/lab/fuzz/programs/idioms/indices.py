"""Idioms of sorts, gathers and scatters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hlotool.facts.scalar_form import neutral
from hlotool.ir.attributes import AttributeValue, SliceDim
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, ElementType
from hlotool.lab.fuzz.programs.draft import Declined, limit_of
from hlotool.lab.fuzz.programs.graph import Graph
from hlotool.lab.fuzz.programs.idioms.movement import widened
from hlotool.lab.fuzz.programs.idioms.reductions import windowed
from hlotool.lab.fuzz.programs.idioms.table import INTEGERS, NUMBERS, idiom
from hlotool.lab.fuzz.programs.limits import compiles
from hlotool.lab.fuzz.programs.steps_movement import reshape
from hlotool.lab.fuzz.programs.steps_reduction import comparator, random_window, summands


def _sorted(g: Graph, operands: list[Instruction], axis: int, direction: str, keys: int = 1) -> Instruction:
    kinds = [o.array_shape.element_type for o in operands]
    compare = comparator(g, kinds, direction, keys)
    attributes: dict[str, AttributeValue] = {"dimensions": (axis,), "to_apply": compare, "is_stable": True}
    return g.with_attributes("sort", operands, attributes)


def _sortable(x: Instruction) -> None:
    if not compiles("sort", x.array_shape.element_type):
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
    pooled = windowed(g, x, "maximum", window)
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
