"""Idioms of data movement: two movements that are one, or none."""

from __future__ import annotations

from math import prod

from hlotool.ir.attributes import PaddingDim, SliceDim
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape
from hlotool.lab.fuzz.programs.draft import Declined, Dims
from hlotool.lab.fuzz.programs.graph import Graph
from hlotool.lab.fuzz.programs.idioms.table import INTEGERS, idiom
from hlotool.lab.fuzz.programs.steps_movement import (
    copy,
    random_padding,
    random_slice,
    reshape,
    transpose,
)


def sliced(g: Graph, x: Instruction) -> Instruction:
    """A random part of `x`."""
    return g.op("slice", x, slice=tuple(random_slice(g, n) for n in x.array_shape.dims))


def padded(g: Graph, x: Instruction) -> Instruction:
    """`x` with random edges, of zeros now and then."""
    kind = x.array_shape.element_type
    value = g.constant(0, kind) if g.chance() else g.scalar(kind)
    return g.op("pad", x, value, padding=tuple(random_padding(g, n) for n in x.array_shape.dims))


def reversed_(g: Graph, x: Instruction) -> Instruction:
    """`x` with some dimensions reversed."""
    rank = x.array_shape.rank
    return g.op("reverse", x, dimensions=tuple(sorted(g.rng.sample(range(rank), g.rng.randint(1, rank)))))


def widened(g: Graph, x: Instruction) -> Instruction:
    """`x` repeated along a new dimension."""
    dims = x.array_shape.dims
    at = g.rng.randint(0, len(dims))
    target = (*dims[:at], g.choose([1, 2, 3, 5]), *dims[at:])
    return g.broadcast(x, target, tuple(d + (d >= at) for d in range(len(dims))))


@idiom("slice of slice", 1)
def _slice_of_slice(g: Graph, x: Instruction) -> None:
    sliced(g, sliced(g, x))


@idiom("slice of pad", 1)
def _slice_of_pad(g: Graph, x: Instruction) -> None:
    sliced(g, padded(g, x))


@idiom("pad of slice", 1)
def _pad_of_slice(g: Graph, x: Instruction) -> None:
    padded(g, sliced(g, x))


@idiom("pad of pad", 1)
def _pad_of_pad(g: Graph, x: Instruction) -> None:
    padded(g, padded(g, x))


@idiom("pad and cut back", 1)
def _pad_and_cut_back(g: Graph, x: Instruction) -> None:
    """Edges that a slice takes off again, all of them or all but one."""
    kind, dims = x.array_shape.element_type, x.array_shape.dims
    low, high = g.rng.randint(0, 3), g.rng.randint(0, 3)
    y = g.op("pad", x, g.scalar(kind), padding=tuple(PaddingDim(low, high) for _ in dims))
    start = max(0, low - g.choose([0, 0, 1]))
    g.op("slice", y, slice=tuple(SliceDim(start, start + n) for n in dims))


@idiom("slice of concatenate", 1)
def _slice_of_concatenate(g: Graph, x: Instruction) -> None:
    sliced(g, _joined(g, x)[0])


@idiom("slice out of concatenate", 1)
def _slice_out_of_concatenate(g: Graph, x: Instruction) -> None:
    """Exactly one of the parts, or one element beside it."""
    joined, axis, starts = _joined(g, x)
    i = g.rng.randrange(len(starts) - 1)
    off = g.choose([0, 0, 0, 1])
    limit = joined.array_shape.dims[axis]
    start, end = max(0, starts[i] - off), min(limit, starts[i + 1])
    parts = [SliceDim(0, n) for n in joined.array_shape.dims]
    parts[axis] = SliceDim(min(start, end), end)
    g.op("slice", joined, slice=tuple(parts))


def _joined(g: Graph, x: Instruction) -> tuple[Instruction, int, list[int]]:
    """`x` and others side by side, the dimension, and where each begins and the last ends."""
    shape = x.array_shape
    axis = g.rng.randrange(shape.rank)
    sizes = [g.choose([1, 2, 3, shape.dims[axis]]) for _ in range(g.choose([1, 2]))]
    parts = [x, *(g.array(shape.element_type, _resized(shape.dims, axis, n)) for n in sizes)]
    g.rng.shuffle(parts)
    starts = [0]
    for part in parts:
        starts.append(starts[-1] + part.array_shape.dims[axis])
    return g.op("concatenate", *parts, dimensions=(axis,)), axis, starts


