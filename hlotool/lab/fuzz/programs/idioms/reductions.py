"""Idioms of reductions, whole and by windows."""

from __future__ import annotations

from math import prod

from hlotool.facts.scalar_form import neutral
from hlotool.ir.attributes import Window, WindowDim
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, ElementType
from hlotool.lab.fuzz.programs.draft import Declined, Dims, limit_of
from hlotool.lab.fuzz.programs.graph import Graph
from hlotool.lab.fuzz.programs.idioms.movement import padded, reversed_, widened
from hlotool.lab.fuzz.programs.idioms.table import BITS, INTEGERS, NUMBERS, idiom
from hlotool.lab.fuzz.programs.steps_movement import random_padding, reshape, transpose
from hlotool.lab.fuzz.programs.steps_reduction import random_window, reducers_of, summands


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
    windowed(g, x, combine, Window(tuple(window)))


def windowed(g: Graph, x: Instruction, combine: str, window: Window) -> Instruction:
    """`x` combined by windows, beginning with the neutral element."""
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
    windowed(g, y, combine, random_window(g, y.array_shape.dims))


@idiom("window of window", 1, NUMBERS)
def _window_of_window(g: Graph, x: Instruction) -> None:
    combine = any_reducer(g, x)
    y = windowed(g, x, combine, random_window(g, x.array_shape.dims))
    windowed(g, y, combine if g.chance(0.7) else any_reducer(g, x), random_window(g, y.array_shape.dims))


@idiom("window that is a reduce", 1, NUMBERS)
def _window_that_is_a_reduce(g: Graph, x: Instruction) -> None:
    """As large as the dimension, and its size-one dimension taken off."""
    dims = x.array_shape.dims
    axis = g.rng.randrange(len(dims))
    window = tuple(WindowDim(n if d == axis else 1) for d, n in enumerate(dims))
    y = windowed(g, x, any_reducer(g, x), Window(window))
    g.reshape(y, tuple(n for d, n in enumerate(dims) if d != axis))


@idiom("window of broadcast", 1, NUMBERS)
def _window_of_broadcast(g: Graph, x: Instruction) -> None:
    y = widened(g, x)
    windowed(g, y, any_reducer(g, x), random_window(g, y.array_shape.dims))
