"""Numbers that follow sizes, values that stand twice, reductions in parts."""

from __future__ import annotations

import numpy as np

from hlotool.backends.numpy import NumpyBackend
from hlotool.ir.module import Module
from hlotool.parser.reader import parse_module
from hlotool.rewrite.scale.limits import Limits
from hlotool.rewrite.scale.plan import Scaled, scaled

#: The last of 64 rows that count: an index from the end where it is negative.
LAST_BEFORE = """HloModule m
ENTRY main {
  x = f32[64,300] parameter(0)
  length = s32[] parameter(1)
  zero = s32[] constant(0)
  one = s32[] constant(1)
  last = s32[] subtract(length, one)
  rows = s32[] constant(64)
  is_negative = pred[] compare(last, zero), direction=LT
  wrapped = s32[] add(last, rows)
  index = s32[] select(is_negative, wrapped, last)
  ROOT row = f32[1,300] dynamic-slice(x, index, zero), dynamic_slice_sizes={1,300}
}"""

#: What a compiler makes of it: 64 - 1 is one number.
LAST_AFTER = """HloModule m
ENTRY main {
  x = f32[64,300] parameter(0)
  length = s32[] parameter(1)
  zero = s32[] constant(0)
  less = s32[] constant(-1)
  last = s32[] add(length, less)
  rows = s32[] constant(63)
  is_negative = pred[] compare(last, zero), direction=LT
  wrapped = s32[] add(length, rows)
  index = s32[] select(is_negative, wrapped, last)
  ROOT row = f32[1,300] dynamic-slice(x, index, zero), dynamic_slice_sizes={1,300}
}"""


def plan(*texts: str, sizes: str) -> Scaled:
    programs = {str(n): parse_module(text) for n, text in enumerate(texts)}
    found = scaled(programs, sizes, Limits(float("inf"), float("inf")))
    assert found is not None
    return found


def value_of(module: Module, name: str) -> int:
    literal = next(i.literal for i in module.instructions() if i.name == name)
    assert literal is not None
    return int(literal.array.item())


def test_an_index_from_the_end_follows_the_dimension() -> None:
    before, after = plan(LAST_BEFORE, LAST_AFTER, sizes="64=5").programs.values()
    assert (value_of(before, "rows"), value_of(after, "rows")) == (5, 4)
    x = np.arange(1500, dtype=np.float32).reshape(5, 300)
    for length in (-9, -4, -3, 0, 1, 5, 9):
        rows = [
            NumpyBackend().compile(module).run([x, np.array(length, np.int32)]) for module in (before, after)
        ]
        np.testing.assert_array_equal(*rows)


def test_an_index_from_the_end_stays_where_its_number_is_something_else_too() -> None:
    odd = LAST_AFTER.replace(
        "wrapped = s32[] add(length, rows)",
        "other = s32[] maximum(length, rows) wrapped = s32[] add(other, rows)",
    )
    found = plan(LAST_BEFORE, odd, sizes="300=7")
    assert found.programs["0"].entry.parameters[0].dims == (64, 7)
    assert any(stay.size == 64 and "one program only" in stay.why for stay in found.record.stay)


def test_a_value_that_stands_twice_has_one_size() -> None:
    """One table is computed twice before, once after; the other of the two has no partner."""
    head = "HloModule m ENTRY e { p = s32[20,1] parameter(0) "
    table = "i{n} = s32[5000] iota(), iota_dimension=0 t{n} = s32[5000] multiply(i{n}, i{n}) "
    look = (
        "{name} = s32[20,1] gather({table}, p), offset_dims={{1}}, collapsed_slice_dims={{}}, "
        "start_index_map={{0}}, index_vector_dim=1, slice_sizes={{1}} "
    )
    first, end = look.format(name="a", table="t0"), "ROOT r = s32[20,2] concatenate(a, b), dimensions={1} }"
    before = head + table.format(n=0) + first + table.format(n=1) + look.format(name="b", table="t1") + end
    after = head + table.format(n=0) + first + look.format(name="b", table="t0") + end
    found = plan(before, after, sizes="5000=7")
    sizes = {i.dims for m in found.programs.values() for i in m.instructions() if i.opcode == "iota"}
    assert sizes == {(7,)}


def test_a_reduction_in_parts_has_as_many_parts() -> None:
    text = """HloModule m
    sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
    ENTRY e {
      x = f32[90,600] parameter(0)
      zero = f32[] constant(0)
      w = f32[90,19] reduce-window(x, zero), window={size=1x32 stride=1x32 pad=0_0x4_4}, to_apply=sum
      ROOT r = f32[90] reduce(w, zero), dimensions={1}, to_apply=sum
    }"""
    module = plan(text, sizes="600=43").programs["0"]
    x = np.random.default_rng(0).normal(size=(90, 43)).astype(np.float32)
    result = NumpyBackend().compile(module).run([x])
    np.testing.assert_allclose(result, x.sum(1), rtol=1e-4, atol=1e-5)
