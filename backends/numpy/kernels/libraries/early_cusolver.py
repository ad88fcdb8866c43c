"""cuSOLVER and hipSOLVER as jaxlib called them before its typed calls: `cusolver_getrf` and their like.

The backend config holds the bytes of a C structure: the element type, sizes that the shapes tell as well, and
options. Results are those of LAPACK and work arrays.

Source: jaxlib/gpu/solver_kernels.h and jaxlib/gpu_solver.py of jaxlib 0.4.13.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from hlotool.backends.numpy.custom_calls import custom_call
from hlotool.backends.numpy.kernels import lapack_factors, lapack_spectra
from hlotool.backends.numpy.kernels.libraries import cusolver, early_lapack
from hlotool.backends.numpy.lapack import Routine, batched, lapack_call
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.registry import Kernel
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape

#: From the structure and the shape of the matrices to the options of the routine.
_Options: TypeAlias = Callable[[bytes, ArrayShape], Mapping[str, int]]

_PLATFORMS = ("cu", "hip")
#: cublasFillMode_t: lower, upper.
_TRIANGLES = "LU"


def _no_options(descriptor: bytes, shape: ArrayShape) -> Mapping[str, int]:
    return {}


def _triangle(descriptor: bytes, shape: ArrayShape) -> Mapping[str, int]:
    """Type, triangle, sizes; eigenvectors are always wanted."""
    _, triangle = struct.unpack_from("<2i", descriptor)
    return {"uplo": ord(_TRIANGLES[triangle]), "mode": ord("V")}


def _singular(descriptor: bytes, shape: ArrayShape) -> Mapping[str, int]:
    """Type, batch, rows, columns, work, two letters; wide matrices are handed over transposed."""
    rows, columns = shape.dims[-2:]
    return {"mode": struct.unpack_from("<5ibb", descriptor)[5], "transposed": rows < columns}


def _jacobi(descriptor: bytes, shape: ArrayShape) -> Mapping[str, int]:
    """Type, batch, rows, columns, work, whether vectors are wanted, and whether only as many as values."""
    *_, wanted, economic = struct.unpack_from("<7i", descriptor)
    return {"mode": ord(("S" if economic else "A") if wanted else "N")}


def _register(
    name: str, routine: Routine, options: _Options = _no_options, ranks: Sequence[int] = (2,)
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


_register("solver_getrf", lapack_factors.getrf)
_register("blas_getrf_batched", lapack_factors.getrf)
_register("solver_geqrf", early_lapack.geqrf)
_register("blas_geqrf_batched", lapack_factors.geqrf)
_register("solver_orgqr", early_lapack.orgqr, ranks=(2, 1))
_register("solver_syevd", lapack_spectra.syevd, _triangle)
_register("solver_syevj", lapack_spectra.syevd, _triangle)
_register("solver_sytrd", lapack_factors.sytrd, _triangle)
_register("solver_gesvd", cusolver.singular_values, _singular)
_register("solver_gesvdj", cusolver.singular_values_by_columns, _jacobi)