def _resized(dims: Dims, axis: int, size: int) -> Dims:
    return (*dims[:axis], size, *dims[axis + 1 :])


@idiom("concatenate of slices", 1)
def _concatenate_of_slices(g: Graph, x: Instruction) -> None:
    """Neighbouring parts put together again, in order, or turned, or with one missing."""
    dims = x.array_shape.dims
    axis = g.rng.randrange(len(dims))
    cut = g.rng.randint(0, dims[axis])
    stride = g.choose([1, 1, 1, 2])
    ranges = [
        SliceDim(0, cut, stride),
        SliceDim(min(dims[axis], cut + g.choose([0, 0, 1])), dims[axis], stride),
    ]
    if g.chance(0.25):
        ranges.reverse()
    parts = []
    for part in ranges:
        whole = [SliceDim(0, n) for n in dims]
        whole[axis] = part
        parts.append(g.op("slice", x, slice=tuple(whole)))
    g.op("concatenate", *parts, dimensions=(axis,))


@idiom("concatenate of concatenates", 1)
def _concatenate_of_concatenates(g: Graph, x: Instruction) -> None:
    joined, axis, _ = _joined(g, x)
    again = axis if g.chance(0.7) else g.rng.randrange(x.array_shape.rank)
    other = g.like(joined)
    g.op("concatenate", joined, other, dimensions=(again,))


@idiom("concatenate of fills", 1)
def _concatenate_of_fills(g: Graph, x: Instruction) -> None:
    """Constants at the edges: a pad, where they are equal."""
    shape = x.array_shape
    axis = g.rng.randrange(shape.rank)
    low = g.filled(0, ArrayShape(shape.element_type, _resized(shape.dims, axis, g.choose([1, 2]))))
    high = low if g.chance() else g.filled(g.number(shape.element_type), low.array_shape)
    g.op("concatenate", low, x, high, dimensions=(axis,))


@idiom("concatenate of one value", 1)
def _concatenate_of_one_value(g: Graph, x: Instruction) -> None:
    """The same array again and again: a broadcast."""
    g.op("concatenate", *[x] * g.choose([2, 3]), dimensions=(g.rng.randrange(x.array_shape.rank),))


@idiom("reshape of reshape")
def _reshape_of_reshape(g: Graph, x: Instruction) -> None:
    dims = x.array_shape.dims
    y = reshape(g, "reshape", reshape(g, "reshape", x))
    if g.chance():
        g.reshape(y, dims)


@idiom("reshape of broadcast")
def _reshape_of_broadcast(g: Graph, x: Instruction) -> None:
    reshape(g, "reshape", widened(g, x))


@idiom("broadcast of reshape")
def _broadcast_of_reshape(g: Graph, x: Instruction) -> None:
    widened(g, reshape(g, "reshape", x))


@idiom("broadcast of broadcast")
def _broadcast_of_broadcast(g: Graph, x: Instruction) -> None:
    widened(g, widened(g, x))


@idiom("transpose of transpose", 2)
def _transpose_of_transpose(g: Graph, x: Instruction) -> None:
    rank = x.array_shape.rank
    order = tuple(g.rng.sample(range(rank), rank))
    y = g.op("transpose", x, dimensions=order)
    if g.chance():
        g.op("transpose", y, dimensions=tuple(order.index(d) for d in range(rank)))
    else:
        transpose(g, "transpose", y)


@idiom("transpose of reshape", 1)
def _transpose_of_reshape(g: Graph, x: Instruction) -> None:
    transpose(g, "transpose", reshape(g, "reshape", x))


@idiom("reshape of transpose", 2)
def _reshape_of_transpose(g: Graph, x: Instruction) -> None:
    reshape(g, "reshape", transpose(g, "transpose", x))


@idiom("transpose of broadcast", 1)
def _transpose_of_broadcast(g: Graph, x: Instruction) -> None:
    transpose(g, "transpose", widened(g, x))


@idiom("transpose that moves ones", 1)
def _transpose_that_moves_ones(g: Graph, x: Instruction) -> None:
    """A reshape, seen from the memory."""
    shape = x.array_shape
    y = g.reshape(x, (1, *shape.dims, 1))
    transpose(g, "transpose", y)


@idiom("reverse of reverse", 1)
def _reverse_of_reverse(g: Graph, x: Instruction) -> None:
    y = reversed_(g, x)
    if g.chance():
        g.op("reverse", y, dimensions=y.integers("dimensions"))
    else:
        reversed_(g, y)


