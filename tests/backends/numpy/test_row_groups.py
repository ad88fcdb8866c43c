"""Rows that go through elementwise instructions and reductions together; calls that are executed in place;
equal expressions: the bits are those of one instruction after the other.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.blockwise import groups, same_bits
from support.differential import parse

from hlotool.backends.base import ReadingProbe
from hlotool.backends.numpy import NumpyBackend, blocks, grouping, row_groups
from hlotool.errors import BackendCrashed
from hlotool.lab.conformance.generators.cases import random_array


@pytest.fixture(autouse=True)
def tiny_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grouping, "_LARGE", 4)
    monkeypatch.setattr(blocks, "_BLOCK_BYTES", 100)
    monkeypatch.setattr(row_groups, "_SHORTEST", 2)


def normal(kind: str, dims: tuple[int, ...], seed: int = 0) -> Any:
    """Numbers of many magnitudes: their sums show the order in which they are made."""
    rng = np.random.default_rng(seed)
    dtype = {"f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16}[kind]
    return (rng.normal(size=dims) * 10.0 ** rng.integers(-3, 4, dims)).astype(dtype)


SOFTMAX = """HloModule m
larger {{
  a = {kind}[] parameter(0)
  b = {kind}[] parameter(1)
  ROOT r = {kind}[] maximum(a, b)
}}
sum {{
  a = {kind}[] parameter(0)
  b = {kind}[] parameter(1)
  ROOT r = {kind}[] add(a, b)
}}
ENTRY e {{
  x = {kind}[6,20] parameter(0)
  least = {kind}[] constant(-inf)
  most = {kind}[6] reduce(x, least), dimensions={{1}}, to_apply=larger
  column = {kind}[6,1] reshape(most)
  same = {kind}[6,1] broadcast(column), dimensions={{0,1}}
  back = {kind}[6] reshape(same)
  mosts = {kind}[6,20] broadcast(back), dimensions={{0}}
  d = {kind}[6,20] subtract(x, mosts)
  e = {kind}[6,20] exponential(d)
  z = {kind}[] constant(0)
  total = {kind}[6] reduce(e, z), dimensions={{1}}, to_apply=sum
  totals = {kind}[6,20] broadcast(total), dimensions={{0}}
  ROOT r = {kind}[6,20] divide(e, totals)
}}"""


@pytest.mark.parametrize("kind", ["f32", "bf16", "f64"])
def test_a_softmax_is_one_group(kind: str) -> None:
    text = SOFTMAX.format(kind=kind)
    (found,) = groups(text)
    assert [o for o in found if o not in ("reshape", "broadcast")] == [
        *("reduce", "subtract", "exponential", "reduce", "divide")
    ]
    same_bits(parse(text), [normal(kind, (6, 20))])
    same_bits(parse(text), [np.abs(random_array(np.random.default_rng(1), kind, (6, 20)))])


def reduction(kind: str, dims: str, axes: str, rows: str, before: str = "", after: str = "") -> str:
    """A sum of squares, and lines that read it as `total`."""
    return f"""HloModule m
