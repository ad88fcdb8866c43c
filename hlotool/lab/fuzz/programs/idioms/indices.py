"""Idioms of sorts, gathers, scatters, slices and updates at known places."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from hlotool.facts.scalar_form import neutral
from hlotool.ir.attributes import AttributeValue, SliceDim
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, ElementType
from hlotool.lab.fuzz.programs.draft import Declined, Dims, limit_of
from hlotool.lab.fuzz.programs.graph import Graph
from hlotool.lab.fuzz.programs.idioms.movement import sliced, widened
from hlotool.lab.fuzz.programs.idioms.reductions import windowed
from hlotool.lab.fuzz.programs.idioms.table import INTEGERS, NUMBERS, idiom
from hlotool.lab.fuzz.programs.limits import compiles
from hlotool.lab.fuzz.programs.steps_movement import reshape, start_indices
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


def _updates_places(g: Graph, size: int, part: int) -> list[int]:
    """Starts of a part within a dimension: inside, at the end, beyond it."""
    found = [0, size - part, size - part + 1, g.rng.randint(0, size)]
    return [min(place, 100) for place in found]


def _index_kind(g: Graph, rare: ElementType) -> ElementType:
    """A type of start indices, most often the one of the last such operation: programs keep to one."""
    last = next((i for i in reversed(g.builder.instructions) if i.opcode.startswith("dynamic-")), None)
    if last is not None and g.chance(0.8):
        return last.operands[-1].element_type
    return g.choose([ElementType.S32, ElementType.S32, ElementType.S64, rare])


def at_constant(g: Graph, dims: Dims, sizes: Dims) -> list[Instruction]:
    """Constant start indices: inside, at the end, beyond it."""
    kind = _index_kind(g, ElementType.U8)
    return [g.constant(g.choose(_updates_places(g, n, s)), kind) for n, s in zip(dims, sizes)]


def at_late(g: Graph, dims: Dims, sizes: Dims) -> list[Instruction]:
    """The same numbers, which no compiler knows: which of two they are, or what is added, a predicate says.

    Starts that are parameters lie inside of the array, where inputs are drawn that make sense.
    """
    kind = _index_kind(g, ElementType.U32)
    starts = []
    for n, s in zip(dims, sizes):
        places = _updates_places(g, n, s)
        which, first = g.array(ElementType.PRED, ()), g.constant(g.choose(places), kind)
        if g.chance():
            starts.append(g.op("select", which, first, g.constant(g.choose(places), kind)))
        else:
            starts.append(g.op("add", g.convert(which, kind), first))
    return starts


def somewhere(g: Graph, dims: Dims, sizes: Dims) -> list[Instruction]:
    """Start indices that are known, that are within reach but not known, or values of the program."""
    how = g.choose([at_constant, at_late, None])
    return start_indices(g, dims) if how is None else how(g, dims, sizes)


def some_size(g: Graph, dims: Dims) -> Dims:
    """Sizes of a window, most often smaller in one dimension."""
    d = g.rng.randrange(len(dims))
    return tuple(g.rng.randint(1, n) if d == i or g.chance(0.3) else n for i, n in enumerate(dims))


def dynamic_slice(g: Graph, x: Instruction, starts: list[Instruction], sizes: Dims) -> Instruction:
    """`x` from `starts` on."""
    return g.op("dynamic-slice", x, *starts, dynamic_slice_sizes=sizes, reach=g.reach_of(x))


def update(g: Graph, x: Instruction, y: Instruction, starts: list[Instruction]) -> Instruction:
    """`x` with `y` written at `starts`."""
    return g.op("dynamic-update-slice", x, y, *starts, reach=max(g.reach_of(x), g.reach_of(y)))


@idiom("dynamic-slice with constant index", 1)
def _dynamic_slice_at_constant(g: Graph, x: Instruction) -> None:
    sizes = some_size(g, x.array_shape.dims)
    dynamic_slice(g, x, at_constant(g, x.array_shape.dims, sizes), sizes)


@idiom("dynamic-slice of dynamic-slice", 1)
def _dynamic_slice_of_dynamic_slice(g: Graph, x: Instruction) -> None:
    dims = x.array_shape.dims
    first = some_size(g, dims)
    y = dynamic_slice(g, x, somewhere(g, dims, first), first)
    second = some_size(g, first)
    dynamic_slice(g, y, somewhere(g, first, second), second)


@idiom("dynamic-slice of iota", 1, INTEGERS, bits=8)
def _dynamic_slice_of_iota(g: Graph, x: Instruction) -> None:
    dims = x.array_shape.dims
    kind = x.array_shape.element_type
    y = g.iota(kind, (dims[0],), 0)
    at = g.array(ElementType.S32, ())
    dynamic_slice(g, y, [at], (g.choose([1, dims[0]]),))


@idiom("update of update", 1)
def _update_of_update(g: Graph, x: Instruction) -> None:
    """At one place, or at two that overlap."""
    dims = x.array_shape.dims
    sizes = some_size(g, dims)
    kind = x.array_shape.element_type
    starts = somewhere(g, dims, sizes)
    y = update(g, x, g.array(kind, sizes), starts)
    again = starts if g.chance() else somewhere(g, dims, sizes)
    update(g, y, g.array(kind, sizes), again)


@idiom("update by what is there", 1)
def _update_by_what_is_there(g: Graph, x: Instruction) -> None:
    """A part of an array, which may just be computed, written back where it was read, or elsewhere."""
    dims = x.array_shape.dims
    sizes = some_size(g, dims)
    if g.chance():
        kind = x.array_shape.element_type
        is_signed = kind.is_signed or kind.is_inexact
        x = g.op("negate" if is_signed else "not", x)
    if g.chance():
        y, starts = g.sliced(x, sizes), somewhere(g, dims, sizes)
    else:
        starts = somewhere(g, dims, sizes)
        y = dynamic_slice(g, x, starts, sizes)
    z = update(g, x, y, starts if g.chance() else somewhere(g, dims, sizes))
    if g.chance(0.4):
        reshape(g, "reshape", z)


@idiom("slice of update", 1)
def _slice_of_update(g: Graph, x: Instruction) -> None:
    """What was written, read again, at the same place or beside it."""
    dims = x.array_shape.dims
    sizes = some_size(g, dims)
    starts = somewhere(g, dims, sizes)
    y = update(g, x, g.array(x.array_shape.element_type, sizes), starts)
    if g.chance(0.6):
        dynamic_slice(g, y, starts, sizes)
    else:
        sliced(g, y)


@idiom("update of all", 1)
def _update_of_all(g: Graph, x: Instruction) -> None:
    """An update as large as the array: the start is clamped to zero."""
    update(g, x, g.like(x), somewhere(g, x.array_shape.dims, x.array_shape.dims))


@idiom("update into a fill", 1)
def _update_into_a_fill(g: Graph, x: Instruction) -> None:
    """A pad, where the index is known."""
    shape = x.array_shape
    dims = tuple(n + g.choose([0, 1, 3]) for n in shape.dims)
    fill = g.filled(g.number(shape.element_type), ArrayShape(shape.element_type, dims))
    update(g, fill, x, somewhere(g, dims, shape.dims))
