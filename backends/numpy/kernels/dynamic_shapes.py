"""Arrays whose size is known only at run time.

Such an array is held at its actual size. What lies between the actual size and the bound has no meaning in
HLO and is not kept; a program that enlarges an array again to look at it is refused.
"""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Any

import numpy as np

from hlotool.backends.numpy.custom_calls import custom_call
from hlotool.backends.numpy.dynamic_dims import reshaped_dims
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.registry import Kernel, lowers
from hlotool.backends.numpy.shapes import array_shape, attribute
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, TupleShape


@lowers("get-dimension-size")
def get_dimension_size(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The actual size of a dimension, s32. XLA: operation_semantics.md#getdimensionsize."""
    (dimension,) = attribute(instruction, "dimensions", tuple, lowering)
    return lambda x: np.int32(x.shape[dimension])


@lowers("set-dimension-size")
def set_dimension_size(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The array cut to a size. XLA: operation_semantics.md#setdimensionsize."""
    (dimension,) = attribute(instruction, "dimensions", tuple, lowering)
    before = (slice(None),) * dimension

    def kernel(x: Array, size: Array) -> Any:
        wanted, known = int(size), x.shape[dimension]
        if not 0 <= wanted <= known:
            raise lowering.unsupported(instruction, f"size {wanted} where {known} elements are known")
        return x[(*before, slice(wanted))]

    return kernel


@lowers("reshape")
def reshape(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The elements in row-major order, in other dimensions. XLA: operation_semantics.md#reshape."""
    source, target = array_shape(instruction.operands[0], lowering), array_shape(instruction, lowering)
    if not (source.is_dynamic or target.is_dynamic):
        dims = target.dims
        return lambda x: x.reshape(dims)

    def kernel(x: Array) -> Any:
        dims = reshaped_dims(x.shape, source, target)
        if dims is None:
            actual = ",".join(map(str, x.shape))
            raise lowering.unsupported(instruction, f"[{actual}] does not fill {target.logical_text()}")
        return x.reshape(dims)

    return kernel


@lowers("dynamic-reshape")
def dynamic_reshape(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The elements in the dimensions that the scalar operands give. XLA: #dynamicreshape."""

    def kernel(x: Array, *sizes: Array) -> Any:
        dims = tuple(int(size) for size in sizes)
        if prod(dims) != x.size:
            raise lowering.unsupported(instruction, f"{x.size} elements do not fill {list(dims)}")
        return x.reshape(dims)

    return kernel


@custom_call("SliceToDynamic")
def slice_to_dynamic(instruction: Instruction, lowering: Lowering) -> Kernel:
    """A padded array, cut to the sizes in the other operands. XLA: dynamic_padder.cc."""
    return _cut


def _cut(x: Array, *sizes: Array) -> Any:
    return x[tuple(slice(int(size)) for size in sizes)]


@custom_call("PadToStatic")
def pad_to_static(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The array, padded with zeros to its bounds, and its actual sizes. XLA: dynamic_padder.cc."""
    shape = instruction.shape
    padded = shape.elements[0] if isinstance(shape, TupleShape) and shape.elements else None
    if not isinstance(padded, ArrayShape):
        raise lowering.unsupported(instruction, f"PadToStatic to {shape}")
    return partial(_padded, dims=padded.dims)


def _padded(x: Array, dims: tuple[int, ...]) -> tuple[Any, ...]:
    result = np.zeros(dims, x.dtype)
    result[tuple(slice(size) for size in x.shape)] = x
    return (result, *(np.int32(size) for size in x.shape))