sum {{
  a = {kind}[] parameter(0)
  b = {kind}[] parameter(1)
  ROOT r = {kind}[] add(a, b)
}}
ENTRY e {{
  x = {kind}[{dims}] parameter(0)
  {before}
  z = {kind}[] constant(0.25)
  square = {kind}[{dims}] multiply(x, x)
  total = {kind}[{rows}] reduce(square, z), dimensions={{{axes}}}, to_apply=sum
  {after}
}}"""


def test_what_belongs_to_a_row_is_a_result_of_the_group_too() -> None:
    after = """root = f64[4,3] sqrt(total)
  roots = f64[4,3,1] reshape(root)
  wide = f64[4,3,5] broadcast(root), dimensions={0,1}
  scaled = f64[4,3,5] divide(x, wide)
  ROOT r = (f64[4,3,5], f64[4,3], f64[4,3,1]) tuple(scaled, total, roots)"""
    text = reduction("f64", "4,3,5", "2", "4,3", after=after)
    assert groups(text) == [["multiply", "reduce", "sqrt", "reshape", "broadcast", "divide"]]
    found = same_bits(parse(text), [normal("f64", (4, 3, 5))])
    assert [a.shape for a in found] == [(4, 3, 5), (4, 3), (4, 3, 1)]


def test_rows_of_several_dimensions() -> None:
    after = "wide = f64[4,3,5] broadcast(total), dimensions={0}\n  ROOT r = f64[4,3,5] add(square, wide)"
    text = reduction("f64", "4,3,5", "1,2", "4", after=after)
    assert groups(text) == [["multiply", "reduce", "broadcast", "add"]]
    same_bits(parse(text), [normal("f64", (4, 3, 5))])


def test_other_numbers_of_rows_go_with_them() -> None:
    after = """more = f32[6] add(total, w)
  wide = f32[6,5] broadcast(more), dimensions={0}
  ROOT r = f32[6,5] multiply(wide, square)"""
    text = reduction("f32", "6,5", "1", "6", "w = f32[6] parameter(1)", after)
    assert groups(text) == [["multiply", "reduce", "add", "broadcast", "multiply"]]
    same_bits(parse(text), [normal("f32", (6, 5)), normal("f32", (6,), 1)])


@pytest.mark.parametrize(
    ("axes", "rows", "after"),
    [
        # Columns, and rows that become columns.
        ("0", "5", "w = f64[5,5] broadcast(total), dimensions={1}\n  ROOT r = f64[5,5] add(square, w)"),
        ("1", "5", "w = f64[5,5] broadcast(total), dimensions={1}\n  ROOT r = f64[5,5] add(square, w)"),
        # Numbers of rows in another order.
        ("1", "5", "v = f64[5] reverse(total), dimensions={0}\n  ROOT r = f64[5] add(total, v)"),
        # A number of all.
        ("0,1", "", "w = f64[5,5] broadcast(total), dimensions={}\n  ROOT r = f64[5,5] add(square, w)"),
    ],
)
def test_what_reads_other_rows_is_left_out(axes: str, rows: str, after: str) -> None:
    text = reduction("f64", "5,5", axes, rows, after=after)
    assert all("reduce" not in group or group == ["multiply", "reduce"] for group in groups(text))
    same_bits(parse(text), [normal("f64", (5, 5))])


@pytest.mark.parametrize("layout", ["C", "F", "rows", "columns", "strided"])
@pytest.mark.parametrize("kind", ["f64", "bf16"])
def test_memory_orders(layout: str, kind: str) -> None:
    plain = normal(kind, (6, 20))
    arranged = {
        "C": plain,
        "F": np.asfortranarray(plain),
        "rows": np.broadcast_to(plain[:1], plain.shape),
        "columns": np.broadcast_to(plain[:, :1], plain.shape),
        "strided": np.repeat(plain, 2, axis=1)[:, ::2],
    }[layout]
    same_bits(parse(SOFTMAX.format(kind=kind)), [arranged])
    after = "wide = f64[6,20] broadcast(total), dimensions={0}\n  ROOT r = f64[6,20] add(square, wide)"
    same_bits(parse(reduction("f64", "6,20", "1", "6", after=after)), [arranged.astype(np.float64)])


CALLS = """HloModule m
limit {
  x = f32[9] parameter(0)
  low = f32[] parameter(1)
  lows = f32[9] broadcast(low), dimensions={}
  ROOT clipped = f32[9] maximum(x, lows)
}
twice {
  x = f32[9] parameter(0)
  two = f32[] constant(2)
  twos = f32[9] broadcast(two), dimensions={}
  double = f32[9] multiply(x, twos)
  ROOT r = f32[9] call(double, two), to_apply=limit
}
ENTRY e {
  x = f32[9] parameter(0)
  n = f32[9] negate(x)
  a = f32[9] call(n), to_apply=twice
  b = f32[9] call(a), to_apply=twice
  ROOT r = f32[9] add(a, b)
}"""


def test_calls_do_not_end_a_group() -> None:
    assert groups(CALLS) == [["negate", "multiply", "maximum", "multiply", "maximum", "add"]]
    same_bits(parse(CALLS), [random_array(np.random.default_rng(0), "f32", (9,))])


def test_readers_see_what_is_called() -> None:
    module = parse(CALLS)
    (clipped,) = (i for i in module.instructions() if i.name == "clipped")
    probe, seen = ReadingProbe(), []
    probe.readers[clipped] = lambda operands: seen.append(operands[0].copy())
    NumpyBackend().compile(module).run([np.arange(-4, 5, dtype=np.float32)], probe=probe)
    assert [values.tolist() for values in seen] == [
        [8, 6, 4, 2, 0, -2, -4, -6, -8],
        [16, 12, 8, 4, 4, 4, 4, 4, 4],
    ]


def test_a_crash_names_the_instruction_that_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*values: Any) -> Any:
        raise ValueError("broken")

    from hlotool.backends.numpy.registry import RULES

    monkeypatch.setitem(RULES, "maximum", lambda instruction, lowering: broken)
    with pytest.raises(BackendCrashed, match=r"ValueError at maximum %clipped .*line 6.*: broken"):
        NumpyBackend().compile(parse(CALLS)).run([np.ones(9, np.float32)])


def test_equal_expressions_are_computed_once() -> None:
    text = """HloModule m
ENTRY e {
  x = f32[9] parameter(0)
  one = f32[] constant(1)
  uno = f32[] constant(1)
  ones = f32[9] broadcast(one), dimensions={}
  unos = f32[9] broadcast(uno), dimensions={}
  a = f32[9] add(x, ones)
  b = f32[9] add(x, unos)
  c = f32[9] subtract(x, ones)
  d = pred[9] compare(a, c), direction=LT
  e = pred[9] compare(b, c), direction=GT
  ROOT r = (f32[9], f32[9], pred[9], pred[9]) tuple(a, b, d, e)
}"""
    assert groups(text) == [["add", "subtract", "compare", "compare"]]
    same_bits(parse(text), [random_array(np.random.default_rng(0), "f32", (9,))])


def test_random_numbers_are_drawn_each_time() -> None:
    text = """HloModule m
ENTRY e {
  low = f32[] constant(0)
  high = f32[] constant(1)
  a = f32[9] rng(low, high), distribution=rng_uniform
  b = f32[9] rng(low, high), distribution=rng_uniform
  ROOT r = f32[9] subtract(a, b)
}"""
    (difference,) = same_bits(parse(text), [])
    assert difference.any()
