"""Sorting and scanning by CUB (hipCUB on ROCm): whole arrays in the order in which they lie in memory."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from hlotool.backends.numpy.accumulation import finish, native, sum_dtype
from hlotool.backends.numpy.backend_configs import read_config
from hlotool.backends.numpy.comparators import ranks
from hlotool.backends.numpy.custom_calls import custom_call
from hlotool.backends.numpy.layouts import bitcaster
from hlotool.backends.numpy.library_results import assembler
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.registry import Kernel
from hlotool.ir.dtypes import Array
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
