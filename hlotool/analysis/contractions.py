"""Arithmetic of products, convolutions, transforms and sorts. XLA: hlo_cost_analysis.cc."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

from hlotool.ir.attributes import ConvolutionDimensions, WindowDim
from hlotool.ir.module import Instruction

#: A multiplication and an addition.
_MULTIPLY_ADD = 2
#: Real multiplications of a complex one.
_COMPLEX = 4


def _dot(instruction: Instruction) -> int:
    """Of a ragged product each row belongs to one group: as if the result had no dimension for the groups."""
    groups = len(instruction.integers("rhs_group_dims", ()))
    contracted = instruction.integers("lhs_contracting_dims", ())
    width = prod(instruction.operands[0].dims[dimension] for dimension in contracted)
    return _MULTIPLY_ADD * prod(instruction.dims[groups:]) * width


def _fft(instruction: Instruction) -> int:
    factors = prod(length.bit_length() - 1 for length in instruction.integers("fft_length", ()))
    return _MULTIPLY_ADD * _COMPLEX * factors * instruction.operands[0].array_shape.size


def _sort(instruction: Instruction) -> int:
    """Comparisons, over all dimensions together."""
    elements = instruction.operands[0].array_shape.size
    return elements * max(0, elements - 1).bit_length()


def _convolution(instruction: Instruction) -> int:
    labels, window = instruction.attribute("dim_labels", ConvolutionDimensions), instruction.window
    left, kernel = (operand.dims for operand in instruction.operands)
    result = instruction.dims
    spatial = zip(window.dims, labels.input_spatial, labels.kernel_spatial, labels.output_spatial)
    positions = prod(_positions(dim, left[i], kernel[k], result[o]) for dim, i, k, o in spatial)
    features = left[labels.input_feature] // instruction.integer("feature_group_count", 1)
    batch = left[labels.input_batch] // instruction.integer("batch_group_count", 1)
    return _MULTIPLY_ADD * features * result[labels.output_feature] * batch * positions


def _positions(dim: WindowDim, inputs: int, kernel: int, outputs: int) -> int:
    """Pairs of a kernel and an output position that read an element, not padding and not a hole."""
    return sum(_hits(dim, inputs, outputs, tap * dim.window_dilation - dim.pad_low) for tap in range(kernel))


def _hits(dim: WindowDim, inputs: int, outputs: int, offset: int) -> int:
    """How many outputs read an element by one tap: at `output * stride + offset` of a dilated input."""
    if dim.base_dilation == 1:
        first = max(0, -(offset // dim.stride))
        last = min(outputs - 1, (inputs - 1 - offset) // dim.stride)
        return max(0, last - first + 1)
    places = (output * dim.stride + offset for output in range(outputs))
    limit = inputs * dim.base_dilation
    return sum(0 <= place < limit and place % dim.base_dilation == 0 for place in places)


#: Flops by opcode; they read their operands and write their result once.
CONTRACTIONS: Mapping[str, Callable[[Instruction], int]] = {
    "convolution": _convolution,
    "dot": _dot,
    "fft": _fft,
    "ragged-dot": _dot,
    "scaled-dot": _dot,
    "sort": _sort,
}
