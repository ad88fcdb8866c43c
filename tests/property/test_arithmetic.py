"""Laws of sums, products and conversions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property.laws import dims, float_kinds, integer_kinds, law, numbers, result, same_bits, seeds

from hlotool.facts.float_order import epsilon
from hlotool.ir.builder import Builder, array
from hlotool.ir.module import Instruction
from hlotool.ir.types import ELEMENT_TYPES
from hlotool.lab.conformance.generators.cases import binary

Dims = tuple[int, ...]
sizes = st.integers(0, 5)


def product(b: Builder, left: Instruction, right: Instruction) -> Instruction:
    """Of two matrices."""
    return b.op("dot", left, right, lhs_contracting_dims=(1,), rhs_contracting_dims=(0,), **{})


@law
@given(float_kinds, st.integers(0, 200), seeds)
def test_a_sum_is_within_half_a_rounding_of_the_truth(kind: str, length: int, seed: int) -> None:
    """f16, bf16 and f32 are accumulated in f64 and rounded once; f64 sums are pairwise."""
    x = numbers(kind, (length,), seed, corners=0)

    def build(b: Builder, p: Instruction) -> Instruction:
        zero = b.constant(0, kind)
        return b.op("reduce", p, zero, dimensions=(0,), to_apply=binary("add", kind))

    exact = [float(v) for v in x]
    truth, terms = math.fsum(exact), math.fsum(map(abs, exact))
    accumulation = 2.0**-53 * (length + 1) * terms
    bound = epsilon(ELEMENT_TYPES[kind]) / 2 * abs(truth) + accumulation
    smallest = float(np.finfo(np.float16).smallest_subnormal) if kind == "f16" else 0.0
    actual = float(result(build, (kind, x)))
    assert abs(actual - truth) <= bound + smallest or (abs(truth) > 65504 and kind == "f16")


@law
@given(integer_kinds, dims(min_rank=1, max_rank=3), seeds)
def test_a_reduction_of_a_concatenation(kind: str, dimensions: Dims, seed: int) -> None:
    """Is the combination of the reductions of its parts."""
    x, y = numbers(kind, dimensions, seed), numbers(kind, dimensions, seed + 1)
    add = binary("add", kind)

    def total(b: Builder, p: Instruction) -> Instruction:
        return b.op("reduce", p, b.constant(0, kind), dimensions=(0,), to_apply=add)

    def whole(b: Builder, p: Instruction, q: Instruction) -> Instruction:
        return total(b, b.op("concatenate", p, q, dimensions=(0,)))

    def parts(b: Builder, p: Instruction, q: Instruction) -> Instruction:
        return b.op("add", total(b, p), total(b, q))

    assert same_bits(result(whole, (kind, x), (kind, y)), result(parts, (kind, x), (kind, y)))


@law
@given(st.sampled_from(["s8", "s16", "s32", "s64", "u8", "u32", "u64"]), sizes, sizes, sizes, sizes, seeds)
def test_products_of_integer_matrices_associate(
    kind: str, rows: int, inner: int, outer: int, columns: int, seed: int
) -> None:
    """They wrap around, which is arithmetic modulo a power of two."""
    a, b_, c = (
        (kind, numbers(kind, shape, seed + i))
        for i, shape in enumerate([(rows, inner), (inner, outer), (outer, columns)])
    )

    def left(b: Builder, p: Instruction, q: Instruction, r: Instruction) -> Instruction:
        return product(b, product(b, p, q), r)

    def right(b: Builder, p: Instruction, q: Instruction, r: Instruction) -> Instruction:
        return product(b, p, product(b, q, r))

    assert same_bits(result(left, a, b_, c), result(right, a, b_, c))


@law
@given(st.sampled_from(["s8", "s32", "u64", "bf16", "f16", "f32", "f64", "c64", "c128"]), sizes, sizes, seeds)
def test_the_identity_matrix_changes_nothing(kind: str, rows: int, columns: int, seed: int) -> None:
    """Not even rounding, as all other products are zero; finite numbers, no zeros."""
    x = numbers(kind, (rows, columns), seed, corners=0)
    one = (kind, np.eye(columns).astype(x.dtype))
    assert same_bits(result(product, (kind, x), one), x)


#: Type pairs such that the second holds all values of the first.
WIDENINGS = [
    *[(a, b) for a in ("s2", "s4", "s8", "s16", "s32") for b in ("s8", "s16", "s32", "s64")],
    *[(a, b) for a in ("u2", "u4", "u8", "u16", "u32") for b in ("u8", "u16", "u32", "u64", "s64")],
    *[("pred", b) for b in ("s8", "u32", "bf16", "f64", "c64")],
    *[(a, b) for a in ("f16", "bf16") for b in ("f32", "f64")],
    *[(a, b) for a in ("f8e4m3fn", "f8e5m2", "f8e4m3fnuz", "f8e8m0fnu", "f4e2m1fn") for b in ("f32", "f64")],
    *[("s8", b) for b in ("f16", "bf16", "f32")],
    *[("s16", "f32"), ("s32", "f64"), ("u32", "f64"), ("f32", "f64"), ("f32", "c64"), ("f64", "c128")],
]
WIDENINGS = [(a, b) for a, b in WIDENINGS if ELEMENT_TYPES[a].bits < ELEMENT_TYPES[b].bits or a == "pred"]


@pytest.mark.parametrize(("narrow", "wide"), WIDENINGS)
def test_to_a_wider_type_and_back(narrow: str, wide: str) -> None:
    x = numbers(narrow, (200,), seed=7)

    def build(b: Builder, p: Instruction) -> Instruction:
        widened = b.op("convert", p, shape=array(wide, 200))
        return b.op("convert", widened, shape=array(narrow, 200))

    back = result(build, (narrow, x))
    kind = ELEMENT_TYPES[narrow]
    if kind.is_floating:
        known = ~np.isnan(x.astype(np.float64))
        assert np.isnan(back[~known].astype(np.float64)).all()
        x, back = x[known], back[known]
    assert same_bits(back, x)
