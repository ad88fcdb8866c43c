"""Linear algebra on GPUs: the calls that jaxlib makes into cuSOLVER, hipSOLVER and MAGMA, and XLA's own.

Computed by LAPACK, whose routines and conventions these libraries follow. Where a result is not unique (signs
of vectors, order within eigenspaces) the libraries may choose otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from hlotool.backends.numpy.backend_configs import Config, assembler, read_config
from hlotool.backends.numpy.custom_calls import custom_call
from hlotool.backends.numpy.kernels import lapack_calls
from hlotool.backends.numpy.kernels.dot import solve_triangular
from hlotool.backends.numpy.kernels.lapack_calls import (
    LapackCall,
    Results,
    Routine,
    batched,
    lapack_call,
)
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.precision import finish, native
from hlotool.backends.numpy.registry import Kernel
from hlotool.ir.arrays import Array
from hlotool.ir.module import Instruction

#: Prefixes of jaxlib's targets: CUDA, ROCm, oneAPI.
_PLATFORMS = ("cu", "hip", "oneapi")

_Options = Callable[[Config], Mapping[str, int]]


def _no_options(config: Config) -> Mapping[str, int]:
    return {}


def _triangle(config: Config) -> Mapping[str, int]:
    """LAPACK's `uplo`."""
    return {"uplo": ord("L" if config.flag("lower") else "U")}


def _solver(name: str, ranks: Sequence[int], options: _Options = _no_options) -> Callable[[Routine], Routine]:
    """Register a routine as jaxlib's targets of that name.

    Args:
        name: what follows the platform.
        ranks: of each operand, without batch dimensions.
        options: LAPACK's options from the attributes of the call.
    """

    def register(routine: Routine) -> Routine:
        def lower(instruction: Instruction, lowering: Lowering) -> Kernel:
            call = lapack_call(instruction, lowering, options(read_config(instruction, lowering)))
            return batched(routine, call, ranks, instruction, lowering)

        lower.__doc__ = f"{routine.__doc__}\n\nSource: jaxlib/gpu/solver_kernels_ffi.cc, hybrid_kernels.cc."
        custom_call(*(f"{platform}{name}" for platform in _PLATFORMS))(lower)
        return routine

    return register


_solver("solver_getrf_ffi", (2,))(lapack_calls.getrf)
_solver("solver_geqrf_ffi", (2,))(lapack_calls.geqrf)
_solver("solver_orgqr_ffi", (2, 1))(lapack_calls.orgqr)
_solver("solver_potrf_ffi", (2,), _triangle)(lapack_calls.potrf)
_solver("solver_sytrd_ffi", (2,), _triangle)(lapack_calls.sytrd)
_solver("solver_syevd_ffi", (2,), lambda config: {**_triangle(config), "mode": ord("V")})(lapack_calls.syevd)
_solver("hybrid_geqp3", (2, 1))(lapack_calls.geqp3)
_solver(
    "solver_ormqr_ffi",
    (2, 1, 2),
    lambda config: {name: config.flag(name) for name in ("left", "transpose")},
)(lapack_calls.ormqr)


def _vectors(config: Config) -> Mapping[str, int]:
    """Which eigenvectors of a general matrix are wanted."""
    return {
        "compute_left": ord("V" if config.flag("left") else "N"),
        "compute_right": ord("V" if config.flag("right") else "N"),
    }


_solver("hybrid_eig_real", (2,), _vectors)(lapack_calls.geev)
_solver("hybrid_eig_comp", (2,), _vectors)(lapack_calls.geev)


@_solver("solver_geev_ffi", (2,), _vectors)
def general_eigenvalues(call: LapackCall, a: Array) -> Results:
    """Eigenvalues of any square matrix; (scratch, values, left, right vectors as LAPACK packs them, info)."""
    *values, lefts, rights, info = lapack_calls.packed_spectrum(call, a)
    whole = values[0] if call.is_complex else values[0] + 1j * values[1]
    return None, whole, lefts, rights, info


def _singular(config: Config) -> Mapping[str, int]:
    """LAPACK's `mode`: no vectors, as many as values, or all."""
    wanted = "A" if config.flag("full_matrices") else "S"
    return {"mode": ord(wanted if config.flag("compute_uv") else "N")}


def _singular_of_either(config: Config) -> Mapping[str, int]:
    """The same, and whether the library is given the transpose, as it takes no wide matrices."""
    return {**_singular(config), "transposed": config.flag("transposed")}


@_solver("solver_gesvd_ffi", (2,), _singular_of_either)
@_solver("solver_gesdd_ffi", (2,), _singular_of_either)
def singular_values(call: LapackCall, a: Array) -> Results:
    """Singular values; (scratch, values, left vectors, right adjoint vectors, info).

    `transposed` exchanges both kinds of vectors: the library then sees the transpose of the matrix.
    """
    scratch, values, left, right, info = lapack_calls.gesdd(call, a)
    if call.option("transposed"):
        left, right = right, left
    return scratch, values, left, right, info


