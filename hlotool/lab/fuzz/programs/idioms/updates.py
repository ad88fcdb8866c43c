"""Idioms of slices and updates at known places."""

from __future__ import annotations

from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, ElementType
from hlotool.lab.fuzz.programs.draft import Dims
from hlotool.lab.fuzz.programs.graph import Graph
from hlotool.lab.fuzz.programs.idioms.movement import sliced
from hlotool.lab.fuzz.programs.idioms.table import INTEGERS, idiom
from hlotool.lab.fuzz.programs.steps_movement import reshape, start_indices


def _places(g: Graph, size: int, part: int) -> list[int]:
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
    return [g.constant(g.choose(_places(g, n, s)), kind) for n, s in zip(dims, sizes)]


def at_late(g: Graph, dims: Dims, sizes: Dims) -> list[Instruction]:
    """The same numbers, which no compiler knows: which of two they are, or what is added, a predicate says.

    Starts that are parameters lie inside of the array, where inputs are drawn that make sense.
    """
    kind = _index_kind(g, ElementType.U32)
    starts = []
    for n, s in zip(dims, sizes):
        places = _places(g, n, s)
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
