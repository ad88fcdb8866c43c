"""Factorisations that choose rows by size: what they choose is unknown, but a choice."""

from __future__ import annotations

import numpy as np
import pytest

import hlotool
from hlotool.backends.field.rules.linear_algebra import _order, _pivots
from hlotool.runs.exact.result import Relation
from hlotool.runs.exact.task import compare_modules

#: The right hand side is permuted as the rows of the matrix were, as `solve` does it.
EXCHANGES = """HloModule m
exchange {{
  state = (s32[], s32[4], f32[4]) parameter(0)
  k = s32[] get-tuple-element(state), index=0
  pivots = s32[4] get-tuple-element(state), index=1
  b = f32[4] get-tuple-element(state), index=2
  one = s32[] constant(1)
  next = s32[] add(k, one)
  p = s32[1] dynamic-slice(pivots, k), dynamic_slice_sizes={{1}}
  other = s32[] reshape(p)
  x = f32[1] dynamic-slice(b, k), dynamic_slice_sizes={{1}}
  y = f32[1] dynamic-slice(b, other), dynamic_slice_sizes={{1}}
  b1 = f32[4] dynamic-update-slice(b, y, k)
  b2 = f32[4] dynamic-update-slice(b1, x, other)
  ROOT r = (s32[], s32[4], f32[4]) tuple(next, pivots, b2)
}}
unfinished {{
  state = (s32[], s32[4], f32[4]) parameter(0)
  k = s32[] get-tuple-element(state), index=0
  n = s32[] constant(4)
  ROOT r = pred[] compare(k, n), direction=LT
}}
ENTRY e {{
  a = f32[4,4] parameter(0)
  b = f32[4] parameter(1)
  lu = (f32[4,4], s32[4], s32[]) custom-call(a), custom_call_target="{target}"
  from_one = s32[4] get-tuple-element(lu), index=1
  one = s32[] constant({first})
  ones = s32[4] broadcast(one), dimensions={{}}
  pivots = s32[4] subtract(from_one, ones)
  zero = s32[] constant(0)
  state = (s32[], s32[4], f32[4]) tuple(zero, pivots, b)
  done = (s32[], s32[4], f32[4]) while(state), condition=unfinished, body=exchange
  ROOT r = f32[4] get-tuple-element(done), index=2
}}"""


@pytest.mark.parametrize("target", ["lapack_sgetrf_ffi", "lapack_sgetrf", "cusolver_getrf_ffi"])
def test_pivots_are_told_from_others(target: str) -> None:
    """Counted from 1 where 0 is meant, as in a stale buffer: with pivots that are all 0 nothing showed."""
    right, wrong = (hlotool.parse(EXCHANGES.format(target=target, first=first)) for first in (1, 0))
    assert compare_modules(right, right).relation is Relation.EQUAL
    assert compare_modules(right, wrong).relation is Relation.UNEQUAL


def test_the_order_is_that_of_the_exchanges() -> None:
    exchanges = EXCHANGES.format(target="LuDecomposition", first=0)
    results = "lu = (f32[4,4], s32[4], s32["
    exchanges = exchanges.replace(f"{results}])", f"{results}4])")
    text = """HloModule m
ENTRY e {
  a = f32[4,4] parameter(0)
  b = f32[4] parameter(1)
  lu = (f32[4,4], s32[4], s32[4]) custom-call(a), custom_call_target="LuDecomposition"
  order = s32[4] get-tuple-element(lu), index=INDEX
  ROOT r = f32[4] gather(b, order), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0},
    index_vector_dim=1, slice_sizes={1}
}"""
    right, wrong = (hlotool.parse(text.replace("INDEX", index)) for index in "21")
    assert compare_modules(hlotool.parse(exchanges), right).relation is Relation.EQUAL
    assert compare_modules(hlotool.parse(exchanges), wrong).relation is Relation.UNEQUAL


def test_a_pivot_is_a_row_that_is_left() -> None:
    factors = np.arange(2 * 5 * 3, dtype=np.uint64).reshape(2, 5, 3)
    pivots = _pivots(factors)
    assert pivots.shape == (2, 3)
    assert (pivots >= np.arange(3)).all()
    assert (pivots < 5).all()
    assert len(np.unique(pivots)) > 1


def test_the_order_follows_from_the_exchanges() -> None:
    """By hand: 0 with 2 makes 2 1 0 3; 1 with 3 makes 2 3 0 1; 2 stays."""
    assert _order(np.array([2, 3, 2]), 4).tolist() == [2, 3, 0, 1]
