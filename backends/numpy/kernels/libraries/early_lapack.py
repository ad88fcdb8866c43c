"""LAPACK and cuSOLVER as jaxlib called them before its typed calls: `lapack_sgetrf`, `cusolver_getrf` and
their like.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from hlotool.backends.numpy.custom_calls import custom_call
from hlotool.backends.numpy.kernels import lapack_calls
from hlotool.backends.numpy.kernels.lapack_calls import (
    LapackCall,
    Results,
    Routine,
    batched,
    lapack_call,
)
from hlotool.backends.numpy.kernels.libraries import cusolver
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.registry import Kernel
from hlotool.ir.arrays import Array
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape

#: From the scalar operands by name to the options of the routine.
_Options: TypeAlias = Callable[[Mapping[str, int]], Mapping[str, int]]


def _early(
    targets: str,
    scalars: str,
    options: _Options = dict,
    ranks: Sequence[int] = (2,),
    arrays: Callable[[Sequence[Array]], Sequence[Array]] = tuple,
) -> Callable[[Routine], Routine]:
    """Register a routine.

    Args:
        targets: names, with a star for the letter of the element type and the letters behind a colon.
        scalars: names of the operands before the arrays, in order.
        options: of the routine.
        ranks: of the arrays, without batch dimensions.
        arrays: that the routine takes, from the operands behind the scalars.
    """
    names = scalars.split()

    def register(routine: Routine) -> Routine:
        def lower(instruction: Instruction, lowering: Lowering) -> Kernel:
            target = instruction.text("custom_call_target")
            letter = target.partition("_")[2][0]

            def kernel(*operands: Array) -> object:
                given = dict(zip(names, map(int, operands[: len(names)])))
                call = LapackCall(letter, options(given), partial(lowering.unsupported, instruction))
                run = batched(routine, call, ranks, instruction, lowering)
                assert callable(run)
                return run(*arrays(operands[len(names) :]))

            return kernel

        lower.__doc__ = f"{routine.__doc__}\n\nSource: jaxlib/lapack.py."
        custom_call(*_spelled(targets))(lower)
        return routine

    return register


def _spelled(targets: str) -> list[str]:
    patterns = (target.split(":") for target in targets.split())
    return [pattern.replace("*", letter) for pattern, letters in patterns for letter in letters]


def _triangle(given: Mapping[str, int]) -> Mapping[str, int]:
    """Eigenvectors are always wanted."""
    return {"uplo": ord("L" if given["lower"] else "U"), "mode": ord("V")}


def _singular(given: Mapping[str, int]) -> Mapping[str, int]:
    wanted = "A" if given["full_matrices"] else "S"
    return {"mode": ord(wanted if given["compute_uv"] else "N")}


def _vectors(given: Mapping[str, int]) -> Mapping[str, int]:
    return {"compute_left": given["left"], "compute_right": given["right"]}


def _system(given: Mapping[str, int]) -> Mapping[str, int]:
    return {
        "side": ord("L" if given["left"] else "R"),
        "uplo": ord("L" if given["lower"] else "U"),
        "trans_x": ord("NTC"[given["transpose"]]),
        "diag": ord("U" if given["unit"] else "N"),
    }


_early("lapack_*potrf:sdcz", "lower batch n", _triangle)(lapack_calls.potrf)
_early("lapack_*getrf:sdcz", "batch m n")(lapack_calls.getrf)
_early("lapack_*gesdd:sdcz", "full_matrices compute_uv batch m n lwork", _singular)(lapack_calls.gesdd)
_early("lapack_*syevd:sd lapack_*heevd:cz", "lower batch n", _triangle)(lapack_calls.syevd)
_early("lapack_*gehrd:sdcz", "n low high lda batch lwork")(lapack_calls.gehrd)
_early("lapack_*sytrd:sd lapack_*hetrd:cz", "n lower lda batch lwork", _triangle)(lapack_calls.sytrd)


@_early("lapack_*geqrf:sdcz", "batch m n lwork")
def geqrf(call: LapackCall, a: Array) -> Results:
    """QR decomposition; (R and the Householder vectors, their factors, info, work)."""
    return *lapack_calls.geqrf(call, a), 0


@_early("lapack_*orgqr:sd lapack_*ungqr:cz", "batch m n k lwork", ranks=(2, 1))
def orgqr(call: LapackCall, a: Array, factors: Array) -> Results:
    """The orthogonal matrix that Householder vectors stand for; (matrix, info, work)."""
    return *lapack_calls.orgqr(call, a, factors), 0


@_early("lapack_*geev:sdcz", "batch n left right", _vectors)
def geev(call: LapackCall, a: Array) -> Results:
    """Eigenvalues of any square matrix; (work…, values, left, right vectors, info)."""
    return *[None] * (2 if call.is_complex else 3), *lapack_calls.geev(call, a)


@_early("lapack_*gees:sdcz", "batch n mode sort")
def gees(call: LapackCall, a: Array) -> Results:
    """Schur form; (form, work of complex matrices, values, vectors, number selected, info).

    Raises:
        Unsupported: eigenvalues are sorted, which jaxlib never asked for.
    """
    if call.is_option("sort", "S"):
        raise call.unsupported("gees with sorted eigenvalues")
    form, vectors, *values, selected, info = lapack_calls.gees(call, a)
    return form, *[None] * call.is_complex, *values, vectors, selected, info


def _multiplied(operands: Sequence[Array]) -> Sequence[Array]:
    """The matrix, and the right-hand side times the factor that comes first."""
    factor, a, b = operands
    return a, factor * b


_early("blas_*trsm:sdcz", "left lower transpose unit m n batch", _system, (2, 2), _multiplied)(
    lapack_calls.trsm
)


#: From the structure and the shape of the matrices to the options of the routine.
_EarlyCusolverOptions: TypeAlias = Callable[[bytes, ArrayShape], Mapping[str, int]]

_PLATFORMS = ("cu", "hip")
#: cublasFillMode_t: lower, upper.
_TRIANGLES = "LU"


def _no_options(descriptor: bytes, shape: ArrayShape) -> Mapping[str, int]:
    return {}


def _early_cusolver_triangle(descriptor: bytes, shape: ArrayShape) -> Mapping[str, int]:
    """Type, triangle, sizes; eigenvectors are always wanted."""
    _, triangle = struct.unpack_from("<2i", descriptor)
    return {"uplo": ord(_TRIANGLES[triangle]), "mode": ord("V")}


def _early_cusolver_singular(descriptor: bytes, shape: ArrayShape) -> Mapping[str, int]:
    """Type, batch, rows, columns, work, two letters; wide matrices are handed over transposed."""
    rows, columns = shape.dims[-2:]
    return {"mode": struct.unpack_from("<5ibb", descriptor)[5], "transposed": rows < columns}


def _jacobi(descriptor: bytes, shape: ArrayShape) -> Mapping[str, int]:
    """Type, batch, rows, columns, work, whether vectors are wanted, and whether only as many as values."""
    *_, wanted, economic = struct.unpack_from("<7i", descriptor)
    return {"mode": ord(("S" if economic else "A") if wanted else "N")}


def _early_cublas_system(descriptor: bytes, shape: ArrayShape) -> Mapping[str, int]:
    """Type, batch, rows, columns; side, triangle, transposition and diagonal as cuBLAS numbers them."""
    *_, side, triangle, transpose, diagonal = struct.unpack_from("<8i", descriptor)
    return {
        "side": ord("LR"[side]),
        "uplo": ord(_TRIANGLES[triangle]),
        "trans_x": ord("NTC"[transpose]),
        "diag": ord("NU"[diagonal]),
    }


def _register(
    name: str, routine: Routine, options: _EarlyCusolverOptions = _no_options, ranks: Sequence[int] = (2,)
) -> None:
    def lower(instruction: Instruction, lowering: Lowering) -> Kernel:
        descriptor = instruction.config_text.encode("utf-8", "surrogateescape")
        try:
            chosen = options(descriptor, instruction.operands[0].array_shape)
        except (struct.error, IndexError):
            raise lowering.unsupported(instruction, "a descriptor that jaxlib does not write") from None
        return batched(routine, lapack_call(instruction, lowering, chosen), ranks, instruction, lowering)

    lower.__doc__ = f"{routine.__doc__}\n\nSource: jaxlib/gpu/solver_kernels.h."
    custom_call(*(f"{platform}{name}" for platform in _PLATFORMS))(lower)


_register("solver_potrf", lapack_calls.potrf, _early_cusolver_triangle)
_register("blas_trsm_batched", lapack_calls.trsm, _early_cublas_system, ranks=(2, 2))
_register("solver_getrf", lapack_calls.getrf)
_register("blas_getrf_batched", lapack_calls.getrf)
_register("solver_geqrf", geqrf)
_register("blas_geqrf_batched", lapack_calls.geqrf)
_register("solver_orgqr", orgqr, ranks=(2, 1))
_register("solver_syevd", lapack_calls.syevd, _early_cusolver_triangle)
_register("solver_syevj", lapack_calls.syevd, _early_cusolver_triangle)
_register("solver_sytrd", lapack_calls.sytrd, _early_cusolver_triangle)
_register("solver_gesvd", cusolver.singular_values, _early_cusolver_singular)
_register("solver_gesvdj", cusolver.singular_values_by_columns, _jacobi)
