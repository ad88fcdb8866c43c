"""The order of kernel and bias that cuDNN's int8x32 convolutions read fastest.

A kernel is s8[O, I/32, H, W, 32]. Its output features split into [O/8, 4, 2], the last dimension into [8, 4],
and all of these are transposed.

XLA: service/gpu/cudnn_support_utils.cc (CudnnInferTransposeForFilterReordering, …ForBiasReordering).
"""

from __future__ import annotations

import numpy as np

from hlotool.backends.numpy.custom_calls import custom_call
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.registry import Kernel
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Instruction

#: From [O/8, 4, 2, I/32, H, W, 8, 4] to [I/32, H, W, O/8, 2, 8, 4, 4].
_KERNEL_ORDER = (3, 4, 5, 0, 2, 6, 1, 7)


@custom_call("__cudnn$convReorderFilter", "__cudnn$convReorderFilterAndBias")
def reorder(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Kernel, and bias if there is one, in the order of int8x32 convolutions.

    XLA: service/gpu/cudnn_support_utils.cc, backends/gpu/runtime/convolution_reorder_thunk.cc.
    """
    dims = instruction.operands[0].dims
    if len(dims) != 5 or dims[4] != 32 or dims[0] % 32:
        raise lowering.unsupported(instruction, f"reordering of a kernel of dimensions {dims}")
    if len(instruction.operands) == 1:
        return reorder_kernel
    return lambda kernel, bias: (reorder_kernel(kernel), reorder_bias(bias))


def reorder_kernel(kernel: Array) -> Array:
    """[O, I/32, H, W, 32] in the order of int8x32 convolutions."""
    outputs, *middle, _ = kernel.shape
    return kernel.reshape((outputs // 8, 4, 2, *middle, 8, 4)).transpose(_KERNEL_ORDER).reshape(kernel.shape)


def restore_kernel(kernel: Array) -> Array:
    """The inverse of `reorder_kernel`."""
    outputs, *middle, _ = kernel.shape
    split = kernel.reshape((*middle, outputs // 8, 2, 8, 4, 4))
    return split.transpose(np.argsort(_KERNEL_ORDER)).reshape(kernel.shape)


def reorder_bias(bias: Array) -> Array:
    """One value per output feature in the order of int8x32 convolutions."""
    return bias.reshape((-1, 4, 2, 4)).swapaxes(1, 2).reshape(bias.shape)


def restore_bias(bias: Array) -> Array:
    """The inverse of `reorder_bias`."""
    return bias.reshape((-1, 2, 4, 4)).swapaxes(1, 2).reshape(bias.shape)