@_solver("solver_gesvdj_ffi", (2,), _singular)
@_solver("solver_gesvdp_ffi", (2,), _singular)
def singular_values_by_columns(call: LapackCall, a: Array) -> Results:
    """Singular values by Jacobi or polar decomposition; (scratch, values, left, right vectors, info)."""
    scratch, values, left, right, info = lapack_calls.gesdd(call, a)
    return scratch, values, left, None if right is None else right.conj().T, info


@custom_call("cusparse_gtsv2_ffi", "hipsparse_gtsv2_ffi")
def tridiagonal_solve(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Solution of tridiagonal systems: operands are the three diagonals and the right-hand sides.

    Source: jaxlib/gpu/sparse_kernels.cc.
    """

    def routine(call: LapackCall, *operands: Array) -> Results:
        return (lapack_calls.gtsv(call, *operands)[3],)

    call = lapack_call(instruction, lowering, {})
    return batched(routine, call, (1, 1, 1, 2), instruction, lowering)


@custom_call("cusolver_csrlsvqr_ffi")
def sparse_solve(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Solution of a sparse system: the values of its matrix, their columns, starts of rows; right-hand side.

    Source: jaxlib/gpu/solver_kernels_ffi.cc (CsrlsvqrFfi).
    """
    kind = instruction.element_type

    def kernel(values: Array, columns: Array, starts: Array, b: Array) -> Array:
        from scipy.sparse import csr_matrix
        from scipy.sparse.linalg import spsolve

        matrix = csr_matrix((values, columns, starts), shape=(len(b), len(b)))
        return finish(np.asarray(spsolve(matrix.tocsc(), b)), kind)

    return kernel


@custom_call("cusolver_syrk_ffi", "hipsolver_syrk_ffi")
def symmetric_product(instruction: Instruction, lowering: Lowering) -> Kernel:
    """alpha · A Aᵀ + beta · C in the lower triangle, C in the rest; with `transpose`, Aᵀ A.

    Source: jaxlib/gpu/solver_kernels_ffi.cc.
    """
    kind = instruction.operands[1].element_type
    transpose = read_config(instruction, lowering).flag("transpose")

    def kernel(a: Array, c: Array, alpha: Array, beta: Array) -> Array:
        factor = a.swapaxes(-1, -2) if transpose else a
        product = np.matmul(factor, factor.swapaxes(-1, -2))
        lower = np.tri(c.shape[-1], dtype=np.bool_)
        return finish(np.where(lower, alpha * product + beta * c, c), kind)

    return kernel


@custom_call("cu_cholesky_update_ffi")
def cholesky_update(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The upper Cholesky factor of Rᵀ R + w wᵀ, by one rotation per row; then what is left of w.

    Source: jaxlib/gpu/linalg_kernels.cu.cc.
    """

    def kernel(factor: Array, vector: Array) -> tuple[Array, Array]:
        r, w = factor.copy(), vector.copy()
        for row in range(len(w)):
            length = np.hypot(r[row, row], w[row])
            cosine, sine = (r[row, row] / length, w[row] / length) if w[row] else (w.dtype.type(1), w[row])
            upper, rest = r[row, row:].copy(), w[row:].copy()
            r[row, row:] = cosine * upper + sine * rest
            w[row:] = cosine * rest - sine * upper
        return r, w

    return kernel


@custom_call("__cusolver$cholesky", widens=True)
def cholesky(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Cholesky factor in the triangle that `lower` names, the other one as it was; workspace; info.

    XLA: service/gpu/transforms/gpusolver_rewriter.cc.
    """
    options = _triangle(read_config(instruction, lowering))

    def routine(call: LapackCall, a: Array) -> Results:
        factor, info = lapack_calls.potrf(call, a)
        return factor, None, info

    return batched(routine, lapack_call(instruction, lowering, options), (2,), instruction, lowering)


@custom_call("__cublas$triangularSolve", widens=True)
def triangular_solve(instruction: Instruction, lowering: Lowering) -> Kernel:
    """What `triangular-solve` computes, then workspace.

    XLA: service/gpu/transforms/triangular_solve_rewriter.cc.
    """
    config = read_config(instruction, lowering)
    names = ("TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")
    transpose = config.choice("transpose_a", names)
    if transpose == "TRANSPOSE_INVALID":
        raise config.unsupported("a triangular system without transpose_a")
    left, lower, unit = (config.flag(n) for n in ("left_side", "lower", "unit_diagonal"))
    a_type, b_type = instruction.operand_types
    assemble = assembler(instruction, lowering)

    def kernel(a: Array, b: Array) -> object:
        x = solve_triangular(native(a, a_type), native(b, b_type), left, lower, transpose, unit)
        return assemble([finish(x, b_type)])

    return kernel
