"""Laws of the opcodes that move data: what one does another undoes, to the bit, for every element type."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from property.laws import dims, kinds, law, numbers, result, same_bits, seeds, shape_of

from hlotool.ir.attributes import PaddingDim, SliceDim
from hlotool.ir.builder import Builder, array
from hlotool.ir.module import Instruction
from hlotool.ir.types import ELEMENT_TYPES

Dims = tuple[int, ...]


@law
@given(kinds, dims(), seeds)
def test_transpose_by_an_order_and_its_inverse(kind: str, sizes: Dims, seed: int) -> None:
    x = numbers(kind, sizes, seed)
    order = tuple(int(d) for d in np.random.default_rng(seed).permutation(len(sizes)))
    inverse = tuple(int(d) for d in np.argsort(order))

    def build(b: Builder, p: Instruction) -> Instruction:
        return b.op("transpose", b.op("transpose", p, dimensions=order), dimensions=inverse)

    assert same_bits(result(build, (kind, x)), x)


@law
@given(kinds, dims(), seeds, st.sets(st.integers(0, 3)))
def test_reverse_twice(kind: str, sizes: Dims, seed: int, chosen: set[int]) -> None:
    x = numbers(kind, sizes, seed)
    dimensions = tuple(sorted(d for d in chosen if d < len(sizes)))

    def build(b: Builder, p: Instruction) -> Instruction:
        return b.op("reverse", b.op("reverse", p, dimensions=dimensions), dimensions=dimensions)

    assert same_bits(result(build, (kind, x)), x)


@law
@given(kinds, dims(min_rank=1), seeds, st.data())
def test_a_slice_of_a_concatenation_is_a_part(kind: str, sizes: Dims, seed: int, data: st.DataObject) -> None:
    axis = data.draw(st.integers(0, len(sizes) - 1))
    lengths = data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=4))
    chosen = data.draw(st.integers(0, len(lengths) - 1))
    parts = [numbers(kind, (*sizes[:axis], n, *sizes[axis + 1 :]), seed + i) for i, n in enumerate(lengths)]
    start = sum(lengths[:chosen])

    def build(b: Builder, *ps: Instruction) -> Instruction:
        whole = b.op("concatenate", *ps, dimensions=(axis,))
        limits = [SliceDim(0, n) for n in shape_of(whole).dims]
        limits[axis] = SliceDim(start, start + lengths[chosen])
        return b.op("slice", whole, slice=tuple(limits))

    assert same_bits(result(build, *((kind, part) for part in parts)), parts[chosen])


paddings = st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 2))


@law
@given(kinds, dims(), seeds, st.lists(paddings, min_size=4, max_size=4))
def test_a_strided_slice_undoes_pad(
    kind: str, sizes: Dims, seed: int, edges: list[tuple[int, int, int]]
) -> None:
    x, value = numbers(kind, sizes, seed), numbers(kind, (), seed + 1)
    padding = tuple(PaddingDim(*edge) for edge in edges[: len(sizes)])

    def build(b: Builder, p: Instruction, v: Instruction) -> Instruction:
        padded = b.op("pad", p, v, padding=padding)
        back = [SliceDim(e.low, n - e.high, e.interior + 1) for e, n in zip(padding, shape_of(padded).dims)]
        return b.op("slice", padded, slice=tuple(back))

    assert same_bits(result(build, (kind, x), (kind, value)), x)


@law
@given(kinds, dims(), seeds, st.lists(paddings, min_size=4, max_size=4))
def test_negative_padding_undoes_padding(
    kind: str, sizes: Dims, seed: int, edges: list[tuple[int, int, int]]
) -> None:
    x, value = numbers(kind, sizes, seed), numbers(kind, (), seed + 1)
    outwards = tuple(PaddingDim(low, high) for low, high, _ in edges[: len(sizes)])
    inwards = tuple(PaddingDim(-low, -high) for low, high, _ in edges[: len(sizes)])

    def build(b: Builder, p: Instruction, v: Instruction) -> Instruction:
        return b.op("pad", b.op("pad", p, v, padding=outwards), v, padding=inwards)

    assert same_bits(result(build, (kind, x), (kind, value)), x)


@law
@given(kinds, dims(), seeds)
def test_reshape_and_back(kind: str, sizes: Dims, seed: int) -> None:
    x = numbers(kind, sizes, seed)

    def build(b: Builder, p: Instruction) -> Instruction:
        flat = b.op("reshape", p, shape=array(kind, x.size))
        return b.op("reshape", flat, shape=array(kind, *sizes))

    assert same_bits(result(build, (kind, x)), x)


@law
@given(kinds, dims(max_rank=3), dims(max_rank=2, min_size=1), seeds)
def test_every_part_of_a_broadcast_is_the_operand(kind: str, sizes: Dims, outer: Dims, seed: int) -> None:
    x = numbers(kind, sizes, seed)
    dimensions = tuple(range(len(outer), len(outer) + len(sizes)))

    def build(b: Builder, p: Instruction) -> Instruction:
        return b.op("broadcast", p, shape=array(kind, *outer, *sizes), dimensions=dimensions)

    wide = result(build, (kind, x))
    for index in np.ndindex(outer):
        assert same_bits(np.asarray(wide[index]), x)


@law
@given(st.sampled_from([t for t in ELEMENT_TYPES if t[0] in "suf" and t not in ("s1", "u1")]), dims(), seeds)
def test_bitcast_convert_to_integers_and_back(kind: str, sizes: Dims, seed: int) -> None:
    """NaN payloads included."""
    bits = ELEMENT_TYPES[kind].bits
    x = numbers(kind, sizes, seed)

    def build(b: Builder, p: Instruction) -> Instruction:
        as_bits = b.op("bitcast-convert", p, shape=array(f"u{bits}", *sizes))
        return b.op("bitcast-convert", as_bits, shape=array(kind, *sizes))

    assert same_bits(result(build, (kind, x)), x)


@law
@given(kinds, dims(min_rank=1), seeds, st.data())
def test_a_dynamic_slice_finds_what_an_update_wrote(
    kind: str, sizes: Dims, seed: int, data: st.DataObject
) -> None:
    """Wherever the start lies: both clamp it alike."""
    window = tuple(data.draw(st.integers(0, n)) for n in sizes)
    starts = [np.array(data.draw(st.integers(-9, 9)), np.int32) for _ in sizes]
    x, update = numbers(kind, sizes, seed), numbers(kind, window, seed + 1)

    def build(b: Builder, p: Instruction, u: Instruction, *indices: Instruction) -> Instruction:
        written = b.op("dynamic-update-slice", p, u, *indices)
        return b.op("dynamic-slice", written, *indices, dynamic_slice_sizes=window)

    arguments = [(kind, x), (kind, update), *(("s32", start) for start in starts)]
    assert same_bits(result(build, *arguments), update)
