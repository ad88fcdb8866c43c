"""LAPACK custom calls: factorisations and solutions of linear systems."""

from __future__ import annotations

from typing import Any

import numpy as np

from hlotool.backends.numpy.lapack import LapackCall, Results, lapack
from hlotool.ir.dtypes import Array


@lapack("potrf", ranks=(2,))
def potrf(call: LapackCall, a: Array) -> Results:
    """Cholesky factor in the triangle `uplo`, the other one as it was; (factor, info)."""
    return tuple(call.function("potrf")(a, lower=call.is_option("uplo", "L"), clean=False))


@lapack("getrf", ranks=(2,))
def getrf(call: LapackCall, a: Array) -> Results:
    """LU decomposition with partial pivoting; (factors, pivots counted from 1, info)."""
    factors, pivots, info = call.function("getrf")(a)
    return factors, pivots + 1, info


@lapack("geqrf", ranks=(2,))
def geqrf(call: LapackCall, a: Array) -> Results:
    """QR decomposition; (R and the Householder vectors, their factors)."""
    return tuple(call.function("geqrf")(a, **call.workspace("geqrf", *a.shape))[:2])


@lapack("geqp3", ranks=(2, 1))
def geqp3(call: LapackCall, a: Array, fixed: Array) -> Results:
    """QR decomposition with column pivoting; (R and Householder vectors, columns from 1, factors).

    Raises:
        Unsupported: columns are fixed to the front, which JAX never asks for.
    """
    if fixed.any():
        raise call.unsupported("geqp3 with columns fixed to the front")
    function = call.function("geqp3")
    return tuple(function(a, lwork=_best_workspace(function(a, lwork=-1)))[:3])


@lapack("orgqr", ranks=(2, 1), letters="sd")
@lapack("ungqr", ranks=(2, 1), letters="cz")
def orgqr(call: LapackCall, a: Array, factors: Array) -> Results:
    """The orthogonal matrix that Householder vectors stand for."""
    function = call.function("ungqr" if call.is_complex else "orgqr")
    return (function(a, factors, lwork=_best_workspace(function(a, factors, lwork=-1)))[0],)


@lapack("ormqr", ranks=(2, 1, 2), letters="sd")
@lapack("unmqr", ranks=(2, 1, 2), letters="cz")
def ormqr(call: LapackCall, a: Array, factors: Array, c: Array) -> Results:
    """The orthogonal matrix of Householder vectors, or its adjoint, times `c`; `left` says on which side."""
    function = call.function("unmqr" if call.is_complex else "ormqr")
    adjoint = "C" if call.is_complex else "T"
    arguments = ("L" if call.option("left") else "R", adjoint if call.option("transpose") else "N")
    best = _best_workspace(function(*arguments, a, factors, c, -1))
    return (function(*arguments, a, factors, c, best)[0],)


@lapack("trsm", ranks=(2, 2, 0))
def trsm(call: LapackCall, a: Array, b: Array, alpha: Any = 1) -> Results:
    """Solution of a triangular system; jaxlib 0.4.38 and 0.5.0 hand over `alpha`, a factor of `b`."""
    from scipy.linalg import blas

    return (
        getattr(blas, call.letter + "trsm")(
            alpha,
            a,
            b,
            side=call.is_option("side", "R"),
            lower=call.is_option("uplo", "L"),
            trans_a={ord("N"): 0, ord("T"): 1, ord("C"): 2}[call.option("trans_x")],
            diag=call.is_option("diag", "U"),
        ),
    )


@lapack("gtsv", ranks=(1, 1, 1, 2))
def gtsv(call: LapackCall, lower: Array, diagonal: Array, upper: Array, b: Array) -> Results:
    """Solution of a tridiagonal system; (factors…, solution, info).

    The first element of `lower` and the last of `upper` are not part of the matrix.
    """
    _, factor, upper_factor, x, info = call.function("gtsv")(lower[1:], diagonal, upper[:-1], b)
    return None, factor, np.append(upper_factor, upper[-1:]), x, info


@lapack("gehrd", ranks=(2,))
def gehrd(call: LapackCall, a: Array) -> Results:
    """Reduction to Hessenberg form; (form and Householder vectors, their factors, info)."""
    low, high = call.option("low") - 1, call.option("high") - 1
    work = call.workspace("gehrd", len(a), low, high)
    return tuple(call.function("gehrd")(a, low, high, **work))


@lapack("sytrd", ranks=(2,), letters="sd")
@lapack("hetrd", ranks=(2,), letters="cz")
def sytrd(call: LapackCall, a: Array) -> Results:
    """Reduction of a Hermitian matrix to tridiagonal form.

    Returns (form and Householder vectors, diagonal, off-diagonal, their factors, info).
    """
    name = "hetrd" if call.is_complex else "sytrd"
    lower = call.is_option("uplo", "L")
    work = call.workspace(name, len(a), lower=lower)
    return tuple(call.function(name)(a, lower=lower, **work))


def _best_workspace(answer: Any) -> int:
    """The size in the work array of a query."""
    return int(np.real(answer[-2][0]))
