"""cuBLAS through ctypes: products of stacks of matrices, to the same bits from run to run.

cuBLAS library documentation, "Results Reproducibility": one stream and a workspace of fixed size. Products
are computed in f32 (f64 where the operands are); TF32 and sums in less than f32 are not allowed.
"""

from __future__ import annotations

import ctypes
import threading
from functools import cache
from typing import Any, Final

import numpy as np

from hlotool.backends.cuda.device import Allocation, Device
from hlotool.backends.cuda.libraries import open_libraries
from hlotool.backends.cuda.products import Product
from hlotool.errors import BackendCrashed
from hlotool.ir.types import ElementType

#: Bytes of scratch memory: what cuBLAS itself takes on Hopper.
_WORKSPACE: Final = 32 << 20

#: library_types.h: cudaDataType.
_TYPES: Final = {
    ElementType.F32: 0,
    ElementType.F64: 1,
    ElementType.F16: 2,
    ElementType.C64: 4,
    ElementType.C128: 5,
    ElementType.BF16: 14,
}

#: cublas_api.h: cublasComputeType_t CUBLAS_COMPUTE_32F and _64F, by whether anything is f64.
_COMPUTE: Final = {False: 68, True: 70}

#: cublas_api.h: CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION, CUBLAS_GEMM_DEFAULT.
_MATH_MODE, _ALGORITHM = 16, -1


@cache
def find_library(newest: int) -> ctypes.CDLL | None:
    """cuBLAS 12 or newer, if it is installed, but none of a newer major version of CUDA than `newest`."""
    return next(open_libraries("cublas", newest), None)


class Cublas:
    """The library with what it needs on one device.

    Args:
        library: as found.
        device: whose primary context it works in, on the default stream.

    Raises:
        BackendFailed: it cannot be set up.
    """

    def __init__(self, library: ctypes.CDLL, device: Device) -> None:
        self._library = library
        self._device = device
        self._lock = threading.Lock()
        self._handle = ctypes.c_void_p()
        self._call("cublasCreate_v2", ctypes.byref(self._handle))
        self._workspace = device.allocate(_WORKSPACE)
        address = ctypes.c_void_p(int(self._workspace))
        self._call("cublasSetStream_v2", self._handle, ctypes.c_void_p(0))
        self._call("cublasSetWorkspace_v2", self._handle, address, ctypes.c_size_t(_WORKSPACE))
        self._call("cublasSetMathMode", self._handle, ctypes.c_int(_MATH_MODE))

    def multiply(self, product: Product, left: Allocation, right: Allocation, result: Allocation) -> None:
        """Queue result = left x right.

        Raises:
            BackendFailed: it cannot be queued, or what was queued before has failed.
        """
        # cuBLAS has columns first: there the product is right times left, each transposed.
        sides = ((right, product.right), (left, product.left))
        kind = _TYPES[product.operands]
        operands = [
            (ctypes.c_void_p(int(memory)), ctypes.c_int(kind), _i64(stack.leading), _i64(stack.stride))
            for memory, stack in sides
        ]
        self._call(
            "cublasGemmStridedBatchedEx_64",
            self._handle,
            *(ctypes.c_int(stack.is_transposed) for _, stack in sides),
            *map(_i64, (product.columns, product.rows, product.length)),
            _scalar(1, product.operands),
            *operands[0],
            *operands[1],
            _scalar(0, product.operands),
            ctypes.c_void_p(int(result)),
            ctypes.c_int(_TYPES[product.result]),
            _i64(product.columns),
            _i64(product.rows * product.columns),
            _i64(product.batch),
            ctypes.c_int(_COMPUTE[product.operands.real_part is ElementType.F64]),
            ctypes.c_int(_ALGORITHM),
        )

    def _call(self, name: str, *arguments: Any) -> None:
        # Not to be used by two threads at a time.
        with self._lock:
            status = getattr(self._library, name)(*arguments)
        if status:
            raise BackendCrashed("cuda", f"{name} failed: status {status}", here=self._device.is_broken())


def _i64(value: int) -> ctypes.c_int64:
    return ctypes.c_int64(value)


def _scalar(value: int, kind: ElementType) -> Any:
    """A factor in the type of the sums: real or complex, f32 or f64."""
    is_double = kind.real_part is ElementType.F64
    dtype = (np.complex128 if is_double else np.complex64) if kind.is_complex else None
    held = np.full(1, value, dtype or (np.float64 if is_double else np.float32))
    return (ctypes.c_char * held.nbytes).from_buffer_copy(held.tobytes())
