"""Custom calls that only programs for GPUs, or only those for TPUs, contain and that belong to no library.

What a TPU computes of linear algebra, LAPACK does here. Where a result is not unique (signs of vectors, order
within eigenspaces) a TPU may choose otherwise.
"""

from __future__ import annotations

import numpy as np

from hlotool.backends.base import TOKEN
from hlotool.backends.numpy.backend_configs import read_config
from hlotool.backends.numpy.backward_errors import Stability
from hlotool.backends.numpy.custom_calls import custom_call
from hlotool.backends.numpy.kernels import lapack_factors, lapack_spectra
from hlotool.backends.numpy.kernels.sort import order_by
from hlotool.backends.numpy.lanes import lanes
from hlotool.backends.numpy.lapack import LapackCall, Results, batched, lapack_call
from hlotool.backends.numpy.library_results import result_shapes
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.random_bits import threefry2x32
from hlotool.backends.numpy.registry import Kernel
from hlotool.errors import BackendFailed
from hlotool.ir.dtypes import Array, dtype_of
from hlotool.ir.module import Instruction


@custom_call("Eigh", widens=True, stable=Stability.MATRIX)
def eigenvalues(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Eigenvectors and ascending eigenvalues of Hermitian matrices, read from the lower or upper triangle.

    The config is `lower,sort,iterations,tolerance`; the last two do not matter here.

    XLA: hlo/transforms/expanders/eigh_expander.cc.
    """
    text = instruction.config_text
    triangle = {"1": "L", "0": "U"}.get(text.split(",")[0])
    if triangle is None:
        raise lowering.unsupported(instruction, f"Eigh with backend config {text!r}")
    call = lapack_call(instruction, lowering, {"mode": ord("V"), "uplo": ord(triangle)})
    return batched(lapack_spectra.syevd, call, (2,), instruction, lowering)


@custom_call("Qr", widens=True, stable=Stability.COLUMNS)
def qr(instruction: Instruction, lowering: Lowering) -> Kernel:
    """QR decomposition of matrices: R with the Householder vectors below it, and their factors.

    XLA: hlo/transforms/expanders/qr_expander.cc.
    """
    call = lapack_call(instruction, lowering, {})
    return batched(lapack_factors.geqrf, call, (2,), instruction, lowering)


@custom_call("ProductOfElementaryHouseholderReflectors", widens=True)
def householder_product(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The orthogonal matrices that Householder vectors and their factors stand for.

    XLA: hlo/builder/lib/qr.h, hlo/transforms/expanders/qr_expander.cc.
    """
    call = lapack_call(instruction, lowering, {})
    return batched(lapack_factors.orgqr, call, (2, 1), instruction, lowering)


@custom_call("LuDecomposition", widens=True, stable=Stability.COLUMNS)
def lu(instruction: Instruction, lowering: Lowering) -> Kernel:
    """LU decomposition with partial pivoting: factors, pivots counted from 0, permutation of the rows.

    XLA: hlo/builder/lib/lu_decomposition.h.
    """

    def routine(call: LapackCall, a: Array) -> Results:
        factors, pivots, _ = call.function("getrf")(a)
        permutation = np.arange(len(a))
        for row, other in enumerate(pivots):
            permutation[[row, other]] = permutation[[other, row]]
        return factors, pivots, permutation

    return batched(routine, lapack_call(instruction, lowering, {}), (2,), instruction, lowering)


@custom_call("PartialReduce", widens=True)
def partial_reduce(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The first elements of one dimension in the order of a comparator, as many as the result holds.

    A TPU gives an approximation: among its results are the `top_k` first with probability `recall_target`.
    The exact answer, in order, is one that it may give. Operands: arrays, then one initial value for each.

    XLA: hlo/builder/lib/approx_topk.cc.
    """
    config = read_config(instruction, lowering).needed("to_apply_type", "reduction_dim")
    kind = config.text("to_apply_type")
    comparators = list(instruction.called)
    if kind != "comparator" or len(comparators) != 1:
        raise lowering.unsupported(instruction, f"PartialReduce by a {kind}")
    axis = config.integer("reduction_dim")
    kept = next(shape.dims[axis] for shape in result_shapes(instruction, lowering))
    order = order_by(lanes(comparators[0], lowering), lowering)
    count = len(instruction.operands) // 2

    def kernel(*operands: Array) -> tuple[Array, ...]:
        moved = [np.moveaxis(o, axis, -1) for o in operands[:count]]
        chosen = order(moved)[..., :kept]
        return tuple(np.moveaxis(np.take_along_axis(m, chosen, axis=-1), -1, axis) for m in moved)

    return kernel


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
