"""Large dots as products of stacks of matrices, and cuBLAS through ctypes, to the same bits from run to
run.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from math import prod
from typing import Any, Final

import numpy as np

from hlotool.backends.cuda.codegen.contractions import DotDimensions, dot_dimensions
from hlotool.backends.cuda.codegen.elements import NotGenerated, element_type
from hlotool.backends.cuda.device import Allocation, Device
from hlotool.backends.cuda.toolchain import open_libraries
from hlotool.errors import BackendCrashed
from hlotool.ir.module import Instruction
from hlotool.ir.types import ElementType

#: Multiplications from which on a library is called: a product of two matrices of 128 x 128.
LARGE = 1 << 21

#: Types of both operands and of the result that products keep exact up to the rounding of sums in f32 (f64).
_KINDS: dict[ElementType, frozenset[ElementType]] = {
    ElementType.BF16: frozenset({ElementType.BF16, ElementType.F32}),
    ElementType.F16: frozenset({ElementType.F16, ElementType.F32}),
    ElementType.F32: frozenset({ElementType.F32}),
    ElementType.F64: frozenset({ElementType.F64}),
    ElementType.C64: frozenset({ElementType.C64}),
    ElementType.C128: frozenset({ElementType.C128}),
}


@dataclass(frozen=True, slots=True)
class Stack:
    """Matrices in memory, one behind the other; strides count elements.

    Attributes:
        order: dimensions of the operand, to be brought into this order first; None if it is used as it lies.
        stride: from one matrix to the next.
        leading: from one row to the next, or where they are transposed, from one column to the next.
        is_transposed: columns, not rows, are contiguous.
    """

    order: tuple[int, ...] | None
    stride: int
    leading: int
    is_transposed: bool


@dataclass(frozen=True, slots=True)
class Product:
    """batch x (rows x length) times batch x (length x columns), row-major.

    Attributes:
        batch: number of matrices.
        rows: of the left matrices and of the result.
        columns: of the right matrices and of the result.
        length: number of terms of each sum.
        left: the left matrices.
        right: the right matrices.
        operands: element type of both.
        result: element type of the result.
    """

    batch: int
    rows: int
    columns: int
    length: int
    left: Stack
    right: Stack
    operands: ElementType
    result: ElementType


def product_of(instruction: Instruction, least: int = LARGE) -> Product | None:
    """A dot as a product.

    None where it is none, or of fewer than `least` multiplications, or of types that libraries do not know.
    """
    if instruction.opcode != "dot" or len(instruction.operands) != 2:
        return None
    try:
        result, *kinds = (element_type(i) for i in (instruction, *instruction.operands))
        sides = [dot_dimensions(instruction, number) for number in (0, 1)]
    except NotGenerated:
        return None
    if kinds[0] is not kinds[1] or result not in _KINDS.get(kinds[0], ()):
        return None
    if len(sides[0].batch) != len(sides[1].batch):
        return None
    left, right = (operand.dims for operand in instruction.operands)
    batch, rows = (prod(left[d] for d in group) for group in (sides[0].batch, sides[0].free))
    length, columns = prod(left[d] for d in sides[0].contracting), prod(right[d] for d in sides[1].free)
    if batch * rows * columns * length < max(least, 1):
        return None
    stacks = min(_arrangements(left, right, sides), key=lambda pair: sum(s.order is not None for s in pair))
    return Product(batch, rows, columns, length, *stacks, kinds[0], result)


def _arrangements(
    left: Sequence[int], right: Sequence[int], sides: Sequence[DotDimensions]
) -> list[tuple[Stack, Stack]]:
    """Both operands with the summed dimensions in the order of the one, and of the other."""
    pairs = list(zip(sides[0].contracting, sides[1].contracting))
    found = []
    for side in (0, 1):
        ordered = sorted(pairs, key=lambda pair: pair[side])
        first, second = [a for a, _ in ordered], [b for _, b in ordered]
        lhs = _stack(left, sides[0].batch, sides[0].free, first)
        found.append((lhs, _stack(right, sides[1].batch, second, sides[1].free)))
    return found


def _stack(dims: Sequence[int], batch: Sequence[int], outer: Sequence[int], inner: Sequence[int]) -> Stack:
    """An array as matrices whose rows are the outer dimensions and whose columns are the inner ones."""
    height, width = (prod(dims[d] for d in group) for group in (outer, inner))
    strides = [_stride(dims, group) for group in (batch, outer, inner)]
    if None not in strides:
        stack, row, column = (stride or 0 for stride in strides)
        if (column == 1 or width == 1) and (row >= width or height == 1):
            return Stack(None, stack, max(row, width), False)
        if (row == 1 or height == 1) and (column >= height or width == 1):
            return Stack(None, stack, max(column, height), True)
    return Stack((*batch, *outer, *inner), height * width, width, False)


def _stride(dims: Sequence[int], group: Sequence[int]) -> int | None:
    """Elements between neighbours of dimensions that act as one; None where they cannot, 0 where it is 1."""
    places = [d for d in group if dims[d] != 1]
    if not places:
        return 0
    if any(b < a or prod(dims[a + 1 : b]) != 1 for a, b in pairwise(places)):
        return None
    return prod(dims[places[-1] + 1 :])


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
