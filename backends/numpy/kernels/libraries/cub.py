"""Sorting and scanning by CUB (hipCUB on ROCm), and Fourier transforms by DUCC as jaxlib's CPU client once
called them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from math import prod

import numpy as np

from hlotool.backends.numpy.backend_configs import assembler, read_config
from hlotool.backends.numpy.bit_patterns import bitcaster
from hlotool.backends.numpy.comparators import ranks
from hlotool.backends.numpy.custom_calls import custom_call
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.precision import finish, native, sum_dtype
from hlotool.backends.numpy.registry import Kernel
from hlotool.ir.arrays import Array, dtype_of
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, ElementType

#: `CubScanOptions.Kind` by number.
_SCAN_KINDS = ("KIND_INVALID", "SUM")


@custom_call(
    "__cub$DeviceRadixSort",
    "__cub$DeviceRadixSortUnassignedScratchSize",
    "xla.gpu.ext.cub_sort_keys",
    "xla.gpu.ext.cub_sort_pairs",
)
def radix_sort(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Stable sort of rows of keys, as long as the last dimension, and of values that go with them.

    Keys order by their bits: NaN without sign last, with sign first; the two zeros are equal. Results:
    keys, values if there are any, workspace.

    XLA: service/gpu/transforms/sort_rewriter.cc, stream_executor/cuda/cub_sort_kernel_cuda_impl.cu.cc.
    NVIDIA: CUB documentation, DeviceRadixSort (floating-point special cases).
    """
    descending = read_config(instruction, lowering).flag("descending")
    shapes = [o.array_shape for o in instruction.operands]
    kind = shapes[0].element_type
    length = shapes[0].dims[-1] if shapes[0].rank else 1
    converters = [_rows(shape, length) for shape in shapes]
    assemble = assembler(instruction, lowering)

    def kernel(*operands: Array) -> object:
        rows = [split(o) for (split, _), o in zip(converters, operands)]
        order = np.argsort(ranks(_one_zero(rows[0], kind), kind, descending), axis=-1, kind="stable")
        return assemble([join(np.take_along_axis(r, order, -1)) for (_, join), r in zip(converters, rows)])

    return kernel


def _one_zero(keys: Array, kind: ElementType) -> Array:
    """Floats without -0, other keys as they are."""
    return np.where(keys == 0, keys.dtype.type(0), keys) if kind.is_floating else keys


def _rows(shape: ArrayShape, length: int) -> tuple[Callable[[Array], Array], Callable[[Array], Array]]:
    """To the memory of an array cut into rows of `length`, and back."""
    count = shape.size // length if length else 0
    flat = ArrayShape(shape.element_type, (count, length))
    return bitcaster(shape, flat), bitcaster(flat, shape)


@custom_call("xla.gpu.ext.cub_scan", "xla.gpu.ext.cub_scan_unassigned_scratch_size")
def scan(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Running sums over the middle one of the three dimensions in which the config sees the memory.

    Sums accumulate as for reduce; every one is rounded once. Results: sums, workspace.

    XLA: backends/gpu/transforms/scan_rewriter.cc, stream_executor/cuda/cub_scan_kernel_cuda.cc.
    """
    config = read_config(instruction, lowering)
    if config.choice("kind", _SCAN_KINDS) != "SUM":
        raise lowering.unsupported(instruction, "a scan that is no sum")
    shape = instruction.operands[0].array_shape
    dims = tuple(config.integer(f"{name}_length") for name in ("column", "row", "vector"))
    if prod(dims) != shape.size:
        raise lowering.unsupported(instruction, f"a scan over dimensions {dims} of {shape}")
    kind, step = shape.element_type, -1 if config.flag("is_reverse") else 1
    flat = ArrayShape(kind, dims)
    split, join = bitcaster(shape, flat), bitcaster(flat, shape)
    dtype = sum_dtype(kind)
    assemble = assembler(instruction, lowering)

    def kernel(operand: Array, *_: Array) -> object:
        wide = native(split(operand), kind)[:, ::step]
        return assemble([join(finish(np.cumsum(wide, axis=1, dtype=dtype)[:, ::step], kind))])

    return kernel


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