@idiom("reverse of broadcast", 1)
def _reverse_of_broadcast(g: Graph, x: Instruction) -> None:
    reversed_(g, widened(g, x))


@idiom("reverse of concatenate", 1)
def _reverse_of_concatenate(g: Graph, x: Instruction) -> None:
    reversed_(g, _joined(g, x)[0])


@idiom("reverse of pad", 1)
def _reverse_of_pad(g: Graph, x: Instruction) -> None:
    reversed_(g, padded(g, x))


@idiom("slice of broadcast", 1)
def _slice_of_broadcast(g: Graph, x: Instruction) -> None:
    sliced(g, widened(g, x))


@idiom("slice of reverse", 1)
def _slice_of_reverse(g: Graph, x: Instruction) -> None:
    sliced(g, reversed_(g, x))


@idiom("slice of transpose", 2)
def _slice_of_transpose(g: Graph, x: Instruction) -> None:
    sliced(g, transpose(g, "transpose", x))


@idiom("slice of reshape", 1)
def _slice_of_reshape(g: Graph, x: Instruction) -> None:
    y = reshape(g, "reshape", x)
    if y.array_shape.dims:
        sliced(g, y)


@idiom("slice of iota", 1, INTEGERS, bits=8)
def _slice_of_iota(g: Graph, x: Instruction) -> None:
    shape = x.array_shape
    sliced(g, g.iota(shape.element_type, shape.dims, g.rng.randrange(shape.rank)))


@idiom("elementwise of slices", 1)
def _elementwise_of_slices(g: Graph, x: Instruction) -> None:
    """Two equal slices of two values under one operation: a slice of the operation."""
    parts = tuple(random_slice(g, n) for n in x.array_shape.dims)
    a, b = g.op("slice", x, slice=parts), g.op("slice", g.like(x), slice=parts)
    g.op("compare", a, b, direction="NE")


@idiom("elementwise of reshapes", 1)
def _elementwise_of_reshapes(g: Graph, x: Instruction) -> None:
    a = reshape(g, "reshape", x)
    b = g.reshape(g.like(x), a.array_shape.dims)
    g.op("compare", a, b, direction="EQ")


@idiom("elementwise of broadcasts")
def _elementwise_of_broadcasts(g: Graph, x: Instruction) -> None:
    """Two values repeated in the same way, or one of them a scalar."""
    a = widened(g, x)
    b = g.broadcast(g.like(x), a.array_shape.dims, a.integers("dimensions"))
    g.op("compare", a, b, direction=g.word("EQ NE"))


@idiom("copies through layouts", 2)
def _copies_through_layouts(g: Graph, x: Instruction) -> None:
    transpose(g, "transpose", copy(g, "copy", x))


@idiom("split and merge", 1)
def _split_and_merge(g: Graph, x: Instruction) -> None:
    """A dimension is split, something happens between, and it is merged again."""
    dims = x.array_shape.dims
    d = g.rng.randrange(len(dims))
    factors = [n for n in range(1, dims[d] + 1) if dims[d] % n == 0]
    f = g.choose(factors)
    y = g.reshape(x, (*dims[:d], f, dims[d] // f, *dims[d + 1 :]))
    between = g.word("reverse transpose copy")
    if between == "reverse":
        y = reversed_(g, y)
    else:
        y = transpose(g, "transpose", y) if between == "transpose" else g.op("copy", y)
    g.reshape(y, (prod(y.array_shape.dims),) if g.chance() else dims)


@idiom("pad with interior and stride", 1)
def _pad_with_interior(g: Graph, x: Instruction) -> None:
    """Elements moved apart, and taken with a stride that undoes it or nearly."""
    shape = x.array_shape
    interior = g.choose([1, 2])
    y = g.op(
        "pad", x, g.scalar(shape.element_type), padding=tuple(PaddingDim(0, 0, interior) for _ in shape.dims)
    )
    stride = interior + g.choose([0, 1, 1])
    g.op("slice", y, slice=tuple(SliceDim(0, n, stride) for n in y.array_shape.dims))


@idiom("barrier between a pair")
def _barrier_between(g: Graph, x: Instruction) -> None:
    held = g.op("opt-barrier", g.op("tuple", reshape(g, "reshape", x), x))
    y = g.op("get-tuple-element", held, index=0, reach=g.reach_of(x))
    if y.array_shape.size != prod(x.array_shape.dims):
        raise Declined("not the same elements")
    g.reshape(y, x.array_shape.dims)
