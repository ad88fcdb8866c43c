"""Blocks of linear algebra in programs for TPUs: each by the algebra that its operands and results enter."""

from __future__ import annotations

import numpy as np
import pytest
from support.differential import parse, run

from hlotool.backends.numpy.executions.noise import Member
from hlotool.backends.numpy.executions.policy import Policy
from hlotool.backends.numpy.executions.varied import VariedBackend
from hlotool.ir.arrays import Array
from hlotool.lab.conformance.generators.cases import random_array


def call(target: str, results: list[str], *operands: str) -> str:
    lines = [f"  p{i} = {shape} parameter({i})" for i, shape in enumerate(operands)]
    names = ", ".join(f"p{i}" for i in range(len(operands)))
    shape = results[0] if len(results) == 1 else f"({', '.join(results)})"
    root = f'  ROOT r = {shape} custom-call({names}), custom_call_target="{target}"'
    return "\n".join(["HloModule m", "ENTRY e {", *lines, root, "}"])


def random(*dims: int) -> Array:
    return random_array(np.random.default_rng(7), "f32", dims)


def test_cholesky() -> None:
    a = random(2, 5, 5)
    spd = (a @ a.swapaxes(1, 2) + 5 * np.eye(5)).astype(np.float32)
    (lower,) = run(call("Cholesky", ["f32[2,5,5]"], "f32[2,5,5]"), [spd])
    np.testing.assert_allclose(lower @ lower.swapaxes(1, 2), spd, rtol=1e-4, atol=1e-4)
    (of_negative,) = run(call("Cholesky", ["f32[2,5,5]"], "f32[2,5,5]"), [-spd])
    assert np.isnan(of_negative.diagonal(axis1=1, axis2=2)).any(axis=1).all()


@pytest.mark.parametrize(("which", "triangle"), [("Lower", np.tril), ("Upper", np.triu)])
def test_inverses_of_triangles(which: str, triangle: object) -> None:
    a = np.asarray(triangle(random(3, 4, 4)) + 6 * np.eye(4), np.float32)  # type: ignore[operator]
    (inverse,) = run(call(f"InvertDiagBlocks{which}Triangular", ["f32[3,4,4]"], "f32[3,4,4]"), [a])
    np.testing.assert_allclose(a @ inverse, np.broadcast_to(np.eye(4), a.shape), atol=1e-5)


def test_reflections_are_put_together() -> None:
    """Q = I + V·T·Vᵀ of what the block returns, with the operand as programs make it, gives A = Q·R."""
    a = random(6, 4)
    packed, tau = run(call("QrDecompositionBlock", ["f32[6,4]", "f32[4]"], "f32[6,4]"), [a])
    v = np.tril(packed, -1) + np.eye(6, 4, dtype=np.float32)
    operand = ((np.triu(v.T @ v, 1) + np.eye(4)) * -tau).astype(np.float32)
    (t,) = run(call("CompactWyHelper", ["f32[4,4]"], "f32[4,4]"), [operand])
    q = np.eye(6) + v @ t @ v.T
    np.testing.assert_allclose(q @ q.T, np.eye(6), atol=1e-5)
    np.testing.assert_allclose(q[:, :4] @ np.triu(packed[:4]), a, atol=1e-5)


@pytest.mark.parametrize("target", ["LuDecompositionBlock", "LuRealDecompositionBlock"])
def test_lu(target: str) -> None:
    a = random(5, 4)
    factors, pivots, rows = run(call(target, ["f32[5,4]", "s32[4]", "s32[5]"], "f32[5,4]"), [a])
    product = (np.tril(factors, -1) + np.eye(5, 4)) @ np.triu(factors[:4])
    np.testing.assert_allclose(product, a[rows], atol=1e-5)
    assert (pivots >= np.arange(4)).all()


