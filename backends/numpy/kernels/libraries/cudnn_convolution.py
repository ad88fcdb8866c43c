"""Convolutions by cuDNN (and MIOpen, which XLA calls by the same names), alone or with a graph behind
them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hlotool.backends.numpy import floats
from hlotool.backends.numpy.backend_configs import Config, assembler, read_config, result_types
from hlotool.backends.numpy.contraction import rounded, widened
from hlotool.backends.numpy.convolution_call import read_convolution
from hlotool.backends.numpy.custom_calls import custom_call
from hlotool.backends.numpy.gemm import (
    Activation,
    elu,
    gelu_erf,
    identity,
    leaky_relu,
    relu,
    relu6,
    sigmoid,
    tanh,
)
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.precision import compute_dtype, limited
from hlotool.backends.numpy.registry import Kernel
from hlotool.facts.retyping import declared_types, is_retyped
from hlotool.ir.arrays import Array, dtype_of, integer_limits
from hlotool.ir.module import Instruction
from hlotool.ir.types import ELEMENT_TYPES, ElementType

#: `stream_executor.dnn.ActivationMode` by number.
_MODES = (
    "kNone",
    "kSigmoid",
    "kRelu",
    "kRelu6",
    "kReluX",
    "kTanh",
    "kBandPass",
    "kElu",
    "kLeakyRelu",
    "kGeluExact",
)
_ACTIVATIONS: dict[str, Activation] = {
    "kNone": identity,
    "kSigmoid": sigmoid,
    "kRelu": relu,
    "kRelu6": relu6,
    "kTanh": tanh,
    "kElu": elu,
    "kGeluExact": gelu_erf,
}


@custom_call("__cudnn$convForward", widens=True)
def convolve_forward(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Convolution of input and kernel, accumulated in f32 (s8 in s32), rounded once; then workspace.

    The kernel may be in the order of int8x32 convolutions (see `reorder`).

    XLA: service/gpu/transforms/conv_rewriter.cc, service/gpu/gpu_conv_runner.cc.
    """
    call = read_convolution(instruction, lowering, "iko")
    if _conv_config(instruction, lowering).flag("reordered_int8_nchw_vect"):
        return _plain(instruction, lowering, lambda x, w: call.forward(x, restore_kernel(w)))
    return _plain(instruction, lowering, call.forward)


