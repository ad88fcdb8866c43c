"""Fourier transforms as jaxlib's CPU client called them before XLA had its own.

The first operand holds a FlatBuffer that says what is transformed. The strides in it, or in other operands,
repeat what the shapes say.

Source: jaxlib/cpu/ducc_fft.fbs; jaxlib/ducc_fft.py of jaxlib 0.4.13, which its CPU client was measured with.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hlotool.backends.numpy.custom_calls import custom_call
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.registry import Kernel
from hlotool.ir.dtypes import Array, dtype_of
from hlotool.ir.module import Instruction

#: Values of DuccFftType.
_COMPLEX, _TO_REAL, _FROM_REAL = range(3)


class _Table:
    """The root table of a FlatBuffer: its fields by number. Source: FlatBuffers, "Internals"."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        (self._start,) = struct.unpack_from("<I", content)
        (below,) = struct.unpack_from("<i", content, self._start)
        self._fields = self._start - below

    def _at(self, number: int) -> int | None:
        """Where a field stands; None for one that has its default value."""
        (size,) = struct.unpack_from("<H", self._content, self._fields)
        place = 4 + 2 * number
        offset = struct.unpack_from("<H", self._content, self._fields + place)[0] if place < size else 0
        return self._start + offset if offset else None

    def byte(self, number: int) -> int:
        """A boolean, or an enumeration of one byte."""
        at = self._at(number)
        return 0 if at is None else self._content[at]

    def double(self, number: int) -> float:
        """A floating-point number."""
        at = self._at(number)
        return 0.0 if at is None else float(struct.unpack_from("<d", self._content, at)[0])

    def numbers(self, number: int) -> tuple[int, ...]:
        """A list of numbers of 32 bits."""
        at = self._at(number)
        if at is None:
            return ()
        at += struct.unpack_from("<I", self._content, at)[0]
        (count,) = struct.unpack_from("<I", self._content, at)
        return struct.unpack_from(f"<{count}I", self._content, at + 4)


@dataclass(frozen=True, slots=True)
class _Transform:
    """What is transformed: of which kind, along which axes, in which direction."""

    kind: int
    axes: tuple[int, ...]
    is_forward: bool

    def __call__(self, x: Array, sizes: tuple[int, ...]) -> Array:
        """The transform, not divided by anything; `sizes` are those of the result."""
        points = tuple(sizes[axis] for axis in self.axes)
        if self.kind == _TO_REAL:
            return np.fft.irfftn(x, points, self.axes, norm="forward")
        if self.kind == _FROM_REAL:
            return np.fft.rfftn(x, axes=self.axes)
        if self.is_forward:
            return np.fft.fftn(x, axes=self.axes)
        return np.fft.ifftn(x, axes=self.axes, norm="forward")


@custom_call("dynamic_ducc_fft")
def dynamic_transform(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Fourier transform times a factor: operands are descriptor, array, sizes, strides twice, factor, sizes.

    Source: jaxlib/ducc_fft.py.
    """
    scaled = _scaled(instruction, lowering)

    def kernel(descriptor: Array, x: Array, sizes: Array, inner: Array, outer: Array, *more: Array) -> Array:
        table = _Table(descriptor.tobytes())
        return scaled(_Transform(table.byte(2), table.numbers(3), bool(table.byte(4))), x, float(more[0][0]))

    return kernel


@custom_call("ducc_fft")
def transform(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Fourier transform times a factor; operands are descriptor and array.

    Source: jaxlib/cpu/ducc_fft.fbs.
    """
    scaled = _scaled(instruction, lowering)

    def kernel(descriptor: Array, x: Array) -> Array:
        table = _Table(descriptor.tobytes())
        return scaled(_Transform(table.byte(1), table.numbers(5), bool(table.byte(6))), x, table.double(7))

    return kernel


def _scaled(instruction: Instruction, lowering: Lowering) -> Callable[[_Transform, Array, float], Array]:
    shape = instruction.array_shape
    dtype = dtype_of(shape.element_type)

    def run(transform: _Transform, x: Array, factor: float) -> Array:
        return np.asarray(transform(x, shape.dims) * dtype.type(factor), dtype)

    return run
