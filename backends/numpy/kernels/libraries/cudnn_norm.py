"""Normalisation by cuDNN: of layers, and of batches as XLA called it until 2023."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hlotool.backends.numpy.backend_configs import assembler, read_config, result_types
from hlotool.backends.numpy.custom_calls import custom_call
from hlotool.backends.numpy.kernels.convolution import Features
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.precision import finish, native, sum_dtype
from hlotool.backends.numpy.registry import Kernel
from hlotool.ir.arrays import Array
from hlotool.ir.module import Instruction

#: `CudnnNormBackendConfig.Kind` by number.
_KINDS = ("LAYER_FWD_INFER", "LAYER_FWD_TRAIN", "LAYER_BWD")


@custom_call("__cudnn$norm", widens=True)
def layer_norm(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Layer normalisation over all dimensions but the first, or its gradient, computed in f64.

    LAYER_FWD_INFER: x, scale, bias → y. LAYER_FWD_TRAIN: also the mean and 1 / sqrt(variance + epsilon) of
    each row. LAYER_BWD: x, scale, gradient of y, mean, that factor → gradients of x, scale and bias. Then
    workspace.

    XLA: service/gpu/transforms/cudnn_norm_rewriter.cc, service/gpu/gpu_norm_runner.cc.
    """
    config = read_config(instruction, lowering, "cudnn_norm_backend_config")
    kind = config.choice("kind", _KINDS)
    if len(instruction.operands) != (5 if kind == "LAYER_BWD" else 3):
        raise lowering.unsupported(instruction, f"{kind} of {len(instruction.operands)} operands")
    operand_kinds = instruction.operand_types
    result_kinds = result_types(instruction, lowering)
    epsilon = config.number("epsilon")
    results = {"LAYER_FWD_INFER": 1}.get(kind, 3)
    assemble = assembler(instruction, lowering)

    def kernel(*operands: Array) -> object:
        wide = [native(o, k).astype(sum_dtype(k), copy=False) for o, k in zip(operands, operand_kinds)]
        values = _gradients(*wide) if kind == "LAYER_BWD" else _forward(epsilon, *wide)
        return assemble([finish(v, k) for v, k in zip(values[:results], result_kinds)])

    return kernel


def _forward(epsilon: float, x: Array, scale: Array, bias: Array) -> Sequence[Array]:
    """(y, mean, 1 / sqrt(variance + epsilon))."""
    mean = _row_mean(x)
    factor = 1 / np.sqrt(_row_mean(np.square(x - mean)) + epsilon)
    return (x - mean) * factor * scale + bias, mean, factor


def _gradients(x: Array, scale: Array, grad: Array, mean: Array, factor: Array) -> Sequence[Array]:
    """Gradients of x, scale and bias."""
    normalised = (x - mean) * factor
    pulled = grad * scale
    inner = pulled - _row_mean(pulled) - normalised * _row_mean(pulled * normalised)
    return inner * factor, (grad * normalised).sum(0, keepdims=True), grad.sum(0, keepdims=True)


def _row_mean(x: Array) -> Array:
    result: Array = x.mean(axis=tuple(range(1, x.ndim)), keepdims=True)
    return result


# Batch normalisation by cuDNN, as XLA called it until 2023.
#
# The last two operands are constants: epsilon and the number of the feature dimension. What cuDNN returns
# and takes in the place of variances are 1 / sqrt(variance + epsilon). XLA:
# service/gpu/cudnn_batchnorm_rewriter.cc, before it was removed.


@custom_call("__cudnn$batchNormalizationForwardInference", widens=True)
def inference(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Operand, scale, offset, mean and variance. XLA: cudnn_batchnorm_rewriter.cc."""
    features = _features(instruction, lowering)
    return lambda *operands: features.finish_all(features.normalise(*features.widen(*operands[:-2])))[0]


@custom_call("__cudnn$batchNormalizationForwardTraining", widens=True)
def training(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Operand, scale and offset; returns (output, mean, 1 / sqrt(variance + epsilon)).

    XLA: cudnn_batchnorm_rewriter.cc.
    """
    features = _features(instruction, lowering)

    def kernel(*operands: Array) -> tuple[Array, ...]:
        output, mean, variance = features.trained(*features.widen(*operands[:-2]))
        return features.finish_all(output, mean, 1 / np.sqrt(variance + features.epsilon))

    return kernel


@custom_call("__cudnn$batchNormalizationBackward", widens=True)
def gradient(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Operand, scale, mean, 1 / sqrt(variance + epsilon), gradient of the output; three gradients.

    XLA: cudnn_batchnorm_rewriter.cc.
    """
    features = _features(instruction, lowering)
    return lambda *operands: features.finish_all(*features.gradients(*features.widen(*operands[:-2])))


def _features(instruction: Instruction, lowering: Lowering) -> Features:
    epsilon, axis = (_constant(operand, instruction, lowering) for operand in instruction.operands[-2:])
    return Features(instruction, epsilon, int(axis))


def _constant(operand: Instruction, instruction: Instruction, lowering: Lowering) -> float:
    if operand.opcode == "copy":
        # Of a constant that an execution may change.
        operand = operand.operands[0]
    if operand.literal is None or operand.literal.has_elided:
        raise lowering.unsupported(instruction, f"%{operand.name} must be a constant")
    return float(operand.literal.array[()])