@custom_call("__cudnn$convBackwardInput", widens=True)
def convolve_backward_input(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Gradient of the input from that of the output and the kernel; window and labels are the forward ones.

    XLA: service/gpu/transforms/conv_rewriter.cc (MatchBackwardInput), service/gpu/gpu_conv_runner.cc.
    """
    return _plain(instruction, lowering, read_convolution(instruction, lowering, "oki").backward_input)


@custom_call("__cudnn$convBackwardFilter", widens=True)
def convolve_backward_filter(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Gradient of the kernel from the input and the gradient of the output; window as in the forward pass.

    XLA: service/gpu/transforms/conv_rewriter.cc (MatchBackwardFilter), service/gpu/gpu_conv_runner.cc.
    """
    return _plain(instruction, lowering, read_convolution(instruction, lowering, "iok").backward_kernel)


def _plain(instruction: Instruction, lowering: Lowering, convolve: Callable[[Array, Array], Array]) -> Kernel:
    """The kernel of a convolution without epilogue."""
    config = _conv_config(instruction, lowering)
    if config.needed("conv_result_scale").number("conv_result_scale") != 1:
        raise lowering.unsupported(instruction, "a scaled convolution without epilogue")
    if len(instruction.operands) != 2:
        raise lowering.unsupported(instruction, f"a convolution of {len(instruction.operands)} operands")
    kind = result_types(instruction, lowering)[0]
    assemble = assembler(instruction, lowering)
    return lambda left, right: assemble([round_result(convolve(left, right), kind)])


@custom_call("__cudnn$convBiasActivationForward", widens=True)
def convolve_bias_activation(instruction: Instruction, lowering: Lowering) -> Kernel:
    """activation(conv_result_scale · conv(x, w) + side_input_scale · side + bias), rounded once; workspace.

    Operands: input, kernel, bias (one value per output feature), side input if it has a scale. Integers
    accumulate in s32, all else happens in f32 (f64); an s8 result is rounded to nearest even and saturates.

    XLA: service/gpu/transforms/cudnn_fused_conv_rewriter.h. NVIDIA: cudnnConvolutionBiasActivationForward.
    """
    call = read_convolution(instruction, lowering, "iko")
    config = _conv_config(instruction, lowering)
    reordered = config.flag("reordered_int8_nchw_vect")
    scale, side_scale = (
        config.needed("conv_result_scale").number("conv_result_scale"),
        config.number("side_input_scale"),
    )
    if len(instruction.operands) < 3 + bool(side_scale):
        raise lowering.unsupported(instruction, "a convolution without its bias or side input")
    kinds = instruction.operand_types
    kind = result_types(instruction, lowering)[0]
    dtype = np.result_type(np.float32, *(compute_dtype(k) for k in (kind, *kinds) if k.is_floating))
    activate = _activation(config)
    assemble = assembler(instruction, lowering)

    def kernel(image: Array, weights: Array, bias: Array, *side: Array) -> object:
        if reordered:
            weights, bias = restore_kernel(weights), restore_bias(bias)
        total = call.forward(image, weights).astype(dtype) * dtype.type(scale)
        if side_scale:
            total = total + widened(side[0], kinds[3], dtype) * dtype.type(side_scale)
        total = total + call.spread_bias(widened(bias, kinds[2], dtype))
        return assemble([round_result(activate(total), kind)])

    return kernel


def round_result(value: Array, kind: ElementType) -> Array:
    """A result in its declared type; integers round to nearest even and saturate, as cuDNN's do.

    Sums of integers that are no wider than the result wrap, as the convolution does that the call stands for.
    """
    if not kind.is_integer:
        return rounded(value, kind)
    if value.dtype.kind in "iu" and kind.bits >= 8 * value.itemsize:
        return value.astype(dtype_of(kind))
    low, high = integer_limits(kind)
    # Whole numbers of 64 bits are not all numbers of f64.
    whole = value if value.dtype.kind in "iu" else np.rint(value)
    return np.clip(whole, low, high).astype(dtype_of(kind))


def _activation(config: Config) -> Activation:
    mode = config.choice("activation_mode", _MODES)
    if mode == "kLeakyRelu":
        return leaky_relu(config.number("leakyrelu_alpha"))
    if mode not in _ACTIVATIONS:
        raise config.unsupported(f"activation_mode {mode}")
    return _ACTIVATIONS[mode]


def _conv_config(instruction: Instruction, lowering: Lowering) -> Config:
    """The CudnnConvBackendConfig, which stood alone until 2023."""
    config = read_config(instruction, lowering)
    name = "cudnn_conv_backend_config"
    return config.section(name) if name in config else config


# The order of kernel and bias that int8x32 convolutions read fastest. A kernel is s8[O, I/32, H, W, 32]. Its
# output features split into [O/8, 4, 2], the last dimension into [8, 4], and all of these are transposed.
# XLA: service/gpu/cudnn_support_utils.cc (CudnnInferTransposeForFilterReordering, …ForBiasReordering).

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


_OPERATION = re.compile(r"(\d+):\[(\w+)\](\w+)\(([\d,]*)\);")

_UNARY: Mapping[str, Callable[[Array], Array]] = {"relu": relu, "elu": elu}
_BINARY: Mapping[str, Callable[[Any, Any], Any]] = {
    "add": np.add,
    "scale": np.multiply,
    "invscale": np.divide,
    "min": floats.minimum,
    "max": floats.maximum,
}

_POINTWISE: Mapping[str, Callable[..., Any]] = {**_UNARY, **_BINARY}


@dataclass(frozen=True, slots=True)
class _Operation:
    """One operation of a serialized graph.

    Attributes:
        uid: its number.
        kind: element type of its value.
        name: what it does.
        inputs: numbers of the operations it reads; a second input that is not among them is an operand.
    """

    uid: int
    kind: ElementType
    name: str
    inputs: tuple[int, ...]

    @property
    def takes_operand(self) -> bool:
        """Whether it reads an operand of the call besides what is in the graph."""
        return self.name in _BINARY and len(self.inputs) == 1

    def apply(self, values: Sequence[Array]) -> Array:
        """Its value in the type of the computation, which is then rounded."""
        if self.name == "amax":
            return np.asarray(np.abs(values[0]).max(initial=0))
        return np.asarray(_POINTWISE[self.name](*values))

    def rounded(self, value: Array, kind: ElementType) -> Array:
        """`value` as the operation passes it on, of type `kind`: of an f8 operation within its range."""
        return rounded(limited(value, self.kind) if self.kind.bits == 8 else value, kind)


@custom_call("__cudnn$convForwardGraph", widens=True)
def convolve_graph(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Convolution, then the operations of `serialized_graph`, each computed in f32 and rounded to its type.

    Operands: input, kernel, then what binary operations read from outside, in the order of the graph.
    Results: the value that nothing in the graph reads, largest magnitudes (`amax`), workspace.

    XLA: service/gpu/transforms/cudnn_fused_conv_rewriter.cc (GraphString), stream_executor/cuda/cuda_dnn.cc.
    """
    call = read_convolution(instruction, lowering, "iko")
    first, *operations = _read_graph(read_config(instruction, lowering, "cudnn_conv_backend_config"))
    final = _final(operations, first, lowering, instruction)
    kinds = instruction.operand_types
    if len(kinds) != 2 + sum(operation.takes_operand for operation in operations):
        raise lowering.unsupported(instruction, f"a convolution graph for other than {len(kinds)} operands")
    if declared_types(instruction)[1][0] is not final.kind:
        raise lowering.unsupported(instruction, f"a convolution graph that ends in {final.kind}")
    assemble = assembler(instruction, lowering)
    is_wide = is_retyped(instruction)
    held = {
        o.uid: ElementType.F64 if is_wide and o.kind.is_floating else o.kind for o in (first, *operations)
    }

    def kernel(*operands: Array) -> object:
        values = {first.uid: first.rounded(call.forward(operands[0], operands[1]), held[first.uid])}
        outside = iter(zip(operands[2:], kinds[2:]))
        for operation in operations:
            inputs = [_wide(values[uid], held[uid]) for uid in operation.inputs]
            if operation.takes_operand:
                inputs.append(_wide(*next(outside)))
            values[operation.uid] = operation.rounded(operation.apply(inputs), held[operation.uid])
        maxima = [values[operation.uid] for operation in operations if operation.name == "amax"]
        return assemble([values[final.uid], *maxima])

    return kernel


def _wide(value: Array, kind: ElementType) -> Array:
    return widened(value, kind, compute_dtype(kind))


def _final(
    operations: Sequence[_Operation], first: _Operation, lowering: Lowering, instruction: Instruction
) -> _Operation:
    """The operation whose value is the first result."""
    read = {uid for operation in operations for uid in operation.inputs if operation.name != "amax"}
    ends = [o for o in (first, *operations) if o.uid not in read and o.name != "amax"]
    if len(ends) != 1:
        raise lowering.unsupported(instruction, f"a convolution graph with {len(ends)} ends")
    return ends[0]


def _read_graph(config: Config) -> list[_Operation]:
    """The operations of a serialized graph, in order, the convolution first.

    Raises:
        Unsupported: an operation or a type that is not known.
    """
    text = config.text("serialized_graph")
    operations = list(_operations(text, config))
    known = "".join(match.group(0) for match in _OPERATION.finditer(text)) == text
    if not operations or not known or operations[0].name != "conv":
        raise config.unsupported(f"serialized_graph {text!r}")
    return operations


def _operations(text: str, config: Config) -> Iterator[_Operation]:
    names = {"conv", "amax", *_POINTWISE}
    for uid, kind, name, inputs in _OPERATION.findall(text):
        if name not in names or kind not in ELEMENT_TYPES:
            raise config.unsupported(f"operation {kind} {name} in a convolution graph")
        numbers = tuple(int(number) for number in inputs.split(",") if number)
        yield _Operation(int(uid), ELEMENT_TYPES[kind], name, numbers)
