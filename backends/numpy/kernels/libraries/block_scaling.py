"""Arrays of narrow floats with one scale per block of neighbours, and their products.

The block lies along the last dimension, which products contract; a leading third dimension is a batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log2

import numpy as np

from hlotool.backends.numpy.backend_configs import assembler, read_config, result_shapes, result_types
from hlotool.backends.numpy.contraction import multiply_matrices, rounded
from hlotool.backends.numpy.custom_calls import custom_call
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.precision import compute_dtype, converter, largest_finite, narrow, widen
from hlotool.backends.numpy.registry import Kernel
from hlotool.facts.retyping import declared_types
from hlotool.ir.arrays import Array
from hlotool.ir.module import Instruction
from hlotool.ir.types import ElementType

_F32 = np.dtype(np.float32)


@custom_call("__op$quantize")
def quantize(instruction: Instruction, lowering: Lowering) -> Kernel:
    """(x / scale, scale): the scale brings the largest magnitude of a block to the largest power of two.

    Every step rounds to the type of x. XLA: service/gpu/transforms/block_scaling_rewriter.cc (BuildQuantize).
    """
    source = instruction.operands[0].element_type
    quantized, scales = result_shapes(instruction, lowering)
    limit = 2.0 ** floor(log2(largest_finite(quantized.element_type)))
    to_scale, from_scale = converter(source, scales.element_type), converter(scales.element_type, source)
    to_quantized = converter(source, quantized.element_type)
    blocks = (*scales.dims, -1)

    def kernel(x: Array) -> tuple[Array, Array]:
        wide = widen(x, source).reshape(blocks)
        largest = np.abs(wide).max(axis=-1)
        scale = to_scale(narrow(largest / wide.dtype.type(limit), source))
        quotient = narrow(wide / widen(from_scale(scale), source)[..., None], source)
        return to_quantized(quotient).reshape(quantized.dims), scale

    return kernel


@custom_call("__op$dequantize", widens=True)
def dequantize(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Each element times the scale of its block, both in the type of the result.

    XLA: service/gpu/transforms/block_scaling_rewriter.cc (BuildDequantize).
    """
    kind = instruction.element_type
    kinds = instruction.operand_types
    to_result = [converter(k, kind) for k in kinds]
    columns = instruction.operands[0].dims[-1]

    def kernel(x: Array, scale: Array) -> Array:
        wide, factors = (widen(convert(v), kind) for convert, v in zip(to_result, (x, scale)))
        return narrow(wide * factors.repeat(columns // scale.shape[-1], axis=-1), kind)

    return kernel


@custom_call("__op$block_scaled_dot", widens=True)
def block_scaled_dot(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Product of the dequantised operands, accumulated in f32 and rounded once.

    Operands: lhs, rhs, lhs_scale, rhs_scale if rhs is quantised, a scale of the result. Scales may be larger
    than the blocks need; the config then says how large a block is.

    XLA: service/gpu/transforms/block_scaling_rewriter.h.
    """
    config = read_config(instruction, lowering, "block_scaled_dot_backend_config")
    return _product(instruction, lowering, config.integer("block_size"), swizzled=False)


@custom_call("__cudnn$blockScaledDot", widens=True)
def cudnn_block_scaled_dot(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Product of dequantised operands, whose scales lie in tiles of 128 rows by 4 columns; then workspace.

    A block has 32 elements when scales are f8e8m0fnu (MXFP8), 16 otherwise (NVFP4).

    XLA: service/gpu/transforms/block_scaling_rewriter.cc (BuildCudnnScaledDotInput); cuda_dnn.cc.
    """
    scale_kind = declared_types(instruction)[0][2]
    return _product(instruction, lowering, 32 if scale_kind is ElementType.F8E8M0FNU else 16, swizzled=True)


def _product(instruction: Instruction, lowering: Lowering, block: int, swizzled: bool) -> Kernel:
    kinds = instruction.operand_types
    if not 3 <= len(kinds) <= 5:
        raise lowering.unsupported(instruction, f"a block-scaled product of {len(kinds)} operands")
    kind = result_types(instruction, lowering)[0]
    dtype = np.result_type(_F32, compute_dtype(kind))
    assemble = assembler(instruction, lowering)

    def kernel(*operands: Array) -> object:
        lhs, rhs, *scales = (widen(o, k).astype(dtype, copy=False) for o, k in zip(operands, kinds))
        global_scales, scales = scales[2:], scales[:2]
        if swizzled:
            scales = [_linear(scale) for scale in scales]
        left, right = _dequantized([lhs, rhs], scales, block)
        product = multiply_matrices(left, right.swapaxes(-1, -2))
        return assemble([rounded(product * global_scales[0] if global_scales else product, kind)])

    return kernel


def _dequantized(values: Sequence[Array], scales: Sequence[Array], block: int) -> list[Array]:
    """The values times their scales; those beyond the scales have none."""
    scaled = [v * _spread(s, v.shape, block) for v, s in zip(values, scales)]
    return scaled + list(values[len(scaled) :])


def _spread(scale: Array, dims: Sequence[int], block: int) -> Array:
    """One scale per element of an array of dimensions `dims`."""
    size = block or dims[-1] // scale.shape[-1]
    return scale.repeat(size, axis=-1)[..., : dims[-2], : dims[-1]]


def _linear(scale: Array) -> Array:
    """Scales from tiles of 128 rows by 4 columns, each stored as [32, 4, 4], to row-major order."""
    *batch, rows, columns = scale.shape
    tiles = scale.reshape((-1, rows // 128, columns // 4, 32, 4, 4))
    return tiles.transpose((0, 1, 4, 3, 2, 5)).reshape((*batch, rows, columns))
