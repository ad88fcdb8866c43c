"""Custom calls that only programs for GPUs, or only those for TPUs, contain and that belong to no library.

The TPU's compiler leaves blocks of linear algebra to calls of its own, which it does not document.
"""

from __future__ import annotations

import numpy as np

from hlotool.backends.base import TOKEN
from hlotool.backends.numpy.backend_configs import read_config, result_shapes
from hlotool.backends.numpy.custom_calls import custom_call
from hlotool.backends.numpy.executions.noise import Stability
from hlotool.backends.numpy.kernels import lapack_calls
from hlotool.backends.numpy.kernels.dot import cholesky_kernel, solve_triangular
from hlotool.backends.numpy.kernels.lapack_calls import LapackCall, Results, batched, lapack_call
from hlotool.backends.numpy.kernels.random_numbers import threefry2x32
from hlotool.backends.numpy.kernels.sort import order_by
from hlotool.backends.numpy.lanes import lanes
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.registry import Kernel
from hlotool.errors import BackendFailed
from hlotool.ir.arrays import Array, dtype_of
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
    return batched(lapack_calls.syevd, call, (2,), instruction, lowering)


@custom_call("Qr", widens=True, stable=Stability.COLUMNS)
def qr(instruction: Instruction, lowering: Lowering) -> Kernel:
    """QR decomposition of matrices: R with the Householder vectors below it, and their factors.

    XLA: hlo/transforms/expanders/qr_expander.cc.
    """
    call = lapack_call(instruction, lowering, {})
    return batched(lapack_calls.geqrf, call, (2,), instruction, lowering)


@custom_call("ProductOfElementaryHouseholderReflectors", widens=True)
def householder_product(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The orthogonal matrices that Householder vectors and their factors stand for.

    XLA: hlo/builder/lib/qr.h, hlo/transforms/expanders/qr_expander.cc.
    """
    call = lapack_call(instruction, lowering, {})
    return batched(lapack_calls.orgqr, call, (2, 1), instruction, lowering)


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


@custom_call(
    "cu_threefry2x32_ffi",
    "hip_threefry2x32_ffi",
    "cu_threefry2x32",
    "hip_threefry2x32",
    "cuda_threefry2x32",
)
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


@custom_call("Cholesky", widens=True)
def cholesky_block(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The lower factor of each matrix, NaN where there is none; programs look at the diagonal for that.

    Source: programs that libtpu 0.0.42 compiles; they zero the other triangle themselves.
    """
    return cholesky_kernel(instruction.element_type, lower=True)


@custom_call("InvertDiagBlocksLowerTriangular", "InvertDiagBlocksUpperTriangular", widens=True)
def inverse_of_triangles(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The inverses of triangular matrices; a zero on a diagonal gives infinities and NaN.

    Source: programs that libtpu 0.0.42 compiles: a solution of a triangular system multiplies by them.
    """
    is_lower = "Lower" in instruction.custom_call_target

    def kernel(a: Array) -> Array:
        one = np.broadcast_to(np.eye(a.shape[-1], dtype=a.dtype), a.shape)
        return solve_triangular(a, one, True, is_lower, "NO_TRANSPOSE", False)

    return kernel


@custom_call("QrDecompositionBlock", widens=True, stable=Stability.COLUMNS)
def qr_block(instruction: Instruction, lowering: Lowering) -> Kernel:
    """QR decomposition of panels: R with the Householder vectors below it, and their factors.

    Source: programs that libtpu 0.0.42 compiles; XLA: hlo/transforms/expanders/qr_expander.cc.
    """
    return batched(lapack_calls.geqrf, lapack_call(instruction, lowering, {}), (2,), instruction, lowering)


@custom_call("CompactWyHelper", widens=True)
def compact_wy(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The middle factor T of a product of reflections, I + V·T·Vᵀ.

    The operand is (I + the strict upper triangle of VᵀV) with column j multiplied by -tau[j]. T has its
    diagonal, and T[:j, j] = T[:j, :j] · operand[:j, j].

    Source: programs that libtpu 0.0.42 compiles; XLA: hlo/transforms/expanders/qr_expander.cc; the recurrence
    is that of LAPACK's larft.
    """

    def routine(call: LapackCall, a: Array) -> Results:
        factor = np.diag(np.diag(a))
        for column in range(1, len(a)):
            factor[:column, column] = factor[:column, :column] @ a[:column, column]
        return (factor,)

    return batched(routine, lapack_call(instruction, lowering, {}), (2,), instruction, lowering)


@custom_call("LuDecompositionBlock", "LuRealDecompositionBlock", widens=True, stable=Stability.COLUMNS)
def lu_block(instruction: Instruction, lowering: Lowering) -> Kernel:
    """LU decomposition of panels with partial pivoting: factors, pivots from 0, permutation of the rows.

    Source: programs that libtpu 0.0.42 and 0.0.52 compile; XLA: hlo/builder/lib/lu_decomposition.h.
    """
    return lu(instruction, lowering)


@custom_call("EighTpu", widens=True, stable=Stability.MATRIX)
def eigenvalues_of_blocks(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Eigenvalues and eigenvectors of symmetric matrices in four blocks, in rows: (first values, last values,
    and four blocks of the matrix whose rows are the vectors).

    Programs sort the values, and the vectors with them. A last row and column of zeros, which matrices of odd
    size are padded with, keep their place, as they do where rotations meet nothing to rotate.

    Source: programs that libtpu 0.0.42 compiles; XLA: hlo/transforms/expanders/eigh_expander.cc.
    """
    options = {"mode": ord("V"), "uplo": ord("L")}

    def routine(call: LapackCall, *blocks: Array) -> Results:
        half = len(blocks[0])
        matrix = np.block([[blocks[0], blocks[1]], [blocks[2], blocks[3]]])
        rows, values = np.eye(2 * half, dtype=matrix.dtype), np.diag(matrix).copy()
        size = 2 * half if matrix[-1, :-1].any() or matrix[:-1, -1].any() else 2 * half - 1
        vectors, values[:size], _ = lapack_calls.syevd(call, matrix[:size, :size])
        rows[:size, :size] = vectors.T
        parts = [rows[i : i + half, j : j + half] for i in (0, half) for j in (0, half)]
        return values[:half], values[half:], *parts

    return batched(routine, lapack_call(instruction, lowering, options), (2,) * 4, instruction, lowering)
