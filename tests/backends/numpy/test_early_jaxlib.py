"""Targets of early versions of jaxlib, against the typed calls of today and NumPy.

Those on CPU were also compared with jaxlib 0.4.13, over what `jax.numpy.linalg` and `jax.numpy.fft` make.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from support.differential import Array, parse, run
from support.library_modules import operands_of

from hlotool.backends.numpy import NumpyBackend
from hlotool.backends.numpy.custom_calls import targets
from hlotool.errors import Unsupported

M = "f32[2,4,4]"
INFO = "s32[2]"


def module(target: str, result: str, operands: list[str], more: str) -> str:
    lines = "\n".join(f"  x{i} = {shape} parameter({i})" for i, shape in enumerate(operands))
    names = ", ".join(f"x{i}" for i in range(len(operands)))
    call = f'{result} custom-call({names}), custom_call_target="{target}"{more}'
    return f"HloModule m\nENTRY e {{\n{lines}\n  ROOT r = {call}\n}}"


def typed(
    target: str, results: list[str], operands: list[str], config: str, values: list[Any]
) -> list[Array]:
    more = f", api_version=API_VERSION_TYPED_FFI, backend_config={{{config}}}"
    return run(module(target, f"({', '.join(results)})", operands, more), values)


def early(target: str, results: list[str], scalars: list[Any], values: list[Any]) -> list[Array]:
    """A call whose first operands are scalars: numbers are s32, letters u8."""
    given = [np.uint8(ord(s)) if isinstance(s, str) else np.int32(s) for s in scalars]
    shapes = ["u8[]" if isinstance(s, str) else "s32[]" for s in scalars]
    shapes += [f"f32[{','.join(map(str, v.shape))}]" for v in values]
    return run(module(target, f"({', '.join(results)})", shapes, ""), [*given, *values])


def matrices(*sizes: int) -> Array:
    return np.asarray(operands_of([f"f32[{','.join(map(str, sizes))}]"])[0])


def definite() -> Array:
    m = matrices(2, 4, 4)
    return np.asarray(m @ m.swapaxes(1, 2) + 4 * np.eye(4, dtype=np.float32), np.float32)


def same(ours: list[Array], expected: list[Array]) -> None:
    for a, b in zip(ours, expected, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(("lower", "uplo"), [(1, 76), (0, 85)])
def test_potrf(lower: int, uplo: int) -> None:
    ours = early("lapack_spotrf", [M, INFO], [lower, 2, 4], [definite()])
    same(ours, typed("lapack_spotrf_ffi", [M, INFO], [M], f"uplo = {uplo} : ui8", [definite()]))


def test_getrf() -> None:
    results = ["f32[2,5,3]", "s32[2,3]", INFO]
    values = [matrices(2, 5, 3)]
    expected = typed("lapack_sgetrf_ffi", results, ["f32[2,5,3]"], "", values)
    same(early("lapack_sgetrf", results, [2, 5, 3], values), expected)
    text = module("cusolver_getrf", f"({', '.join(results)}, f32[9])", ["f32[2,5,3]"], "")
    same(run(text, values)[:3], expected)


def test_qr() -> None:
    values = [matrices(2, 5, 3)]
    expected = typed("lapack_sgeqrf_ffi", ["f32[2,5,3]", "f32[2,3]"], ["f32[2,5,3]"], "", values)
    results = ["f32[2,5,3]", "f32[2,3]", INFO, "f32[9]"]
    *ours, info, work = early("lapack_sgeqrf", results, [2, 5, 3, 9], values)
    same(ours, expected)
    assert not info.any()
    assert work.shape == (9,)
    batched = module("cublas_geqrf_batched", "(f32[2,5,3], f32[2,3], s8[1], s8[1])", ["f32[2,5,3]"], "")
    same(run(batched, values)[:2], expected)
    (q,) = typed("lapack_sorgqr_ffi", ["f32[2,5,3]"], ["f32[2,5,3]", "f32[2,3]"], "", ours)
    found = early("lapack_sorgqr", ["f32[2,5,3]", INFO, "f32[9]"], [2, 5, 3, 3, 9], ours)
    same(found[:1], [q])
    text = module("cusolver_orgqr", f"(f32[2,5,3], {INFO}, f32[9])", ["f32[2,5,3]", "f32[2,3]"], "")
    same(run(text, ours)[:1], [q])


@pytest.mark.parametrize(("full", "uv", "mode"), [(1, 1, 65), (0, 1, 83), (0, 0, 78)])
def test_singular_values(full: int, uv: int, mode: int) -> None:
    values = [matrices(2, 5, 3)]
    size = 5 if full else 3
    results = ["f32[2,5,3]", "f32[2,3]", f"f32[2,5,{size}]", "f32[2,3,3]", INFO]
    expected = typed("lapack_sgesdd_ffi", results, ["f32[2,5,3]"], f"mode = {mode} : ui8", values)
    ours = early("lapack_sgesdd", [*results, "s32[9]", "f32[9]"], [full, uv, 2, 5, 3, 9], values)
    same(ours[:5], expected)
    packed = escaped(struct.pack("<5ibb", 0, 2, 5, 3, 9, mode, mode))
    text = module("cusolver_gesvd", f"({', '.join(results)}, f32[9])", ["f32[2,5,3]"], packed)
    same(run(text, values)[:5], expected)


def test_singular_values_of_wide_matrices_change_places() -> None:
    results = "(f32[2,3,5], f32[2,3], f32[2,5,5], f32[2,3,3], s32[2], f32[9])"
    packed = escaped(struct.pack("<5ibb", 0, 2, 5, 3, 9, 65, 65))
    a = matrices(2, 3, 5)
    _, s, vt, u, *_ = run(module("hipsolver_gesvd", results, ["f32[2,3,5]"], packed), [a])
    np.testing.assert_allclose(u * s[:, None] @ vt[:, :3], a, atol=1e-5)


def test_jacobi() -> None:
    results = "(f32[2,5,3], f32[2,3], f32[2,5,5], f32[2,3,3], s32[2], f32[9])"
    packed = escaped(struct.pack("<7i", 0, 2, 5, 3, 9, 1, 0))
    a = matrices(2, 5, 3)
    _, s, u, v, *_ = run(module("cusolver_gesvdj", results, ["f32[2,5,3]"], packed), [a])
    np.testing.assert_allclose(u[:, :, :3] * s[:, None] @ v.swapaxes(1, 2), a, atol=1e-5)


@pytest.mark.parametrize("lower", [0, 1])
def test_eigenvalues_of_symmetric_matrices(lower: int) -> None:
    results = [M, "f32[2,4]", INFO]
    uplo = ord("L" if lower else "U")
    expected = typed("lapack_ssyevd_ffi", results, [M], f"mode = 86 : ui8, uplo = {uplo} : ui8", [definite()])
    same(early("lapack_ssyevd", [*results, "f32[9]", "s32[9]"], [lower, 2, 4], [definite()])[:3], expected)
    packed = escaped(struct.pack("<5i", 0, 1 - lower, 2, 4, 9))
    for target in ("cusolver_syevd", "hipsolver_syevj"):
        same(run(module(target, f"({', '.join(results)}, f32[9])", [M], packed), [definite()])[:3], expected)


@pytest.mark.parametrize("lower", [0, 1])
def test_tridiagonal_form(lower: int) -> None:
    results = [M, "f32[2,4]", "f32[2,3]", "f32[2,3]", INFO]
    uplo = ord("L" if lower else "U")
    expected = typed("lapack_ssytrd_ffi", results, [M], f"uplo = {uplo} : ui8", [definite()])
    same(early("lapack_ssytrd", [*results, "f32[9]"], [4, lower, 4, 2, 9], [definite()])[:5], expected)
    packed = escaped(struct.pack("<6i", 0, 1 - lower, 2, 4, 4, 9))
    same(
        run(module("cusolver_sytrd", f"({', '.join(results)}, f32[9])", [M], packed), [definite()])[:5],
        expected,
    )


def test_hessenberg_form() -> None:
    results, values = [M, "f32[2,3]", INFO], [matrices(2, 4, 4)]
    expected = typed("lapack_sgehrd_ffi", results, [M], "low = 1 : i32, high = 4 : i32", values)
    same(early("lapack_sgehrd", [*results, "f32[9]"], [4, 1, 4, 4, 2, 9], values)[:3], expected)


def test_eigenvalues_of_any_matrix() -> None:
    results, values = ["f32[2,4]", "f32[2,4]", "c64[2,4,4]", "c64[2,4,4]", INFO], [matrices(2, 4, 4)]
    config = "compute_left = 86 : ui8, compute_right = 78 : ui8"
    expected = typed("lapack_sgeev_ffi", results, [M], config, values)
    work = ["f32[4,4]", "f32[4,4]", "f32[4,4]"]
    same(early("lapack_sgeev", [*work, *results], [2, 4, "V", "N"], values)[3:], expected)


def test_schur_form() -> None:
    values = [matrices(2, 4, 4)]
    numbers = ["f32[2,4]", "f32[2,4]"]
    config = "mode = 86 : ui8, sort = 78 : ui8"
    expected = typed("lapack_sgees_ffi", [M, M, *numbers, INFO, INFO], [M], config, values)
    form, real, imaginary, vectors, *rest = early(
        "lapack_sgees", [M, *numbers, M, INFO, INFO], [2, 4, "V", "N"], values
    )
    same([form, vectors, real, imaginary, *rest], expected)
    with pytest.raises(Unsupported, match="sorted"):
        early("lapack_sgees", [M, *numbers, M, INFO, INFO], [2, 4, "V", "S"], values)


def test_trsm() -> None:
    a, b = definite(), matrices(2, 4, 3)
    (x,) = early("blas_strsm", ["f32[2,4,3]"], [1, 1, 1, 0, 4, 3, 2], [np.float32(2), a, b])
    np.testing.assert_allclose(np.tril(a).swapaxes(1, 2) @ x, 2 * b, atol=1e-5)


def test_foreign_descriptors_are_refused() -> None:
    text = module("cusolver_syevd", f"({M}, f32[2,4], {INFO}, f32[9])", [M], ', backend_config="abc"')
    with pytest.raises(Unsupported, match="a descriptor that jaxlib does not write"):
        NumpyBackend().compile(parse(text))


def escaped(content: bytes) -> str:
    return ', backend_config="' + "".join(f"\\{byte:03o}" for byte in content) + '"'


X = np.asarray(operands_of(["c64[2,4,6]"])[0])
#: Descriptors that jaxlib 0.4.13 wrote: transforms of the last axis, or of the last two.
FORWARD = "1400000000000e0010000800000000000c0007000e0000000000000103000000040000000100000002000000"
INVERSE = "100000000c000c0004000000000008000c0000000300000004000000020000000100000002000000"
FROM_REAL = "1400000000000e0010000800000006000c0007000e000000000002010300000004000000020000000100000002000000"


@pytest.mark.parametrize(
    ("descriptor", "factor", "x", "expected"),
    [
        (FORWARD, 1, X, np.fft.fft(X)),
        (INVERSE, 1 / 24, X, np.fft.ifft2(X)),
        (FROM_REAL, 1, X.real, np.fft.rfft2(X.real)),
    ],
)
def test_dynamic_ducc(descriptor: str, factor: float, x: Array, expected: Array) -> None:
    content = np.frombuffer(bytes.fromhex(descriptor), np.uint8)
    sizes = np.zeros(3, np.int32)
    kind = "f32" if x.dtype == np.float32 else "c64"
    result = f"c64[{','.join(map(str, expected.shape))}]"
    operands = [f"u8[{content.size}]", f"{kind}[2,4,6]", "s32[3]", "s32[3]", "s32[3]", "f64[1]", "s32[3]"]
    values = [content, np.ascontiguousarray(x), sizes, sizes, sizes, np.float64([factor]), sizes]
    (ours,) = run(module("dynamic_ducc_fft", result, operands, ""), values)
    np.testing.assert_allclose(ours, expected, atol=1e-5)


def descriptor(kind: int, axes: list[int], forward: int, scale: float) -> Array:
    """A DuccFftDescriptor: a table of eight fields, shape and strides left out, then the list of axes."""
    fields = struct.pack("<2H8H", 20, 24, 0, 4, 0, 0, 0, 8, 5, 16)
    table = struct.pack("<iBBxxI4xd", 20, kind, forward, 16, scale)
    content = struct.pack("<I", 24) + fields + table + struct.pack(f"<{1 + len(axes)}I", len(axes), *axes)
    return np.frombuffer(content, np.uint8)


def test_ducc() -> None:
    spectrum = np.fft.rfft(X.real).astype(np.complex64)
    content = descriptor(1, [2], 0, 1 / 6)
    text = module("ducc_fft", "f32[2,4,6]", [f"u8[{content.size}]", "c64[2,4,4]"], "")
    np.testing.assert_allclose(run(text, [content, spectrum])[0], X.real, atol=1e-6)


def test_each_target_says_where_it_is_described() -> None:
    sources = {target.name: target.source for target in targets()}
    assert sources["lapack_zgees"] == "jaxlib/lapack.py"
    assert sources["hipsolver_gesvd"] == "jaxlib/gpu/solver_kernels.h"


def quoted(descriptor: bytes) -> str:
    return "".join(f"\\{byte:03o}" for byte in descriptor)


@pytest.mark.parametrize("lower", [True, False])
def test_cholesky_on_gpus_of_2022(lower: bool) -> None:
    """Results are the factor, what went wrong, and memory to work in."""
    value = definite()
    config = quoted(struct.pack("<2i2qq", 0, 0 if lower else 1, 2, 4, 9))
    text = module("cusolver_potrf", f"({M}, {INFO}, s8[9])", [M], f', backend_config="{config}"')
    factor, info, _ = run(text, [value])
    keep = np.tril if lower else np.triu
    factor = keep(factor)
    product = factor @ factor.swapaxes(1, 2) if lower else factor.swapaxes(1, 2) @ factor
    np.testing.assert_allclose(product, value, rtol=1e-4, atol=1e-4)
    assert not info.any()


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("triangle", [0, 1])
@pytest.mark.parametrize("transpose", [0, 1])
def test_triangular_systems_on_gpus_of_2022(side: int, triangle: int, transpose: int) -> None:
    a, b = definite(), matrices(2, 4, 4)
    config = quoted(struct.pack("<8i", 0, 2, 4, 4, side, triangle, transpose, 0))
    text = module("cublas_trsm_batched", f"({M}, s8[16], s8[16])", [M, M], f', backend_config="{config}"')
    x = run(text, [a, b])[0]
    system = np.tril(a) if triangle == 0 else np.triu(a)
    system = system.swapaxes(1, 2) if transpose else system
    np.testing.assert_allclose(system @ x if side == 0 else x @ system, b, rtol=1e-3, atol=1e-3)


def test_names_of_2022() -> None:
    """What was called so then does what it does under the names of today."""
    assert {"cuda_threefry2x32", "cuda_lu_pivots_to_permutation"} <= {target.name for target in targets()}
