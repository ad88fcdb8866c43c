"""Arrays of dynamic size, held at their actual size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.differential import Array, leaves, parse, run
from support.xla import oracle

from hlotool.backends.numpy import NumpyBackend
from hlotool.errors import InputDataError, Unsupported

X = np.arange(1, 7, dtype=np.float32)


def module(result: str, *lines: str) -> str:
    """A module over d, the first n elements of x = f32[6]."""
    body = "\n".join(f"  {line}" for line in lines)
    return f"""HloModule m
add {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}}
ENTRY e {{
  x = f32[6] parameter(0)
  n = s32[] parameter(1)
  zero = f32[] constant(0)
  two = s32[] constant(2)
  d = f32[<=6] set-dimension-size(x, n), dimensions={{0}}
{body}
  ROOT result = {result}
}}"""


SUM = "f32[] reduce(y, zero), dimensions={0}, to_apply=add"
MODULES = {
    "result": module("f32[<=6] add(d, d)"),
    "size": module("s32[] get-dimension-size(d), dimensions={0}"),
    "reduce": module(SUM.replace("(y", "(d")),
    "static operand": module(SUM, "y = f32[<=6] multiply(d, x)"),
    "broadcast": module(
        "f32[2] reduce(y, zero), dimensions={1}, to_apply=add", "y = f32[2,<=6] broadcast(d), dimensions={1}"
    ),
    "concatenate": module("f32[<=12] concatenate(d, x), dimensions={0}"),
    "slice": module(SUM, "y = f32[<=6] slice(d), slice={[0:6]}"),
    "pad": module(SUM, "seven = f32[] constant(7)", "y = f32[<=8] pad(d, seven), padding=1_1"),
    "reverse": module("f32[2] slice(y), slice={[0:2]}", "y = f32[<=6] reverse(d), dimensions={0}"),
    "select": module(
        SUM,
        "p = pred[<=6] compare(d, x), direction=NE",
        "one = f32[] constant(1)",
        "ones = f32[6] broadcast(one), dimensions={}",
        "y = f32[<=6] select(p, d, ones)",
    ),
    "flat": module("f32[<=6] reshape(y)", "y = f32[<=6,1] reshape(d)"),
    "dynamic-reshape": module(
        "f32[2] reduce(y, zero), dimensions={0}, to_apply=add",
        "half = s32[] divide(n, two)",
        "y = f32[<=3,2] dynamic-reshape(d, half, two)",
    ),
    "enlarged": module("f32[6] set-dimension-size(d, six), dimensions={0}", "six = s32[] constant(6)"),
    "enlarged by one": module(
        SUM,
        "five = s32[] constant(5)",
        "e = f32[<=6] negate(d)",
        "f = f32[<=6] multiply(e, x)",
        "g = f32[<=6] add(f, e)",
        "y = f32[<=6] set-dimension-size(g, five), dimensions={0}",
    ),
    "SliceToDynamic": module('f32[<=6] custom-call(x, n), custom_call_target="SliceToDynamic"'),
}


def prefix(whole: Array, part: Array) -> Array:
    """XLA hands out dynamic arrays at their bounds, with anything behind the actual size."""
    return whole[tuple(slice(size) for size in part.shape)]


@pytest.mark.xla
@pytest.mark.parametrize("name", MODULES)
def test_against_xla(name: str) -> None:
    arguments: list[Any] = [X, np.int32(4)]
    (ours,) = run(MODULES[name], arguments)
    (theirs,) = oracle().run(MODULES[name], arguments)
    assert ours.dtype == theirs.dtype
    assert ours.tolist() == prefix(theirs, ours).tolist()


@pytest.mark.parametrize("n", [0, 1, 4, 6])
def test_actual_sizes(n: int) -> None:
    assert run(MODULES["result"], [X, np.int32(n)])[0].tolist() == (2 * X[:n]).tolist()
    assert run(MODULES["size"], [X, np.int32(n)])[0] == n
    assert run(MODULES["concatenate"], [X, np.int32(n)])[0].size == n + 6


@pytest.mark.parametrize("n", [7, -1])
def test_sizes_outside_the_bound_are_refused(n: int) -> None:
    with pytest.raises(Unsupported, match=f"size {n} where 6 elements are known"):
        run(MODULES["result"], [X, np.int32(n)])


def test_enlarging_shows_what_was_cut_off() -> None:
    assert run(MODULES["enlarged"], [X, np.int32(4)])[0].tolist() == X.tolist()
    assert run(MODULES["enlarged by one"], [X, np.int32(0)])[0] == -(X[:5] * X[:5] + X[:5]).sum()


def test_enlarging_what_was_moved_is_refused() -> None:
    """XLA shows what lies behind the actual size, by the way in which it moves elements."""
    lines = ("six = s32[] constant(6)", "y = f32[<=6] reverse(d), dimensions={0}")
    text = module("f32[6] set-dimension-size(y, six), dimensions={0}", *lines)
    with pytest.raises(Unsupported, match="size 6 where 4 elements are known"):
        run(text, [X, np.int32(4)])
    assert run(text, [X, np.int32(6)])[0].tolist() == X[::-1].tolist()


def test_reshape_splits_a_dynamic_dimension() -> None:
    text = module("f32[<=3,2] reshape(d)")
    assert run(text, [X, np.int32(4)])[0].tolist() == [[1, 2], [3, 4]]
    with pytest.raises(Unsupported, match=r"\[5\] does not fill f32\[<=3,2\]"):
        run(text, [X, np.int32(5)])


def test_dynamic_parameters_come_at_their_actual_size() -> None:
    text = """HloModule m
