"""map, scan and ragged-dot, and the vectorised evaluation of scalar computations behind map."""

from __future__ import annotations

import numpy as np
import pytest
from support.differential import Array, check, parse, run

from hlotool.backends.numpy.lanes import lanes
from hlotool.backends.numpy.lowering import Lowering
from hlotool.lab.conformance.generators.cases import random_array

MAP = """HloModule mapping
double {{
  p = {kind}[] parameter(0)
  ROOT r = {kind}[] add(p, p)
}}
f {{
  a = {kind}[] parameter(0)
  b = {kind}[] parameter(1)
  {body}
}}
ENTRY e {{
  x = {kind}[3,4] parameter(0)
  y = {kind}[3,4] parameter(1)
  ROOT m = {result}[3,4] map(x, y), dimensions={{0,1}}, to_apply=f
}}"""


@pytest.mark.xla
@pytest.mark.parametrize(
    ("body", "result"),
    [
        ("ROOT r = s32[] subtract(a, b)", "s32"),
        ("ROOT r = pred[] compare(a, b), direction=LT", "pred"),
        ("c = s32[] call(a), to_apply=double\n  ROOT r = s32[] multiply(c, b)", "s32"),
        ("ROOT r = s32[] constant(7)", "s32"),
        ("ROOT r = s32[] copy(b)", "s32"),
        ("n = s32[] negate(a)\n  ROOT r = s32[] clamp(n, b, a)", "s32"),
        ("l = pred[] compare(a, b), direction=LT\n  ROOT r = s32[] select(l, b, a)", "s32"),
        ("c = f32[] convert(a)\n  d = f32[] sqrt(c)\n  ROOT r = s32[] convert(d)", "s32"),
        ("c = s32[1,1] reshape(a)\n  d = s32[] reshape(c)\n  ROOT r = s32[] add(d, b)", "s32"),
    ],
)
def test_map(body: str, result: str) -> None:
    rng = np.random.default_rng(1)
    arguments = [random_array(rng, "s32", (3, 4)), random_array(rng, "s32", (3, 4))]
    check(MAP.format(kind="s32", body=body, result=result), arguments)


@pytest.mark.parametrize("shape", [(), (1,), (5,), (2, 3)])
def test_lanes_agree_with_one_lane_after_the_other(shape: tuple[int, ...]) -> None:
    body = """zero = f32[] constant(0)
  p = pred[] compare(a, zero), direction=GT
  s = f32[] select(p, a, b)
  t = f32[] maximum(s, zero)
  u = s32[] convert(t)
  v = f32[] convert(u)
  w = f32[] power(t, v)
  q = f32[] reduce-precision(w), exponent_bits=5, mantissa_bits=10
  i = s32[] bitcast-convert(q)
  j = s32[] shift-right-logical(i, u)
  k = f32[] bitcast-convert(j)
  ROOT r = f32[] clamp(zero, k, t)"""
    module = parse(MAP.format(kind="f32", body=body, result="f32"))
    lowering = Lowering(module)
    function = next(module.entry.root.called)
    vectorised = lanes(function, lowering)
    assert vectorised.form is not None
    plan = lowering.plan(function)
    rng = np.random.default_rng(2)
    a, b = random_array(rng, "f32", shape), random_array(rng, "f32", shape)
    (result,) = vectorised(a, b)
    assert result.shape == shape
    for index in np.ndindex(shape):
        expected = plan([a[(*index, ...)], b[(*index, ...)]])
        np.testing.assert_array_equal(result[index], expected)


def test_lanes_merge_equal_expressions() -> None:
    body = """c = s32[] add(a, b)
  d = s32[] add(a, b)
  e = s32[] multiply(c, d)
  ROOT r = s32[] copy(e)"""
    module = parse(MAP.format(kind="s32", body=body, result="s32"))
    form = lanes(next(module.entry.root.called), Lowering(module)).form
    assert form is not None
    assert [i.opcode for i in form.operations] == ["add", "multiply"]


@pytest.mark.xla
@pytest.mark.parametrize("reverse", [False, True])
def test_scan(reverse: bool) -> None:
    text = """HloModule scanning
body {
  x = f32[3] parameter(0)
  c = f32[3] parameter(1)
  s = f32[3] add(x, c)
  d = f32[3] multiply(s, x)
  ROOT t = (f32[3], f32[3]) tuple(d, s)
}
ENTRY e {
  x = f32[3,5] parameter(0)
  c = f32[3] parameter(1)
  ROOT r = (f32[3,5], f32[3]) scan(x, c), dimensions={1}, is_reverse=REVERSE, num_carries=1, to_apply=body
}""".replace("REVERSE", str(reverse).lower())
    rng = np.random.default_rng(3)
    check(text, [random_array(rng, "f32", (3, 5)), random_array(rng, "f32", (3,))])