@pytest.mark.parametrize("is_padded", [False, True])
def test_eigenvalues_of_four_blocks(is_padded: bool) -> None:
    a = random(6, 6)
    a = a + a.T
    if is_padded:
        a[-1], a[:, -1] = 0, 0
    blocks = [np.ascontiguousarray(a[i : i + 3, j : j + 3]) for i in (0, 3) for j in (0, 3)]
    shapes = ["f32[3]"] * 2 + ["f32[3,3]"] * 4
    first, last, *parts = run(call("EighTpu", shapes, *["f32[3,3]"] * 4), blocks)
    values, rows = np.concatenate([first, last]), np.block([parts[:2], parts[2:]])
    np.testing.assert_allclose(rows.T @ np.diag(values) @ rows, a, atol=1e-4)
    np.testing.assert_allclose(rows @ rows.T, np.eye(6), atol=1e-5)
    if is_padded:
        assert values[-1] == 0
        np.testing.assert_array_equal(np.abs(rows[-1]), np.eye(6)[-1])


def test_a_host_executes_what_it_is_given() -> None:
    text = """HloModule m
on_host {
  x = f32[3] parameter(0)
  ROOT d = f32[3] add(x, x)
}
ENTRY e {
  p = f32[3] parameter(0)
  ROOT r = f32[3] custom-call(p), custom_call_target="HostExecute", called_computations={on_host}
}"""
    (doubled,) = run(text, [np.arange(3, dtype=np.float32)])
    np.testing.assert_array_equal(doubled, [0, 2, 4])


@pytest.mark.parametrize("value", [np.pi * 1e7, -1 / 3, 0.0, 1e300, np.inf, np.nan])
def test_f64_in_two_parts(value: float) -> None:
    """The first part is the number in f32, the second what that leaves; a TPU has no greater range."""
    x = np.array([value])
    (leading,) = run(call("X64SplitLow", ["f32[1]"], "f64[1]"), [x])
    (rest,) = run(call("X64SplitHigh", ["f32[1]"], "f64[1]"), [x])
    assert leading.dtype == rest.dtype == np.float32
    (again,) = run(call("X64Combine", ["f64[1]"], "f32[1]", "f32[1]"), [leading, rest])
    if value == 1e300:
        assert np.isinf(again[0])
    else:
        np.testing.assert_allclose(again, x, rtol=1e-14)


def test_floats_of_unequal_width_meet() -> None:
    """Where nothing says `convert`, a result is in its stated type all the same."""
    text = """HloModule m
ENTRY e {
  p = f32[4] parameter(0)
  b = bf16[2,4] broadcast(p), dimensions={1}
  w = f32[8] reshape(b)
  s = bf16[4] add(p, p)
  ROOT t = (bf16[2,4], f32[8], bf16[4]) tuple(b, w, s)
}"""
    values = np.array([1.001, 2.0, 3.007, 4.0], np.float32)
    b, w, s = run(text, [values])
    assert [str(x.dtype) for x in (b, w, s)] == ["bfloat16", "float32", "bfloat16"]
    np.testing.assert_array_equal(w.reshape(2, 4)[0], b[0].astype(np.float32))
    np.testing.assert_array_equal(w[:4], np.array([1.0, 2.0, 3.0, 4.0], np.float32))
    np.testing.assert_array_equal(s.astype(np.float32), np.array([2.0, 4.0, 6.0, 8.0], np.float32))


def test_a_choice_between_floats_of_unequal_width() -> None:
    """Of many elements, which are otherwise chosen by their bits."""
    text = """HloModule m
ENTRY e {
  p = pred[64,64] parameter(0)
  a = bf16[64,64] parameter(1)
  b = f32[64,64] parameter(2)
  ROOT s = bf16[64,64] select(p, a, b)
}"""
    mask, values = random(64, 64) > 0, random(64, 64)
    narrow = values.astype("bfloat16")
    (chosen,) = run(text, [mask, narrow, 3 * values])
    np.testing.assert_array_equal(chosen, np.where(mask, narrow, (3 * values).astype("bfloat16")))


def test_what_is_converted_without_a_word_is_rounded_in_legal_executions_too() -> None:
    text = "ENTRY e { p = f32[2] parameter(0) ROOT c = bf16[2] copy(p) }"
    values = np.array([1.001, np.finfo(np.float32).max], np.float32)
    backend = VariedBackend(Policy(varied=True), Member(1))
    copied = np.asarray(backend.compile(parse(text)).run([values]))
    np.testing.assert_array_equal(copied.astype(np.float32), [1, np.inf])
