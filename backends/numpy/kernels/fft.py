"""Fourier transforms."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.registry import Kernel, lowers
from hlotool.ir.dtypes import dtype_of
from hlotool.ir.module import Instruction

#: `fft_type` → transform over some axes; the inverse ones divide by the number of points.
_TRANSFORMS: dict[str, Callable[..., Any]] = {
    "FFT": np.fft.fftn,
    "IFFT": np.fft.ifftn,
    "RFFT": np.fft.rfftn,
    "IRFFT": np.fft.irfftn,
}


@lowers("fft")
def fft(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Transform the last one to three dimensions, as many as `fft_length` has.

    The transform keeps the precision of its operand; XLA's evaluator computes in c128. IRFFT ignores the
    imaginary parts that a real signal cannot have. A length that does not fit the operand is refused: XLA
    does not check it for FFT and IFFT, and its CPU code then leaves part of the result uninitialised; of an
    empty result nothing can be.

    XLA: operation_semantics.md#fft.
    """
    kind = instruction.text("fft_type")
    length = instruction.integers("fft_length")
    if kind not in _TRANSFORMS:
        raise lowering.unsupported(instruction, f"fft_type {kind}")
    result = instruction.array_shape
    dtype = dtype_of(result.element_type)
    if not prod(result.dims):
        return lambda x: np.zeros(result.dims, dtype)
    operand = instruction.operands[0].array_shape
    sizes = operand.dims[operand.rank - len(length) :]
    expected = (*length[:-1], length[-1] // 2 + 1) if kind == "IRFFT" else length
    if sizes != expected:
        raise lowering.unsupported(instruction, f"{kind} of length {length} on dimensions {sizes}")
    transform, axes = _TRANSFORMS[kind], tuple(range(-len(length), 0))
    return lambda x: transform(x, s=length, axes=axes).astype(dtype, copy=False)
