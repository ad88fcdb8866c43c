"""Matrix products by cuBLAS and cuBLASLt (and by the ROCm libraries, which XLA calls by the same names)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hlotool.backends.numpy.backend_configs import Config, assembler, read_config
from hlotool.backends.numpy.contraction import rounded
from hlotool.backends.numpy.custom_calls import custom_call
from hlotool.backends.numpy.gemm import Gemm, read_dot_dimensions, read_gemm
from hlotool.backends.numpy.kernels.dot import RaggedProduct, scaled
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.precision import limited
from hlotool.backends.numpy.registry import Kernel
from hlotool.backends.numpy.windows import as_int64
from hlotool.facts.retyping import declared_types
from hlotool.ir.arrays import Array
from hlotool.ir.module import Instruction
from hlotool.ir.types import ElementType


@custom_call("__cublas$gemm", "__cublas$lt$matmul", widens=True)
def matmul(instruction: Instruction, lowering: Lowering) -> Kernel:
    """D = activation(alpha · A B + beta · C + bias), in one type and rounded once.

    Operands: A, B, C if beta is not 0, bias if the epilogue adds one. Results: D, the value before the
    activation if the epilogue keeps it, workspace.

    XLA: service/gpu/transforms/gemm_rewriter.cc, service/gpu/matmul_utils.cc, backend_configs.proto.
    """
    gemm = _product(instruction, lowering, _gemm_config(instruction, lowering))
    _expect_operands(instruction, lowering, 2 + gemm.addends)
    assemble = assembler(instruction, lowering)

    def kernel(*operands: Array) -> object:
        a, b, *addends = gemm.widen(operands)
        return assemble(gemm.outputs(gemm.product(a, b), addends))

    return kernel


@custom_call("__cublas$lt$matmul$f8", widens=True)
def scaled_matmul(instruction: Instruction, lowering: Lowering) -> Kernel:
    """D = d_scale · activation(alpha · a_scale · A · b_scale · B + beta · C + bias), rounded once.

    D of an f8 type saturates; only then there is a d_scale, which comes last. A second result of rank 0 is
    the largest magnitude of D before d_scale. Operands: A, B, C if beta is not 0, a_scale, b_scale, bias,
    d_scale; until 2024 also c_scale and d_scale, unused for other types, right after b_scale.

    XLA: service/gpu/transforms/gemm_rewriter.cc (CreateF8CustomCall, F8ConvertD), ir_emitter_unnested.cc.
    """
    gemm = _product(instruction, lowering, _gemm_config(instruction, lowering))
    if gemm.epilogue.aux:
        raise lowering.unsupported(instruction, "an f8 product that keeps what its activation is applied to")
    has_amax = len(gemm.result_kinds) > 1 and gemm.result_kinds[1].is_floating
    _, (declared, *_) = declared_types(instruction)
    scales = len(instruction.operands) - 2 - gemm.addends
    if not 2 <= scales <= 4:
        raise lowering.unsupported(instruction, f"an f8 product of {len(instruction.operands)} operands")
    assemble = assembler(instruction, lowering)

    def kernel(*operands: Array) -> object:
        a, b, *rest = gemm.widen(operands)
        addends = [rest.pop(0)] if gemm.beta else []
        a_scale, b_scale, *rest = rest
        if scales == 4:
            rest = [*rest[2:], rest[1]]
        if gemm.epilogue.bias:
            addends.append(rest.pop(0))
        wide, _ = gemm.complete(gemm.product(a, b) * (a_scale * b_scale), addends)
        values = [_scaled_result(wide, rest, gemm.result_kinds[0], declared)]
        if has_amax:
            values.append(np.abs(wide).max(initial=0))
        return assemble(values)

    return kernel


def _scaled_result(wide: Array, d_scales: Sequence[Array], kind: ElementType, declared: ElementType) -> Array:
    """D from its value in the type of the computation; `kind` is wider where f64 is computed throughout."""
    if declared.bits > 8:
        return rounded(wide, kind)
    return rounded(limited(wide * d_scales[0] if d_scales else wide, declared), kind)


@custom_call("__cublas$lt$matmul$mx", widens=True)
def block_scaled_matmul(instruction: Instruction, lowering: Lowering) -> Kernel:
    """A B, each element times the scale of its block, accumulated in f32 and rounded once.

    Operands: A, B, a_scale, b_scale, as for scaled-dot. Scales that are arranged for the hardware
    (scale_mode 3) are refused, and so is a config that does not say: the default of its proto, 0, is a
    product without scales.

    XLA: backends/gpu/autotuner/hipblaslt.cc, stream_executor/gpu/gpu_blas_lt.h (ScaleMode),
    service/gpu/backend_configs.proto (GemmBackendConfig).
    """
    config = _gemm_config(instruction, lowering)
    mode = config.needed("scale_mode").integer("scale_mode")
    if mode != 2:
        raise lowering.unsupported(instruction, f"scales in the order of scale_mode {mode}")
    gemm = _product(instruction, lowering, config)
    _expect_operands(instruction, lowering, 4 + gemm.addends)
    assemble = assembler(instruction, lowering)

    def kernel(*operands: Array) -> object:
        a, b, a_scale, b_scale, *addends = gemm.widen(operands)
        return assemble(gemm.outputs(gemm.product(scaled(a, a_scale), scaled(b, b_scale)), addends))

    return kernel


@custom_call("__cublas$lt$groupedMatmul", widens=True)
def grouped_matmul(instruction: Instruction, lowering: Lowering) -> Kernel:
    """A product of which one dimension is cut into groups, as ragged-dot; epilogue as for a plain product.

    Operands: A, B, sizes of the groups, C if beta is not 0, bias.

    XLA: backends/gpu/transforms/gemm_rewriter.cc, service/gpu/thunk_emitter.cc (EmitCublasLtGroupedMatmul).
    """
    config = read_config(instruction, lowering, "grouped_gemm_backend_config")
    ragged = config.section("ragged_dot_dimension_numbers")
    gemm = read_gemm(instruction, lowering, config.section("gemm_backend_config"))
    _expect_operands(instruction, lowering, 3 + gemm.addends)
    try:
        (dimension,) = ragged.integers("lhs_ragged_dimensions")
    except ValueError:
        raise lowering.unsupported(instruction, "a grouped product without one ragged dimension") from None
    multiply = RaggedProduct(
        read_dot_dimensions(ragged.section("dot_dimension_numbers")),
        dimension,
        ragged.integers("rhs_group_dimensions"),
        gemm.result.dims,
    )
    assemble = assembler(instruction, lowering)

    def kernel(*operands: Array) -> object:
        a, b, _, *addends = gemm.widen(operands)
        product = multiply(a, b, as_int64(operands[2])) * gemm.alpha
        return assemble(gemm.outputs(product, addends))

    return kernel


def _gemm_config(instruction: Instruction, lowering: Lowering) -> Config:
    """The GemmBackendConfig, which stood alone until 2023."""
    config = read_config(instruction, lowering)
    return config.section("gemm_backend_config") if "gemm_backend_config" in config else config


def _product(instruction: Instruction, lowering: Lowering, config: Config) -> Gemm:
    """A product that is not grouped."""
    gemm = read_gemm(instruction, lowering, config)
    a, b = (o.dims for o in instruction.operands[:2])
    if not gemm.fits(a, b):
        raise lowering.unsupported(
            instruction, f"a product of {a} and {b} that its dot_dimension_numbers do not fit"
        )
    return gemm


def _expect_operands(instruction: Instruction, lowering: Lowering, count: int) -> None:
    if len(instruction.operands) != count:
        found = len(instruction.operands)
        raise lowering.unsupported(
            instruction, f"{found} operands, where its backend config speaks of {count}"
        )
