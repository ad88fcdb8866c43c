"""LAPACK custom calls: eigenvalues and singular values."""

from __future__ import annotations

import numpy as np

from hlotool.backends.numpy.lapack import LapackCall, Results, lapack
from hlotool.ir.dtypes import Array


@lapack("gesdd", ranks=(2,))
def gesdd(call: LapackCall, a: Array) -> Results:
    """Singular values by divide and conquer; (scratch, values, left vectors, right adjoint vectors, info)."""
    return _singular_values(call, "gesdd", a)


@lapack("gesvd", ranks=(2,))
def gesvd(call: LapackCall, a: Array) -> Results:
    """Singular values by QR iteration; results as for `gesdd`."""
    return _singular_values(call, "gesvd", a)


def _singular_values(call: LapackCall, name: str, a: Array) -> Results:
    """`mode` is N (no vectors), S (as many as values) or A (all)."""
    wanted = not call.is_option("mode", "N")
    full = not call.is_option("mode", "S")
    work = call.workspace(name, *a.shape, compute_uv=wanted, full_matrices=full)
    left, values, right, info = call.function(name)(a, compute_uv=wanted, full_matrices=full, **work)
    return None, values, left if wanted else None, right if wanted else None, info


@lapack("syevd", ranks=(2,), letters="sd")
@lapack("heevd", ranks=(2,), letters="cz")
def syevd(call: LapackCall, a: Array) -> Results:
    """Eigenvalues of a Hermitian matrix, read from the triangle `uplo`; (vectors, values, info)."""
    name = "heevd" if call.is_complex else "syevd"
    options = {"compute_v": call.is_option("mode", "V"), "lower": call.is_option("uplo", "L")}
    work = call.workspace(name, len(a), **options)
    values, vectors, info = call.function(name)(a, **options, **work)
    return vectors if options["compute_v"] else None, values, info


@lapack("geev", ranks=(2,))
def geev(call: LapackCall, a: Array) -> Results:
    """Eigenvalues of any square matrix, with left and right vectors.

    Returns (values, left, right, info), of real matrices (real parts, imaginary parts, left, right, info).
    """
    *values, lefts, rights, info = packed_spectrum(call, a)
    if not call.is_complex:
        lefts, rights = (None if v is None else _complex_vectors(values[1], v) for v in (lefts, rights))
    return *values, lefts, rights, info


def packed_spectrum(call: LapackCall, a: Array) -> Results:
    """What LAPACK's `geev` returns, None in place of vectors that are not wanted."""
    left, right = call.is_option("compute_left", "V"), call.is_option("compute_right", "V")
    work = call.workspace("geev", len(a), compute_vl=left, compute_vr=right)
    *values, lefts, rights, info = call.function("geev")(a, compute_vl=left, compute_vr=right, **work)
    return *values, lefts if left else None, rights if right else None, info


def _complex_vectors(imaginary: Array, packed: Array) -> Array:
    """LAPACK stores the vectors of a conjugate pair of eigenvalues as real part and imaginary part."""
    vectors = packed.astype(np.result_type(packed, np.complex64))
    if len(packed) == len(imaginary):
        for first in np.flatnonzero(imaginary > 0):
            vectors[:, first] = packed[:, first] + 1j * packed[:, first + 1]
            vectors[:, first + 1] = vectors[:, first].conj()
    return vectors


@lapack("gees", ranks=(2,))
def gees(call: LapackCall, a: Array) -> Results:
    """Schur form, eigenvalues unsorted.

    Returns (form, vectors, values, number selected, info), of real matrices the real and imaginary parts of
    the values one after the other.
    """
    wanted = call.is_option("mode", "V")
    function = call.function("gees")
    best = int(np.real(function(_select_none, a, compute_v=wanted, lwork=-1)[-2][0]))
    form, selected, *values, vectors, _work, info = function(_select_none, a, compute_v=wanted, lwork=best)
    return form, vectors if wanted else None, *values, selected, info


def _select_none(*_: float) -> None:
    return None
