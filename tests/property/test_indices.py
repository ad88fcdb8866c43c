"""Laws of gather, scatter and sort."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from property.laws import dims, integer_kinds, kinds, law, numbers, result, results, same_bits, seeds

from hlotool.ir.builder import Builder
from hlotool.ir.module import Instruction
from hlotool.ir.types import ELEMENT_TYPES, TupleShape
from hlotool.lab.conformance.generators.cases import binary, scalar_computation

Dims = tuple[int, ...]


def rows_of(b: Builder, x: Instruction, indices: Instruction, sizes: Dims) -> Instruction:
    """gather of whole rows."""
    return b.op(
        "gather",
        x,
        indices,
        offset_dims=tuple(range(1, len(sizes))),
        collapsed_slice_dims=(0,),
        start_index_map=(0,),
        index_vector_dim=1,
        slice_sizes=(1, *sizes[1:]),
    )


def put_rows(
    b: Builder, x: Instruction, indices: Instruction, updates: Instruction, sizes: Dims, combine: str
) -> Instruction:
    """scatter of whole rows; `overwrite` or an opcode."""
    kind = x.shape.element_type  # type: ignore[union-attr]
    overwrite = f"f {{\n  a = {kind}[] parameter(0)\n  ROOT b = {kind}[] parameter(1)\n}}"
    to_apply = scalar_computation(overwrite) if combine == "overwrite" else binary(combine, kind.value)
    return b.op(
        "scatter",
        x,
        indices,
        updates,
        update_window_dims=tuple(range(1, len(sizes))),
        inserted_window_dims=(0,),
        scatter_dims_to_operand_dims=(0,),
        index_vector_dim=1,
        to_apply=to_apply,
    )


@law
@given(kinds, dims(min_rank=1, max_rank=3, min_size=1), seeds)
def test_gather_by_a_permutation_takes_the_rows(kind: str, sizes: Dims, seed: int) -> None:
    x = numbers(kind, sizes, seed)
    order = np.random.default_rng(seed).permutation(sizes[0]).astype(np.int32)

    def build(b: Builder, p: Instruction, i: Instruction) -> Instruction:
        return rows_of(b, p, i, sizes)

    assert same_bits(result(build, (kind, x), ("s32", order[:, None])), x[order])


@law
@given(kinds, dims(min_rank=1, max_rank=3, min_size=1), seeds)
def test_scatter_undoes_gather(kind: str, sizes: Dims, seed: int) -> None:
    """By the same permutation, onto an array of anything."""
    x, other = numbers(kind, sizes, seed), numbers(kind, sizes, seed + 1)
    order = np.random.default_rng(seed).permutation(sizes[0]).astype(np.int32)

    def build(b: Builder, p: Instruction, o: Instruction, i: Instruction) -> Instruction:
        return put_rows(b, o, i, rows_of(b, p, i, sizes), sizes, "overwrite")

    assert same_bits(result(build, (kind, x), (kind, other), ("s32", order[:, None])), x)


@law
@given(integer_kinds, dims(min_rank=1, max_rank=3, min_size=1), seeds, st.integers(0, 9))
def test_scatter_adds_every_update_once(kind: str, sizes: Dims, seed: int, count: int) -> None:
    """Those out of bounds not at all; sums of integers wrap, which is exact in any order."""
    rng = np.random.default_rng(seed)
    indices = rng.integers(-1, sizes[0] + 1, count).astype(np.int32)
    x, updates = numbers(kind, sizes, seed), numbers(kind, (count, *sizes[1:]), seed + 1)

    def build(b: Builder, p: Instruction, i: Instruction, u: Instruction) -> Instruction:
        return put_rows(b, p, i, u, sizes, "add")

    actual = result(build, (kind, x), ("s32", indices[:, None]), (kind, updates))
    expected = x.astype(object)
    for index, update in zip(indices, updates.astype(object)):
        if 0 <= index < sizes[0]:
            expected[index] += update
    assert ((actual.astype(object) - expected) % (1 << ELEMENT_TYPES[kind].bits) == 0).all()


@law
@given(kinds.filter(lambda kind: kind not in ("c64", "c128")), st.integers(0, 70), seeds)
def test_sort_is_an_ordered_permutation(kind: str, length: int, seed: int) -> None:
    """Of (key, position) in total order: positions are a permutation, equal keys keep their order."""
    x = numbers(kind, (length,), seed)
    positions = np.arange(length, dtype=np.int32)
    total = ", type=TOTALORDER" if ELEMENT_TYPES[kind].is_floating else ""
    less = scalar_computation(
        f"less {{\n  a = {kind}[] parameter(0)\n  b = {kind}[] parameter(1)\n  c = s32[] parameter(2)\n"
        f"  d = s32[] parameter(3)\n  ROOT r = pred[] compare(a, b), direction=LT{total}\n}}"
    )

    def build(b: Builder, p: Instruction, i: Instruction) -> Instruction:
        shape = TupleShape((p.shape, i.shape))
        return b.op("sort", p, i, shape=shape, dimensions=(0,), is_stable=True, to_apply=less)

    keys, order = results(build, (kind, x), ("s32", positions))
    assert sorted(order.tolist()) == positions.tolist()
    assert same_bits(keys, x[order])

    def follows(b: Builder, p: Instruction, q: Instruction) -> Instruction:
        attributes = {"type": "TOTALORDER"} if total else {}
        return b.op("compare", p, q, direction="LT", **attributes)

    if length > 1:
        assert not result(follows, (kind, keys[1:].copy()), (kind, keys[:-1].copy())).any()
        tied = ~result(follows, (kind, keys[:-1].copy()), (kind, keys[1:].copy()))
        assert (order[1:][tied] > order[:-1][tied]).all()
