"""Custom calls that only GPU programs contain and that belong to no library."""

from __future__ import annotations

import numpy as np

from hlotool.backends.base import TOKEN
from hlotool.backends.numpy.backend_configs import read_config
from hlotool.backends.numpy.custom_calls import custom_call
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.random_bits import threefry2x32
from hlotool.backends.numpy.registry import Kernel
from hlotool.errors import BackendFailed
from hlotool.ir.dtypes import Array, dtype_of
from hlotool.ir.module import Instruction


@custom_call("cu_threefry2x32_ffi", "hip_threefry2x32_ffi", "cu_threefry2x32", "hip_threefry2x32")
def threefry(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Threefry-2x32 with 20 rounds on every element: operands are two words of keys and two of counters.

    Source: jaxlib/gpu/prng_kernels.cu.cc.
    """

    def kernel(key0: Array, key1: Array, x0: Array, x1: Array) -> tuple[Array, Array]:
        return threefry2x32((key0, key1), (x0, x1))

    return kernel


@custom_call("NopReturnToken", "__xla_gpu_debug_print")
def no_operation(instruction: Instruction, lowering: Lowering) -> Kernel:
    """A token: what it stands for was optimised away, or only prints.

    XLA: service/collective_ops_utils.h, backends/gpu/runtime/runtime_intrinsics.cc.
    """
    return lambda *operands: TOKEN


@custom_call("__xla_gpu_assert")
def assertion(instruction: Instruction, lowering: Lowering) -> Kernel:
    """A token, if the operand is true; otherwise the run fails, as on the GPU.

    XLA: backends/gpu/runtime/runtime_intrinsics.cc.
    """
    message = read_config(instruction, lowering).text("error_msg")
    where = lowering.module.location(instruction)

    def kernel(holds: Array) -> object:
        if not holds:
            raise BackendFailed("numpy", f"{where}: the program's own assertion fails: {message}")
        return TOKEN

    return kernel


@custom_call("__nop", "__custom_kernel_fusion$workspace")
def workspace(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Memory that the kernel of a fusion works in; zeros, which take no memory here.

    XLA: service/gpu/cudnn_support_utils.h, service/gpu/kernels/custom_kernel_fusion_pattern.h.
    """
    shape = instruction.array_shape
    memory = np.broadcast_to(np.zeros((), dtype_of(shape.element_type)), shape.dims)
    return lambda *operands: memory
