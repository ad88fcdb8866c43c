"""reduce-window and select-and-scatter: every window parameter, monoids and general computations."""

from __future__ import annotations

import numpy as np
import pytest
from support.differential import check, run, slow

from hlotool.lab.conformance.generators.cases import random_array

WINDOWS = {
    "plain": ("size=3x2", "6,7"),
    "stride": ("size=3x2 stride=2x3", "6,7"),
    "padding": ("size=3x2 pad=1_2x0_1", "6,7"),
    "negative padding": ("size=2x2 pad=-1_0x2_-2", "6,7"),
    "base dilation": ("size=3x3 lhs_dilate=2x3", "5,4"),
    "base dilation, stride, padding": ("size=3x2 stride=2x2 pad=2_1x-2_3 lhs_dilate=3x2", "5,4"),
    "window dilation": ("size=2x3 rhs_dilate=3x2", "6,7"),
    "both dilations": ("size=2x3 stride=3x1 pad=3_3x4_4 lhs_dilate=2x3 rhs_dilate=2x2", "5,4"),
    "all padding": ("size=1x2 stride=1x1 pad=3_0x0_3", "2,2"),
    "larger than the array": ("size=9x2", "6,7"),
    "cumulative": ("size=1x7 pad=0_0x6_0", "6,7"),
    "reverse cumulative": ("size=6x1 pad=0_5x0_0", "6,7"),
    "long": ("size=1x12 pad=0_0x3_4", "3,40"),
    "long, stride": ("size=1x12 stride=1x5 pad=0_0x3_4", "3,40"),
    "long, dilated": ("size=1x9 stride=1x2 pad=0_0x3_4 rhs_dilate=1x3", "3,40"),
    "long, few": ("size=1x30 stride=1x5", "3,40"),
    "blocks": ("size=1x10 stride=1x10", "3,40"),
}


def window_text(kind: str, body: str, window: str, sizes: str, result: str) -> str:
    return f"""HloModule window
f {{
  a = {kind}[] parameter(0)
  b = {kind}[] parameter(1)
  {body}
}}
ENTRY e {{
  x = {kind}[{sizes}] parameter(0)
  init = {kind}[] parameter(1)
  ROOT r = {kind}[{result}] reduce-window(x, init), window={{{window}}}, to_apply=f
}}"""