def ragged_text(lhs: str, rhs: str, sizes: str, result: str, attributes: str, kind: str = "f64") -> str:
    return f"""HloModule ragged
ENTRY e {{
  x = {kind}[{lhs}] parameter(0)
  y = {kind}[{rhs}] parameter(1)
  g = s32[{sizes}] parameter(2)
  ROOT d = {kind}[{result}] ragged-dot(x, y, g), {attributes}
}}"""


def groups(sizes: Array, length: int) -> list[tuple[int, int]]:
    ends = np.minimum(np.cumsum(sizes), length).tolist()
    return list(zip([0, *ends], ends))


# XLA: hlo_evaluator_typed_visitor.h (HandleRaggedDot…); its CPU backend cannot run ragged-dot.
@pytest.mark.parametrize("sizes", [[2, 3, 1], [0, 9, 4], [7, 2, 0], [1, 1, 1]])
def test_ragged_rows(sizes: list[int]) -> None:
    rng = np.random.default_rng(4)
    x, y = rng.standard_normal((9, 4)), rng.standard_normal((3, 4, 5))
    text = ragged_text(
        "9,4",
        "3,4,5",
        "3",
        "9,5",
        "lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}",
    )
    expected = np.zeros((9, 5))
    for group, (start, end) in enumerate(groups(np.array(sizes), 9)):
        expected[start:end] = x[start:end] @ y[group]
    (result,) = run(text, [x, y, np.array(sizes, np.int32)])
    np.testing.assert_allclose(result, expected, rtol=1e-12)


@pytest.mark.parametrize("varying", [False, True])
def test_ragged_rows_in_batches(varying: bool) -> None:
    rng = np.random.default_rng(5)
    x, y = rng.standard_normal((2, 9, 4)), rng.standard_normal((3, 2, 4, 5))
    sizes = np.array([[2, 3, 1], [4, 0, 5]] if varying else [2, 3, 1], np.int32)
    text = ragged_text(
        "2,9,4",
        "3,2,4,5",
        "2,3" if varying else "3",
        "2,9,5",
        "lhs_batch_dims={0}, rhs_batch_dims={1}, lhs_contracting_dims={2}, rhs_contracting_dims={2}, "
        "lhs_ragged_dims={1}, rhs_group_dims={0}",
    )
    expected = np.zeros((2, 9, 5))
    for batch in range(2):
        for group, (start, end) in enumerate(groups(sizes[batch] if varying else sizes, 9)):
            expected[batch, start:end] = x[batch, start:end] @ y[group, batch]
    (result,) = run(text, [x, y, sizes])
    np.testing.assert_allclose(result, expected, rtol=1e-12)


@pytest.mark.parametrize("varying", [False, True])
def test_ragged_contraction(varying: bool) -> None:
    rng = np.random.default_rng(6)
    x, y = rng.standard_normal((2, 4, 9)), rng.standard_normal((2, 9, 5))
    x[:, :, 8] = np.nan  # belongs to no group
    sizes = np.array([[2, 3, 1], [4, 0, 4]] if varying else [2, 3, 1], np.int32)
    text = ragged_text(
        "2,4,9",
        "2,9,5",
        "2,3" if varying else "3",
        "3,2,4,5",
        "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}, "
        "lhs_ragged_dims={2}",
    )
    expected = np.zeros((3, 2, 4, 5))
    for batch in range(2):
        for group, (start, end) in enumerate(groups(sizes[batch] if varying else sizes, 9)):
            expected[group, batch] = x[batch, :, start:end] @ y[batch, start:end]
    (result,) = run(text, [x, y, sizes])
    np.testing.assert_allclose(result, expected, rtol=1e-12)


def test_ragged_batch() -> None:
    rng = np.random.default_rng(7)
    x, y = rng.standard_normal((6, 3, 4)), rng.standard_normal((6, 4, 5))
    text = ragged_text(
        "6,3,4",
        "6,4,5",
        "3",
        "6,3,5",
        "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}, "
        "lhs_ragged_dims={0}",
    )
    expected = x @ y
    expected[4:] = 0
    (result,) = run(text, [x, y, np.array([1, 0, 3], np.int32)])
    np.testing.assert_allclose(result, expected, rtol=1e-12)
