"""Calls into the compiler of AWS Trainium and Inferentia, as PyTorch/XLA and transformers-neuronx write them.

What they compute is written in the Python packages that emit them; how the hardware rounds is not public.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hlotool.backends.numpy import floats
from hlotool.backends.numpy.custom_calls import custom_call
from hlotool.backends.numpy.kernels.sort import top
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.precision import finish, native, sum_dtype
from hlotool.backends.numpy.registry import Kernel
from hlotool.ir.arrays import Array, dtype_of
from hlotool.ir.module import Instruction
from hlotool.ir.types import TupleShape, array_shapes

_ROOT_OF_HALF = float(np.sqrt(0.5))
_ROOT_OF_TWO_OVER_PI = float(np.sqrt(2 / np.pi))
_DENSITY = float(1 / np.sqrt(2 * np.pi))
#: Of the cube in the approximation of GELU by tanh.
_CUBIC = 0.044715


@custom_call("AwsNeuronGelu", widens=True)
def gelu(instruction: Instruction, lowering: Lowering) -> Kernel:
    """x · Φ(x), Φ the normal distribution. Source: torch_neuronx/xla_impl/ops.py (Gelu)."""
    return _elementwise(instruction, lambda x: np.multiply(x, _normal_distribution(x)))


@custom_call("AwsNeuronGeluApprxTanh", widens=True)
def gelu_by_tanh(instruction: Instruction, lowering: Lowering) -> Kernel:
    """GELU with Φ approximated by tanh. Source: transformers-neuronx, layers and activations (gelu_new)."""

    def function(x: Array) -> Array:
        result: Array = 0.5 * x * (1 + np.tanh(_ROOT_OF_TWO_OVER_PI * (x + _CUBIC * x**3)))
        return result

    return _elementwise(instruction, function)


@custom_call("AwsNeuronGeluBackward", widens=True)
def gelu_derivative(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The derivative of GELU, Φ(x) + x · φ(x), not yet times the gradient.

    Source: torch_neuronx/xla_impl/ops.py (Gelu.backward_impl).
    """

    def function(x: Array) -> Array:
        return _normal_distribution(x) + x * _DENSITY * np.exp(-0.5 * np.square(x))

    return _elementwise(instruction, function)


@custom_call("AwsNeuronErf", widens=True)
def erf(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The error function. Source: AWS Neuron documentation, error code NCC_EHCA005 (activations)."""
    return _elementwise(instruction, floats.erf)


@custom_call("AwsNeuronSilu", widens=True)
def silu(instruction: Instruction, lowering: Lowering) -> Kernel:
    """x · sigmoid(x). Source: transformers-neuronx, hlo.py (silu)."""
    return _elementwise(instruction, lambda x: x / (1 + np.exp(-x)))


@custom_call("AwsNeuronSoftmax", widens=True)
def softmax(instruction: Instruction, lowering: Lowering) -> Kernel:
    """exp(x - max) divided by its sum along the dimension that the config names.

    Source: torch_neuronx/xla_impl/ops.py (Softmax.forward_impl).
    """
    axis = _number(instruction, lowering)

    def kernel(x: Array) -> Array:
        wide = _wide(x, instruction)
        exponentials = np.exp(wide - wide.max(axis=axis, keepdims=True))
        return finish(exponentials / exponentials.sum(axis=axis, keepdims=True), instruction.element_type)

    return kernel


@custom_call("AwsNeuronSoftmaxBackward", widens=True)
def softmax_gradient(instruction: Instruction, lowering: Lowering) -> Kernel:
    """From the gradient of the output and the output y: y · (gradient - Σ gradient · y).

    Source: torch_neuronx/xla_impl/ops.py (Softmax.backward_impl).
    """
    axis = _number(instruction, lowering)

    def kernel(gradient: Array, output: Array) -> Array:
        wide, y = _wide(gradient, instruction), _wide(output, instruction, 1)
        pulled = wide - (wide * y).sum(axis=axis, keepdims=True)
        return finish(y * pulled, instruction.element_type)

    return kernel


@custom_call("AwsNeuronRmsNorm", widens=True)
def rms_norm(instruction: Instruction, lowering: Lowering) -> Kernel:
    """x / sqrt(mean of x² + epsilon) · weight along the dimension that the config names.

    Operands: x, weight, epsilon. Source: torch_neuronx/xla_impl/ops.py (RmsNorm) and
    neuronx_distributed_inference/modules/custom_calls.py (CustomRMSNorm).
    """
    axis = _number(instruction, lowering)

    def kernel(x: Array, weight: Array, epsilon: Array) -> Array:
        wide, scale = _wide(x, instruction), _wide(weight, instruction, 1)
        mean = np.square(wide).mean(axis=axis, keepdims=True)
        return finish(wide / np.sqrt(mean + float(epsilon)) * scale, instruction.element_type)

    return kernel


@custom_call("AwsNeuronArgMax", "AwsNeuronArgMin", widens=True)
def extreme(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The index of the first largest (smallest) element along the dimension that the config names.

    Source: torch_neuronx/xla_impl/ops.py (Argmax), transformers-neuronx, hlo.py (_argmax).
    """
    axis = _number(instruction, lowering)
    find = np.argmax if instruction.custom_call_target.endswith("Max") else np.argmin
    dtype = dtype_of(instruction.element_type)
    return lambda x: find(_wide(x, instruction), axis=axis).astype(dtype)


@custom_call("AwsNeuronTopK", widens=True)
def top_k(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The largest elements of the last dimension in order, as many as the config says, and their indices.

    Source: torch_neuronx/xla_impl/ops.py (TopK).
    """
    find = top(instruction.operands[0].element_type, _number(instruction, lowering), descending=True)
    if not isinstance(instruction.shape, TupleShape):
        raise lowering.unsupported(instruction, "AwsNeuronTopK that does not return values and indices")
    dtype = dtype_of(array_shapes(instruction.shape)[1].element_type)

    def kernel(x: Array) -> tuple[Array, Array]:
        values, indices = find(x)
        return values, indices.astype(dtype)

    return kernel


def _normal_distribution(x: Array) -> Array:
    result: Array = 0.5 * (1 + floats.erf(x * x.dtype.type(_ROOT_OF_HALF)))
    return result


def _elementwise(instruction: Instruction, function: Callable[[Array], Array]) -> Kernel:
    return lambda x: finish(function(_wide(x, instruction)), instruction.element_type)


def _wide(value: Array, instruction: Instruction, operand: int = 0) -> Array:
    """An operand in its accumulation type."""
    kind = instruction.operands[operand].element_type
    return native(value, kind).astype(sum_dtype(kind), copy=False)


def _number(instruction: Instruction, lowering: Lowering) -> int:
    """The number that is all of the config."""
    text = instruction.config_text.strip('"')
    if not text.removeprefix("-").isdecimal():
        raise lowering.unsupported(instruction, f"the config of this call is a number, not {text!r}")
    return int(text)
