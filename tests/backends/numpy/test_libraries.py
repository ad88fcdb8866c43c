"""fft, cholesky, triangular-solve and batch normalisation."""

from __future__ import annotations

import numpy as np
import pytest
from support.differential import Array, check, run, slow

from hlotool.errors import Unsupported
from hlotool.lab.conformance.generators.cases import random_array

KINDS = ("f32", "c64", *slow("f64", "c128"))


def fft_text(kind: str, length: tuple[int, ...], operand: str, result: str) -> str:
    return f"""HloModule transform
ENTRY e {{
  x = {operand} parameter(0)
  ROOT t = {result} fft(x), fft_type={kind}, fft_length={{{",".join(map(str, length))}}}
}}"""


@pytest.mark.xla
@pytest.mark.parametrize("kind", ["FFT", "IFFT"])
@pytest.mark.parametrize("length", [(12,), (5, 7, 12), *slow((1,), (7, 12))])
@pytest.mark.parametrize("type_name", ["c64", *slow("c128")])
def test_complex_transforms(kind: str, length: tuple[int, ...], type_name: str) -> None:
    sizes = (2, 5, 7, 12)[: 4 - len(length)] + length
    shape = f"{type_name}[{','.join(map(str, sizes))}]"
    x = random_array(np.random.default_rng(1), type_name, sizes)
    # log2 of the number of points butterflies, each of which rounds a few times.
    check(fft_text(kind, length, shape, shape), [x], steps=4 * np.log2(np.prod(length) + 1))