ENTRY e {
  x = f32[<=4,2] parameter(0)
  y = f32[<=8] reshape(x)
  ROOT z = f32[<=8] negate(y)
}"""
    assert run(text, [np.array([[1, 2], [3, 4]], np.float32)])[0].tolist() == [-1, -2, -3, -4]


ADD = "add { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] add(a, b) }"
UNBOUNDED = {
    "s32[?,3] abs(x)": [[1, 2, 3], [4, 5, 6]],
    "s32[3,?] transpose(x), dimensions={1,0}": [[-1, -4], [-2, -5], [-3, -6]],
    "s32[?] reshape(x)": [-1, -2, -3, -4, -5, -6],
    "s32[3] reduce(x, zero), dimensions={0}, to_apply=add": [-5, -7, -9],
    "s32[] get-dimension-size(x), dimensions={0}": 2,
    "s32[?,3] concatenate(x, x), dimensions={0}": [[-1, -2, -3], [-4, -5, -6]] * 2,
    "s32[2,?,3] broadcast(x), dimensions={1,2}": [[[-1, -2, -3], [-4, -5, -6]]] * 2,
}


@pytest.mark.parametrize("result", UNBOUNDED)
def test_dimensions_without_bound(result: str) -> None:
    """Arguments may be of any size. XLA's compilers take none of these."""
    text = f"{ADD} ENTRY e {{ x = s32[?,3] parameter(0) zero = s32[] constant(0) ROOT r = {result} }}"
    argument = np.int32([[-1, -2, -3], [-4, -5, -6]])
    assert run(text, [argument])[0].tolist() == UNBOUNDED[result]


@pytest.mark.parametrize("result", ["broadcast(zero), dimensions={}", "iota(), iota_dimension=1"])
def test_sizes_that_nothing_tells(result: str) -> None:
    text = f"ENTRY e {{ zero = s32[] constant(0) ROOT r = s32[?,3] {result} }}"
    with pytest.raises(Unsupported, match=r"unknown sizes of s32\[\?,3\]"):
        run(text, [])


def test_arguments_without_bound_still_have_a_rank() -> None:
    with pytest.raises(InputDataError, match=r"expected s32\[\?,3\], got dimensions \[2,4\]"):
        run("ENTRY e { ROOT x = s32[?,3] parameter(0) }", [np.zeros((2, 4), np.int32)])


def test_pad_to_static() -> None:
    """The array at its bounds and one size per dimension. XLA: dynamic_padder.cc."""
    text = """HloModule m
ENTRY e {
  x = f32[2,<=3] parameter(0)
  ROOT p = (f32[2,3], s32[], s32[]) custom-call(x), custom_call_target="PadToStatic"
}"""
    padded, rows, columns = run(text, [np.array([[1, 2], [3, 4]], np.float32)])
    assert padded.tolist() == [[1, 2, 0], [3, 4, 0]]
    assert (rows, columns) == (2, 2)


CASES = {
    "where_positions": (np.array([1, -1, 2, 0, 3, -5], np.float32), [[0], [2], [4]]),
    "masked_values": (np.array([1, -1, 2, 0, 3, -5], np.float32), [2, 4, 6]),
    "unique_values": (np.array([3, 1, 3, 2, 1], np.int32), [3, 1, 2]),
    "unique_sum": (np.array([3, 1, 3, 2, 1], np.int32), 6),
}


@pytest.mark.parametrize("stage", ["before_optimizations", "cpu_after_optimizations"])
@pytest.mark.parametrize("case", CASES)
def test_tensorflow_programs(corpus: Path, case: str, stage: str) -> None:
    """tf.where, tf.boolean_mask and tf.unique, before and after XLA's dynamic padder."""
    (path,) = (corpus / "tf").glob(f"dynamic_*/*inference_{case}_*.{stage}.txt")
    argument, expected = CASES[case]
    result = leaves(NumpyBackend().compile(parse(path.read_text(encoding="utf-8"))).run([argument]))[0]
    assert result.tolist() == expected
