"""JAX: linear algebra, which on CPU becomes LAPACK custom calls."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax_programs import array
from programs import Call, program


def _positive(n: int, dtype: str = "float32") -> np.ndarray:
    """A symmetric positive definite matrix."""
    a = array(n, n).astype(dtype)
    return (a @ a.T + n * np.eye(n)).astype(dtype)


def _complex(*shape: int) -> np.ndarray:
    return (array(*shape) + 1j * array(*shape, seed=1)).astype(np.complex64)


@program("cholesky", "triangular-solve", "lapack_spotrf_ffi", "lapack_strsm_ffi")
def cholesky_solve() -> Iterator[Call]:
    """A batch of Cholesky factors, a solve with them, triangular solves with each flag, and a gradient."""

    def cholesky_solve(a, b):
        factor = jnp.linalg.cholesky(a)
        solved = jax.scipy.linalg.cho_solve((factor[0], True), b)
        right = lax.linalg.triangular_solve(
            factor[0], b.T, left_side=False, lower=True, transpose_a=True, unit_diagonal=True
        )
        gradient = jax.grad(lambda a: jnp.sum(jnp.linalg.cholesky(a) ** 3))(a[0])
        return factor, solved, right, gradient

    yield cholesky_solve, np.stack([_positive(4), _positive(4) * 2]), array(4, 3, seed=2)


@program("lapack_sgetrf_ffi", "lapack_sgeqrf_ffi", "lapack_sorgqr_ffi", "while")
def lu_qr_solve() -> Iterator[Call]:
    """LU with pivots, QR, a general solve, inverse and determinant."""

    def lu_qr_solve(a, b):
        factors = jax.scipy.linalg.lu(a)
        return factors, jnp.linalg.qr(a), jnp.linalg.solve(a, b), jnp.linalg.slogdet(a)

    yield lu_qr_solve, array(4, 4), array(4, 2, seed=1)


@program("lapack_dsyevd_ffi", "lapack_dgesdd_ffi", "f64", x64=True)
def decompositions_f64() -> Iterator[Call]:
    """Symmetric eigenvalues, singular values and least squares in f64."""

    def decompositions_f64(a, b):
        return jnp.linalg.eigh(a @ a.T), jnp.linalg.svd(a, full_matrices=False), jnp.linalg.lstsq(a, b)[0]

    yield decompositions_f64, array(5, 3, dtype="float64"), array(5, dtype="float64", seed=1)


@program("lapack_cheevd_ffi", "lapack_cgetrf_ffi", "lapack_sgeev_ffi", "c64")
def decompositions_complex() -> Iterator[Call]:
    """Hermitian eigenvalues, Cholesky and LU of complex matrices; general eigenvalues of a real one."""

    def decompositions_complex(z, a):
        hermitian = z @ z.conj().T + 3 * jnp.eye(3, dtype=z.dtype)
        return (
            jnp.linalg.eigh(hermitian),
            jnp.linalg.cholesky(hermitian),
            lax.linalg.lu(z)[0],
            jnp.linalg.eigvals(a),
            lax.linalg.triangular_solve(hermitian, z, left_side=True, lower=False, conjugate_a=True),
        )

    yield decompositions_complex, _complex(3, 3), array(3, 3, seed=4)
