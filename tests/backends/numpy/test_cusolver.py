"""Linear algebra on GPUs: factors against what they are factors of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.differential import Array, assert_close, parse, run
from support.library_modules import call_module, operands_of

from hlotool.backends.numpy import NumpyBackend
from hlotool.errors import Unsupported

KINDS = ["f32", "c128"]
TOLERANCE = {"f32": 1e-5, "c128": 1e-13}


def call(target: str, results: list[str], operands: list[str], config: str, values: list[Any]) -> list[Array]:
    more = ", api_version=API_VERSION_TYPED_FFI"
    result = results[0] if len(results) == 1 else f"({', '.join(results)})"
    return run(call_module(target, result, operands, config, more), values)


def near(kind: str) -> Callable[[Array, Array], None]:
    def check(actual: Array, expected: Array) -> None:
        np.testing.assert_allclose(actual, expected, atol=TOLERANCE[kind] * 10, rtol=0)

    return check


def square(kind: str, size: int = 5) -> Array:
    return np.asarray(operands_of([f"{kind}[2,{size},{size}]"])[0])


def hermitian(kind: str) -> Array:
    m = square(kind)
    return np.asarray((m + m.conj().swapaxes(1, 2)) / 2)


def definite(kind: str) -> Array:
    m = square(kind)
    return np.asarray(m @ m.conj().swapaxes(1, 2) + 5 * np.eye(5, dtype=m.dtype))


def adjoint(m: Array) -> Array:
    return m.conj().swapaxes(-1, -2)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("prefix", ["cusolver", "hipsolver"])
@pytest.mark.parametrize("lower", [True, False])
def test_cholesky(kind: str, prefix: str, lower: bool) -> None:
    a = definite(kind)
    matrix = f"{kind}[2,5,5]{{1,2,0}}"
    config = f"{{lower = {str(lower).lower()}}}"
    factor, info = call(f"{prefix}_potrf_ffi", [matrix, "s32[2]"], [matrix], config, [a])
    assert not info.any()
    half = np.tril(factor) if lower else adjoint(np.triu(factor))
    near(kind)(half @ adjoint(half), a)


def test_an_option_that_a_call_leaves_out_is_not_guessed() -> None:
    with pytest.raises(Unsupported, match="no lower in the backend config"):
        call("cusolver_potrf_ffi", ["f32[4,4]", "s32[]"], ["f32[4,4]"], "{}", [np.eye(4, dtype=np.float32)])


def test_failed_cholesky_is_reported() -> None:
    a = np.diag(np.array([1, 2, -1, 3], np.float32))
    _, info = call("cusolver_potrf_ffi", ["f32[4,4]", "s32[]"], ["f32[4,4]"], "{lower = true}", [a])
    assert int(info) == 3


@pytest.mark.parametrize("kind", KINDS)
def test_lu(kind: str) -> None:
    a = square(kind)
    matrix = f"{kind}[2,5,5]"
    factors, pivots, info = call("cusolver_getrf_ffi", [matrix, "s32[2,5]", "s32[2]"], [matrix], "{}", [a])
    (rows,) = call("cu_lu_pivots_to_permutation", ["s32[2,5]"], ["s32[2,5]"], "{}", [pivots - 1])
    product = (np.tril(factors, -1) + np.eye(5)) @ np.triu(factors)
    near(kind)(product, np.take_along_axis(a, rows[..., None], axis=1))
    assert not info.any()


def test_pivots_that_are_no_rows() -> None:
    pivots = np.array([[2, -7, 9]], np.int32)
    (rows,) = call("hip_lu_pivots_to_permutation", ["s32[1,4]"], ["s32[1,3]"], "{}", [pivots])
    assert rows.tolist() == [[2, 1, 0, 3]]


@pytest.mark.parametrize("kind", KINDS)
def test_qr(kind: str) -> None:
    matrix, taus = f"{kind}[2,6,4]", f"{kind}[2,4]"
    (a,) = operands_of([matrix])
    packed, factors = call("cusolver_geqrf_ffi", [matrix, taus], [matrix], "{}", [a])
    (q,) = call("cusolver_orgqr_ffi", [matrix], [matrix, taus], "{}", [packed, factors])
    near(kind)(q @ np.triu(packed[:, :4]), a)
    near(kind)(adjoint(q) @ q, np.broadcast_to(np.eye(4), (2, 4, 4)))
    other = f"{kind}[2,6,3]"
    (c,) = operands_of([other], seed=8)
    config = "{left = true, transpose = true}"
    (product,) = call("cusolver_ormqr_ffi", [other], [matrix, taus, other], config, [packed, factors, c])
    near(kind)(product[:, :4], adjoint(q) @ c)


@pytest.mark.parametrize("kind", KINDS)
def test_pivoted_qr(kind: str) -> None:
    matrix = f"{kind}[2,6,4]"
    (a,) = operands_of([matrix])
    none = np.zeros((2, 4), np.int32)
    packed, columns, factors = call(
        "cuhybrid_geqp3",
        [matrix, "s32[2,4]", f"{kind}[2,4]"],
        [matrix, "s32[2,4]"],
        '{magma = "auto"}',
        [a, none],
    )
    (q,) = call("hipsolver_orgqr_ffi", [matrix], [matrix, f"{kind}[2,4]"], "{}", [packed, factors])
    near(kind)(q @ np.triu(packed[:, :4]), np.take_along_axis(a, columns[:, None] - 1, axis=2))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lower", [True, False])
def test_hermitian_eigenvalues(kind: str, lower: bool) -> None:
    a = hermitian(kind)
    half = np.tril(a) if lower else np.triu(a)
    real = "f32" if kind == "f32" else "f64"
    matrix = f"{kind}[2,5,5]"
    config = f"{{algorithm = 0 : ui8, lower = {str(lower).lower()}}}"
    vectors, values, info = call(
        "cusolver_syevd_ffi", [matrix, f"{real}[2,5]", "s32[2]"], [matrix], config, [half]
    )
    assert (np.diff(values) >= 0).all()
    assert not info.any()
    near(kind)(a @ vectors, vectors * values[:, None])


@pytest.mark.parametrize("kind", KINDS)
def test_tridiagonal_form(kind: str) -> None:
    a = hermitian(kind)
    real = "f32" if kind == "f32" else "f64"
    matrix = f"{kind}[2,5,5]"
    results = [matrix, f"{real}[2,5]", f"{real}[2,4]", f"{kind}[2,4]", "s32[2]"]
    _, diagonal, off, _, info = call("cusolver_sytrd_ffi", results, [matrix], "{lower = true}", [a])
    assert not info.any()
    for m, d, e in zip(a, diagonal, off):
        form = np.diag(d) + np.diag(e, 1) + np.diag(e, -1)
        near(kind)(np.linalg.eigvalsh(form), np.linalg.eigvalsh(m))


@pytest.mark.parametrize("kind", KINDS)
def test_general_eigenvalues(kind: str) -> None:
    a = square(kind)
    complex_kind = "c64" if kind == "f32" else "c128"
    matrix, vectors = f"{kind}[2,5,5]", f"{complex_kind}[2,5,5]"
    values_shape = f"{complex_kind}[2,5]"
    if kind == "f32":
        results = ["f32[2,5]", "f32[2,5]", vectors, vectors, "s32[2]"]
        config = '{left = true, right = true, magma = "auto"}'
        real, imaginary, _, right, info = call("cuhybrid_eig_real", results, [matrix], config, [a])
        values = real + 1j * imaginary
    else:
        results = [values_shape, vectors, vectors, "s32[2]"]
        config = '{left = false, right = true, magma = "auto"}'
        values, _, right, info = call("cuhybrid_eig_comp", results, [matrix], config, [a])
    assert not info.any()
    near(kind)(a @ right, right * values[:, None])
    packed = call(
        "cusolver_geev_ffi",
        [matrix, values_shape, matrix, matrix, "s32[2]"],
        [matrix],
        "{left = false, right = true}",
        [a],
    )
    near(kind)(np.sort_complex(packed[1].ravel()), np.sort_complex(values.ravel()))
    if kind == "c128":
        near(kind)(a @ packed[3], packed[3] * packed[1][:, None])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize(
    ("name", "transposed"),
    [
        ("gesvd", False),
        ("gesvd", True),
        ("gesdd", False),
        ("gesdd", True),
        ("gesvdj", False),
        ("gesvdp", False),
    ],
)
def test_singular_values(kind: str, full: bool, name: str, transposed: bool) -> None:
    by_columns = name in ("gesvdj", "gesvdp")
    real = "f32" if kind == "f32" else "f64"
    matrix = f"{kind}[2,6,4]"
    (a,) = operands_of([matrix])
    columns = 6 if full else 4
    left, right = f"{kind}[2,6,{columns}]", f"{kind}[2,4,4]"
    # As JAX writes it: of these two there is no such attribute.
    exchanged = "" if by_columns else f", transposed = {str(transposed).lower()}"
    config = f"{{compute_uv = true, full_matrices = {str(full).lower()}{exchanged}}}"
    operand = adjoint(a).conj() if transposed else a
    shape = f"{kind}[2,4,6]" if transposed else matrix
    first, second = (right, f"{kind}[2,{columns},6]") if transposed else (left, right)
    outputs = (second, first) if transposed else (first, second)
    results = [shape, f"{real}[2,4]", *outputs, "s32[2]"]
    _, values, u, v, info = call(f"cusolver_{name}_ffi", results, [shape], config, [operand])
    assert not info.any()
    if by_columns:
        v = adjoint(v)
    if transposed:
        u, v = v, u
    near(kind)((u[..., :4] * values[:, None]) @ v[:, :4], operand)


def test_values_without_vectors() -> None:
    (a,) = operands_of(["f64[2,5,3]"])
    config = "{compute_uv = false, full_matrices = false, transposed = false}"
    results = ["f64[2,5,3]", "f64[2,3]", "f64[]", "f64[]", "s32[2]"]
    values = call("cusolver_gesvd_ffi", results, ["f64[2,5,3]"], config, [a])[1]
    np.testing.assert_allclose(values, np.linalg.svd(a, compute_uv=False))


def test_tridiagonal_systems() -> None:
    lower, diagonal, upper = (x + 3 * (i == 1) for i, x in enumerate(operands_of(["f64[2,5]"] * 3)))
    (b,) = operands_of(["f64[2,5,3]"], seed=8)
    shapes = ["f64[2,5]"] * 3 + ["f64[2,5,3]"]
    (x,) = call("cusparse_gtsv2_ffi", ["f64[2,5,3]"], shapes, "{}", [lower, diagonal, upper, b])
    for i in range(2):
        m = np.diag(diagonal[i]) + np.diag(lower[i, 1:], -1) + np.diag(upper[i, :-1], 1)
        np.testing.assert_allclose(m @ x[i], b[i], atol=1e-10)


def test_sparse_systems() -> None:
    m = np.array([[4, 0, 1], [0, 3, 0], [2, 0, 5]], np.float64)
    values, columns = np.array([4, 1, 3, 2, 5], np.float64), np.array([0, 2, 1, 0, 2], np.int32)
    starts, b = np.array([0, 2, 3, 5], np.int32), np.array([1, 2, 3], np.float64)
    (x,) = call(
        "cusolver_csrlsvqr_ffi",
        ["f64[3]"],
        ["f64[5]", "s32[5]", "s32[4]", "f64[3]"],
        "{n = 3 : i64, nnz = 5 : i64, reorder = 1 : i32, tol = 1.000000e-06 : f64}",
        [values, columns, starts, b],
    )
    np.testing.assert_allclose(m @ x, b)


@pytest.mark.parametrize("transpose", [False, True])
def test_symmetric_product(transpose: bool) -> None:
    a, c = operands_of(["f32[4,4]", "f32[4,4]"])
    two, half = np.float32(2), np.float32(0.5)
    shapes = ["f32[4,4]", "f32[4,4]", "f32[]", "f32[]"]
    config = f"{{transpose = {str(transpose).lower()}}}"
    (result,) = call("cusolver_syrk_ffi", ["f32[4,4]"], shapes, config, [a, c, two, half])
    product = 2 * (a.T @ a if transpose else a @ a.T) + c / 2
    assert_close(np.tril(result), np.tril(product), steps=4)
    np.testing.assert_array_equal(np.triu(result, 1), np.triu(c, 1))


def test_updated_cholesky_factor() -> None:
    r = np.linalg.cholesky(definite("f64")[0]).T
    (w,) = operands_of(["f64[5]"])
    w[1] = 0
    updated, _ = call("cu_cholesky_update_ffi", ["f64[5,5]", "f64[5]"], ["f64[5,5]", "f64[5]"], "{}", [r, w])
    np.testing.assert_array_equal(updated, np.triu(updated))
    np.testing.assert_allclose(updated.T @ updated, r.T @ r + np.outer(w, w))


@pytest.mark.parametrize("lower", [True, False])
def test_cholesky_of_xla(lower: bool) -> None:
    a = definite("f64")
    config = f'{{"lower":{str(lower).lower()}}}'
    results = ["f64[2,5,5]", "f64[100]", "s32[2]"]
    factor, _, info = call("__cusolver$cholesky", results, ["f64[2,5,5]"], config, [a])
    half = np.tril(factor) if lower else adjoint(np.triu(factor))
    np.testing.assert_allclose(half @ adjoint(half), a)
    assert not info.any()


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("transpose", ["NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"])
def test_triangular_solve_of_xla(left: bool, transpose: str) -> None:
    a = square("c64") + 4 * np.eye(5, dtype=np.complex64)
    (b,) = operands_of(["c64[2,5,5]"], seed=8)
    flags = f'"left_side":{str(left).lower()},"lower":true,"unit_diagonal":false'
    config = f'{{{flags},"transpose_a":"{transpose}"}}'
    text = call_module(
        "__cublas$triangularSolve", "(c64[2,5,5], s8[16]{0})", ["c64[2,5,5]", "c64[2,5,5]"], config
    )
    plain = f"""HloModule plain
ENTRY e {{
  a = c64[2,5,5] parameter(0)
  b = c64[2,5,5] parameter(1)
  ROOT x = c64[2,5,5] triangular-solve(a, b), left_side={str(left).lower()}, lower=true,
    unit_diagonal=false, transpose_a={transpose}
}}"""
    np.testing.assert_array_equal(run(text, [a, b])[0], run(plain, [a, b])[0])


def test_random_bits() -> None:
    """Threefry of the paper's test vector, and of arrays that are all the same."""
    words = [np.full(3, word, np.uint32) for word in (0x13198A2E, 0x03707344, 0x243F6A88, 0x85A308D3)]
    shapes = ["u32[3]"] * 4
    first, second = call("cu_threefry2x32_ffi", ["u32[3]"] * 2, shapes, "{}", words)
    assert first.tolist() == [0xC4923A9C] * 3
    assert second.tolist() == [0x483DF7A0] * 3


def test_unsuitable_types_are_refused() -> None:
    text = call_module("cusolver_geqrf_ffi", "(f16[4,4], f16[4])", ["f16[4,4]"], "{}")
    with pytest.raises(Unsupported, match="routine on f16"):
        NumpyBackend().compile(parse(text))