def result_sizes(window: str, sizes: str) -> str:
    """Sizes by the formula of XLA: window_util.cc and shape_inference.cc (InferWindowOutputShape)."""
    fields = dict(part.split("=") for part in window.split())
    results = []
    for axis, size in enumerate(map(int, sizes.split(","))):
        field = {name: value.split("x")[axis] for name, value in fields.items()}
        low, high = map(int, field.get("pad", "0_0").split("_"))
        dilated = (size - 1) * int(field.get("lhs_dilate", 1)) + 1 if size else 0
        span = (int(field["size"]) - 1) * int(field.get("rhs_dilate", 1)) + 1
        room = dilated + low + high - span
        results.append(0 if room < 0 else room // int(field.get("stride", 1)) + 1)
    return ",".join(map(str, results))


def shape(sizes: str) -> tuple[int, ...]:
    return tuple(map(int, sizes.split(",")))


GENERAL = "t = s32[] add(a, a)\n  ROOT r = s32[] add(t, b)"


@pytest.mark.xla
@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("opcode", ["add", *slow("maximum")])
def test_monoids(name: str, opcode: str) -> None:
    window, sizes = WINDOWS[name]
    text = window_text("s32", f"ROOT r = s32[] {opcode}(a, b)", window, sizes, result_sizes(window, sizes))
    init = 0 if opcode == "add" else -(2**31)
    check(text, [random_array(np.random.default_rng(1), "s32", shape(sizes)), np.int32(init)])


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("body", [GENERAL, "ROOT r = s32[] add(b, a)"])
def test_definition(name: str, body: str) -> None:
    """Against the definition, element by element. XLA: hlo_evaluator.cc (HandleReduceWindow)."""
    window, sizes = WINDOWS[name]
    text = window_text("s32", body, window, sizes, result_sizes(window, sizes))
    x = random_array(np.random.default_rng(2), "s32", shape(sizes), 100)
    fields = dict(part.split("=") for part in window.split())

    def field(key: str, axis: int, default: str) -> str:
        return fields[key].split("x")[axis] if key in fields else default

    expected = np.empty(shape(result_sizes(window, sizes)), np.int32)
    for output in np.ndindex(expected.shape):
        total = 7
        for position in np.ndindex(*map(int, fields["size"].split("x"))):
            index = []
            for axis in range(2):
                low = int(field("pad", axis, "0_0").split("_")[0])
                base = int(field("lhs_dilate", axis, "1"))
                at = output[axis] * int(field("stride", axis, "1")) - low
                at += position[axis] * int(field("rhs_dilate", axis, "1"))
                index.append(at // base if at % base == 0 and 0 <= at // base < x.shape[axis] else None)
            if None not in index:
                total = (2 if body is GENERAL else 1) * total + int(x[index[0], index[1]])
        expected[output] = np.int64(total & 0xFFFFFFFF).astype(np.int32)
    (result,) = run(text, [x, np.int32(7)])
    np.testing.assert_array_equal(result, expected)


@pytest.mark.xla
@pytest.mark.parametrize("kind", ["pred", "bf16", "f32", *slow("u8", "s64", "f16", "f64")])
@pytest.mark.parametrize("opcode", ["maximum", "add", *slow("minimum")])
@pytest.mark.parametrize("name", ["both dilations", "long"])
def test_types(kind: str, opcode: str, name: str) -> None:
    window, sizes = WINDOWS[name]
    text = window_text(kind, f"ROOT r = {kind}[] {opcode}(a, b)", window, sizes, result_sizes(window, sizes))
    x = random_array(np.random.default_rng(3), kind, shape(sizes))
    # 13 roundings of partial sums; the sum of 13 magnitudes stays below 20.
    init = np.zeros((), x.dtype) if opcode == "add" else random_array(np.random.default_rng(4), kind, ())
    check(text, [x, init], steps=13 if opcode == "add" else 0, scale=20)


@pytest.mark.xla
@pytest.mark.parametrize("opcode", ["maximum", "minimum"])
def test_extrema_of_zeros_and_nan(opcode: str) -> None:
    window, sizes = WINDOWS["long"]
    x = np.resize(np.array([0.0, -0.0], np.float32), shape(sizes))
    x[1] = -0.0
    x[2, 20] = np.nan
    text = window_text("f32", f"ROOT r = f32[] {opcode}(a, b)", window, sizes, result_sizes(window, sizes))
    check(text, [x, np.float32(-np.inf if opcode == "maximum" else np.inf)])


@pytest.mark.xla
def test_several_operands() -> None:
    text = """HloModule argmax_pool
f {
  a = f32[] parameter(0)
  i = s32[] parameter(1)
  b = f32[] parameter(2)
  j = s32[] parameter(3)
  ge = pred[] compare(a, b), direction=GE
  value = f32[] select(ge, a, b)
  index = s32[] select(ge, i, j)
  ROOT t = (f32[], s32[]) tuple(value, index)
}
ENTRY e {
  x = f32[8,9] parameter(0)
  n = s32[8,9] parameter(1)
  low = f32[] constant(-inf)
  none = s32[] constant(-1)
  ROOT r = (f32[4,4], s32[4,4]) reduce-window(x, n, low, none),
    window={size=3x3 stride=2x2 pad=0_1x0_0}, to_apply=f
}"""
    rng = np.random.default_rng(5)
    n = np.arange(72, dtype=np.int32).reshape(8, 9)
    check(text, [rng.integers(0, 5, (8, 9)).astype(np.float32), n])


def test_cumulative_general_computation_continues_from_one_window_to_the_next() -> None:
    x = np.arange(1, 2001, dtype=np.int32).reshape(2, 1000)
    text = window_text("s32", GENERAL, "size=1x1000 pad=0_0x999_0", "2,1000", "2,1000")
    (result,) = run(text, [x, np.int32(3)])
    total = np.full(2, 3, np.int32)
    for column in range(1000):
        total = total + total + x[:, column]
        np.testing.assert_array_equal(result[:, column], total)


def test_rank_0() -> None:
    text = """HloModule scalar
f {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT r = s32[] add(a, b)
}
ENTRY e {
  x = s32[] parameter(0)
  init = s32[] parameter(1)
  ROOT r = s32[] reduce-window(x, init), to_apply=f
}"""
    (result,) = run(text, [np.int32(3), np.int32(4)])
    assert result == 7


def test_cumulative_sums_do_not_drift() -> None:
    x = np.full(100_000, 0.1, np.float32)
    text = window_text("f32", "ROOT r = f32[] add(a, b)", "size=100000 pad=99999_0", "100000", "100000")
    (result,) = run(text, [x, np.float32(0)])
    np.testing.assert_array_equal(result, np.cumsum(x.astype(np.float64)).astype(np.float32))


def pool_gradient(direction: str, window: str, sizes: str, scatter: str, kind: str = "f32") -> str:
    return f"""HloModule pool_gradient
select {{
  a = {kind}[] parameter(0)
  b = {kind}[] parameter(1)
  ROOT r = pred[] compare(a, b), direction={direction}
}}
combine {{
  a = {kind}[] parameter(0)
  b = {kind}[] parameter(1)
  ROOT r = {kind}[] {scatter}
}}
ENTRY e {{
  x = {kind}[{sizes}] parameter(0)
  source = {kind}[{result_sizes(window, sizes)}] parameter(1)
  init = {kind}[] parameter(2)
  ROOT r = {kind}[{sizes}] select-and-scatter(x, source, init), window={{{window}}},
    select=select, scatter=combine
}}"""


@pytest.mark.xla
@pytest.mark.parametrize("direction", ["GE", "GT", "LE"])
@pytest.mark.parametrize("window", ["size=2x2 stride=2x2", "size=3x3 stride=2x1 pad=1_1x1_2", "size=3x2"])
@pytest.mark.parametrize("kind", ["f32", *slow("s32", "f64")])
def test_select_and_scatter(direction: str, window: str, kind: str) -> None:
    rng = np.random.default_rng(6)
    x = rng.integers(0, 4, (6, 8)).astype(random_array(rng, kind, ()).dtype)
    source = rng.integers(-9, 9, shape(result_sizes(window, "6,8"))).astype(x.dtype)
    text = pool_gradient(direction, window, "6,8", "add(a, b)", kind)
    check(text, [x, source, x.dtype.type(1)])


@pytest.mark.xla
def test_scatter_receives_current_value_then_source() -> None:
    text = pool_gradient("GE", "size=2x1 stride=1x1", "3,1", "subtract(a, b)", "s32")
    inputs = [np.array([[1], [9], [2]], np.int32), np.array([[5], [7]], np.int32), np.int32(10)]
    (result,) = run(text, inputs)
    np.testing.assert_array_equal(result.ravel(), [10, 10 - 5 - 7, 10])
    check(text, inputs)


def test_window_in_the_padding_selects_nothing() -> None:
    text = pool_gradient("GE", "size=1x1 pad=2_0x0_0", "2,1", "add(a, b)", "s32")
    source = np.array([[1], [2], [3], [4]], np.int32)
    (result,) = run(text, [np.zeros((2, 1), np.int32), source, np.int32(0)])
    np.testing.assert_array_equal(result.ravel(), [3, 4])


@pytest.mark.xla
def test_nan_moves_the_selection_on() -> None:
    x = np.array([[np.nan, 1, 2, np.nan], [0, np.nan, 5, 1]], np.float32)
    source = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
    check(pool_gradient("GE", "size=1x2", "2,4", "add(a, b)"), [x, source, np.float32(0)])
