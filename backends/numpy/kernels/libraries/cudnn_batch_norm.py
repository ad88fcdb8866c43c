"""Batch normalisation by cuDNN, as XLA called it until 2023.

The last two operands are constants: epsilon and the number of the feature dimension. What cuDNN returns and
takes in the place of variances are 1 / sqrt(variance + epsilon).
XLA: service/gpu/cudnn_batchnorm_rewriter.cc, before it was removed.
"""

from __future__ import annotations

import numpy as np

from hlotool.backends.numpy.custom_calls import custom_call
from hlotool.backends.numpy.kernels.batch_norm import Features
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.registry import Kernel
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Instruction


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