@pytest.mark.xla
@pytest.mark.parametrize("length", [(12,), (11,), (7, 12), (5, 7, 11), (1,)])
def test_real_transforms(length: tuple[int, ...]) -> None:
    halved = (*length[:-1], length[-1] // 2 + 1)
    sizes, half_sizes = ",".join(map(str, (3, *length))), ",".join(map(str, (3, *halved)))
    rng = np.random.default_rng(2)
    steps = 4 * np.log2(np.prod(length) + 1)
    real, half = f"f32[{sizes}]", f"c64[{half_sizes}]"
    check(fft_text("RFFT", length, real, half), [random_array(rng, "f32", (3, *length))], steps=steps)
    # No symmetry here: what a real signal cannot have is ignored.
    check(fft_text("IRFFT", length, half, real), [random_array(rng, "c64", (3, *halved))], steps=steps)


def test_empty_transform() -> None:
    (result,) = run(fft_text("FFT", (0,), "c64[3,0]", "c64[3,0]"), [np.zeros((3, 0), np.complex64)])
    assert result.shape == (3, 0)


@pytest.mark.parametrize(
    ("kind", "length", "operand", "result"),
    [("FFT", (3,), "c64[4]", "c64[4]"), ("IRFFT", (8,), "c64[4]", "f32[8]")],
)
def test_lengths_that_do_not_fit_are_refused(
    kind: str, length: tuple[int, ...], operand: str, result: str
) -> None:
    from hlotool.backends.numpy import NumpyBackend
    from hlotool.ir.module import Computation, Instruction, Module
    from hlotool.ir.types import ELEMENT_TYPES, ArrayShape

    def shape(text: str) -> ArrayShape:
        name, size = text.rstrip("]").split("[")
        return ArrayShape(ELEMENT_TYPES[name], (int(size),))

    x = Instruction("x", "parameter", shape(operand), parameter_number=0)
    root = Instruction("t", "fft", shape(result), (x,), {"fft_type": kind, "fft_length": length})
    entry = Computation("e", [x, root], root)
    with pytest.raises(Unsupported, match="of length"):
        NumpyBackend().compile(Module("m", [entry], entry))


def cholesky_text(kind: str, sizes: str, lower: bool) -> str:
    return f"""HloModule factor
ENTRY e {{
  x = {kind}[{sizes}] parameter(0)
  ROOT c = {kind}[{sizes}] cholesky(x), lower={str(lower).lower()}
}}"""


def definite(kind: str, count: int, size: int) -> Array:
    m = random_array(np.random.default_rng(3), kind, (count, size, size))
    product = m @ m.conj().swapaxes(-1, -2) + size * np.eye(size)
    return product.astype(m.dtype)


@pytest.mark.xla
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("size", [5, *slow(1, 40)])
def test_cholesky(kind: str, lower: bool, size: int) -> None:
    x = definite(kind, 3, size)
    unread = np.triu_indices(size, 1) if lower else np.tril_indices(size, -1)
    x[:, unread[0], unread[1]] = np.nan
    # Backward stable: errors of some roundings per step.
    check(cholesky_text(kind, f"3,{size},{size}", lower), [x], steps=4 * size)


@pytest.mark.xla
@pytest.mark.parametrize("bad", [-5.0, np.nan])
def test_cholesky_of_other_matrices_is_nan(bad: float) -> None:
    x = definite("f32", 3, 4)
    x[1, 2, 2] = bad
    (result,) = check(cholesky_text("f32", "3,4,4", True), [x], steps=16)
    assert np.isnan(result[1]).all()
    assert np.isfinite(result[[0, 2]]).all()


def test_cholesky_ignores_imaginary_diagonal() -> None:
    x = definite("c128", 1, 4)[0]
    (clean,) = run(cholesky_text("c128", "4,4", True), [x])
    x[np.diag_indices(4)] += 1j
    (result,) = run(cholesky_text("c128", "4,4", True), [x])
    np.testing.assert_array_equal(result, clean)


def solve_text(kind: str, n: int, m: int, left: bool, lower: bool, transpose: str, unit: bool) -> str:
    sizes = f"2,{n},{m}" if left else f"2,{m},{n}"
    flags = f"left_side={left}, lower={lower}, unit_diagonal={unit}".lower()
    return f"""HloModule solve
ENTRY e {{
  a = {kind}[2,{n},{n}] parameter(0)
  b = {kind}[{sizes}] parameter(1)
  ROOT x = {kind}[{sizes}] triangular-solve(a, b), {flags}, transpose_a={transpose}
}}"""


@pytest.mark.xla
@pytest.mark.parametrize("kind", ["c64", *slow("f32")])
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("transpose", ["NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"])
@pytest.mark.parametrize("unit", [False, *slow(True)])
def test_triangular_solve(kind: str, left: bool, lower: bool, transpose: str, unit: bool) -> None:
    n, m = 5, 3
    rng = np.random.default_rng(4)
    a = random_array(rng, kind, (2, n, n)) + (3 * np.eye(n)).astype(np.float32)
    unread = np.triu_indices(n, 1) if lower else np.tril_indices(n, -1)
    a[:, unread[0], unread[1]] = np.nan
    if unit:
        a[:, range(n), range(n)] = np.nan
    b = random_array(rng, kind, (2, n, m) if left else (2, m, n))
    check(solve_text(kind, n, m, left, lower, transpose, unit), [a, b], steps=100)


@pytest.mark.parametrize("n", [31, 32, 33, 100])
@pytest.mark.parametrize("lower", [True, False])
def test_large_triangular_systems(n: int, lower: bool) -> None:
    rng = np.random.default_rng(5)
    a = random_array(rng, "f64", (2, n, n)) / n + np.eye(n)
    b = random_array(rng, "f64", (2, n, 4))
    (x,) = run(solve_text("f64", n, 4, True, lower, "NO_TRANSPOSE", False), [a, b])
    triangle = np.tril(a) if lower else np.triu(a)
    np.testing.assert_allclose(triangle @ x, b, atol=1e-12)


def test_singular_system_is_not_finite() -> None:
    a = np.array([[[2, 0], [1, 0]]] * 2, np.float32)
    text = solve_text("f32", 2, 1, True, True, "NO_TRANSPOSE", False)
    (x,) = run(text, [a, np.ones((2, 2, 1), np.float32)])
    np.testing.assert_array_equal(x[0].ravel(), [0.5, np.inf])


TRAINING = """HloModule training
ENTRY e {{
  x = {kind}[4,5,3] parameter(0)
  scale = {kind}[3] parameter(1)
  offset = {kind}[3] parameter(2)
  ROOT n = ({kind}[4,5,3], {kind}[3], {kind}[3]) batch-norm-training(x, scale, offset), epsilon=0.001,
    feature_index=2
}}"""

INFERENCE = """HloModule inference
ENTRY e {{
  x = {kind}[4,3,5] parameter(0)
  scale = {kind}[3] parameter(1)
  offset = {kind}[3] parameter(2)
  mean = {kind}[3] parameter(3)
  variance = {kind}[3] parameter(4)
  ROOT n = {kind}[4,3,5] batch-norm-inference(x, scale, offset, mean, variance), epsilon=0.001,
    feature_index=1
}}"""

GRADIENT = """HloModule gradient
ENTRY e {{
  x = {kind}[4,3,5] parameter(0)
  scale = {kind}[3] parameter(1)
  mean = {kind}[3] parameter(2)
  variance = {kind}[3] parameter(3)
  grad = {kind}[4,3,5] parameter(4)
  ROOT n = ({kind}[4,3,5], {kind}[3], {kind}[3]) batch-norm-grad(x, scale, mean, variance, grad),
    epsilon=0.001, feature_index=1
}}"""


@pytest.mark.xla
@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_batch_norm(kind: str) -> None:
    rng = np.random.default_rng(6)
    scale, offset, mean = (random_array(rng, kind, (3,)) for _ in range(3))
    variance = np.abs(random_array(rng, kind, (3,))) + np.array(0.5, scale.dtype)
    x, grad = (random_array(rng, kind, (4, 3, 5)) for _ in range(2))
    # Sums over 20 elements, then some operations; XLA subtracts squares for the variance.
    check(TRAINING.format(kind=kind), [random_array(rng, kind, (4, 5, 3)), scale, offset], steps=80)
    check(INFERENCE.format(kind=kind), [x, scale, offset, mean, variance], steps=10)
    check(GRADIENT.format(kind=kind), [x, scale, mean, variance, grad], steps=80)


def test_batch_norm_against_its_definition() -> None:
    # XLA: operation_semantics.md#batchnormgrad; the gradient by central differences.
    rng = np.random.default_rng(7)
    x, grad = rng.standard_normal((2, 4, 3, 5))
    scale = rng.standard_normal(3)
    mean, variance = x.mean(axis=(0, 2)), x.var(axis=(0, 2))

    epsilon = float(np.float32(0.001))

    def loss(value: Array) -> float:
        centred = value - value.mean(axis=(0, 2))[:, None]
        normed = centred / np.sqrt(value.var(axis=(0, 2)) + epsilon)[:, None]
        return float((grad * normed * scale[:, None]).sum())

    grad_x, grad_scale, grad_offset = run(GRADIENT.format(kind="f64"), [x, scale, mean, variance, grad])
    step = np.zeros_like(x)
    step[1, 2, 3] = 1e-5
    np.testing.assert_allclose(grad_x[1, 2, 3], (loss(x + step) - loss(x - step)) / 2e-5, rtol=1e-6)
    normed = (x - mean[:, None]) / np.sqrt(variance + epsilon)[:, None]
    np.testing.assert_allclose(grad_scale, (grad * normed).sum(axis=(0, 2)))
    np.testing.assert_allclose(grad_offset, grad.sum(axis=(0, 2)))
