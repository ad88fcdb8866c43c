"""Operations that XLA's CPU backend leaves to oneDNN."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hlotool.backends.numpy.backend_configs import Config, assembler, read_config, result_shapes
from hlotool.backends.numpy.contraction import multiply_matrices, operand_dtype, rounded, widened
from hlotool.backends.numpy.convolution_call import Arrangement, ConvolutionCall
from hlotool.backends.numpy.custom_calls import custom_call
from hlotool.backends.numpy.gemm import PostOps, float_of, read_post_ops
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.precision import finish, native, sum_dtype
from hlotool.backends.numpy.registry import Kernel
from hlotool.ir.arrays import Array
from hlotool.ir.attributes import WindowDim
from hlotool.ir.module import Instruction


@custom_call("__onednn$matmul", widens=True)
def matmul(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Matrix product, then bias and other operations, all in f32, rounded once; then scratchpad.

    Operands: two arrays whose dimensions the config may permute and whose last two it may exchange, and one
    per operation that adds. Weights packed for the processor are refused.

    XLA: service/cpu/onednn_matmul.cc.
    """
    config = read_config(instruction, lowering, "onednn_matmul_config")
    if config.section("optimization_config").flag("weights_prepacked") or config.flag("weights_prepacked"):
        raise lowering.unsupported(instruction, "a product with weights that are packed for the processor")
    post_ops = _post_ops(instruction, lowering, config)
    result = result_shapes(instruction, lowering)[0]
    left, right = (
        _matrix_order(config, side, operand.array_shape.rank, config.flag(flag))
        for side, operand, flag in zip(("lhs", "rhs"), instruction.operands, ("transpose_a", "transpose_b"))
    )
    order = _matrix_order(config, "result", result.rank, False)
    kinds = instruction.operand_types
    dtype = operand_dtype(result.element_type, *kinds[:2])
    assemble = assembler(instruction, lowering)

    def spread(kind: str, operand: Array) -> Array:
        return operand.transpose(order) if kind == "SUM" else operand

    def kernel(*operands: Array) -> object:
        a, b, *addends = (widened(o, k, dtype) for o, k in zip(operands, kinds))
        product = multiply_matrices(a.transpose(left), b.transpose(right))
        total = post_ops.apply(product, addends, spread)
        return assemble([rounded(total, result.element_type).transpose(np.argsort(order))])

    return kernel


def _matrix_order(config: Config, name: str, rank: int, transposed: bool) -> list[int]:
    """The order of dimensions in which an array is a batch of matrices."""
    listed = config.section(name).section("tensor").integers("dimensions")
    order = [d - 1 for d in listed] if listed else list(range(rank))
    if sorted(order) != list(range(rank)):
        raise config.unsupported(f"the dimensions of {name} in the backend config: {listed}")
    return [*order[:-2], *reversed(order[-2:])] if transposed and rank > 1 else order


@custom_call("__onednn$convolution", widens=True)
def convolution(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Convolution, then bias and other operations, all in f32, rounded once; then scratchpad.

    Window and dimensions stand in the config, of the window all but its sizes. No feature_groups, the
    default 0 of its proto, and 1 mean one group: only more are told apart.

    XLA: service/cpu/onednn_convolution.cc, service/cpu/onednn_contraction_rewriter.cc.
    """
    config = read_config(instruction, lowering, "onednn_conv_config")
    post_ops = _post_ops(instruction, lowering, config)
    result = result_shapes(instruction, lowering)[0]
    kinds = instruction.operand_types
    dtype = operand_dtype(result.element_type, *kinds[:2])
    image, output = (
        _Places(config.section(n).section("data"), "batch", "feature") for n in ("input", "output")
    )
    weights = _Places(config.section("kernel").section("filter"), "output_feature", "input_feature")
    sizes = weights.arrangement.spatial_sizes(instruction.operands[1].dims)
    call = ConvolutionCall(
        _window(config.section("window"), sizes, image.first_number),
        max(1, config.integer("feature_groups")),
        (image.arrangement, weights.arrangement, output.arrangement),
        result.dims,
        lambda left, right: (widened(left, kinds[0], dtype), widened(right, kinds[1], dtype)),
    )
    assemble = assembler(instruction, lowering)

    def spread(kind: str, operand: Array) -> Array:
        return call.spread_bias(operand) if operand.ndim == 1 else operand

    def kernel(left: Array, right: Array, *rest: Array) -> object:
        addends = [widened(o, k, dtype) for o, k in zip(rest, kinds[2:])]
        total = post_ops.apply(call.forward(left, right), addends, spread)
        return assemble([rounded(total, result.element_type)])

    return kernel


class _Places:
    """Where a config says that the dimensions of an array stand.

    Attributes:
        first_number: that of the first dimension where it counts spatial ones; 1 until 2025, then 0.
        arrangement: what it says.
    """

    def __init__(self, config: Config, first: str, feature: str) -> None:
        features = (config.integer(f"{first}_dim"), config.integer(f"{feature}_dim"))
        spatial = config.integers("spatial_dims")
        everything = sum(range(len(features) + len(spatial)))
        self.first_number = int(sum(features) + sum(spatial) > everything)
        self.arrangement = Arrangement(
            features[0], features[1:], tuple(d - self.first_number for d in spatial)
        )
        if sorted(self.arrangement.order) != list(range(len(features) + len(spatial))):
            raise config.unsupported(f"dimensions {features} and {spatial} in the backend config")


def _window(config: Config, sizes: Sequence[int], excess: int) -> tuple[WindowDim, ...]:
    """The window; all of its numbers are stored larger by `excess`, and for every dimension."""
    names = ("strides", "window_dilations", "pad_left", "pad_right")
    strides, dilations, low, high = (
        [value - excess for value in config.needed(name).integers(name)] for name in names
    )
    if any(len(values) != len(sizes) for values in (strides, dilations, low, high)):
        raise config.unsupported(f"a window of other than {len(sizes)} dimensions in the backend config")
    return tuple(
        WindowDim(size, stride, before, after, window_dilation=dilation)
        for size, stride, before, after, dilation in zip(sizes, strides, low, high, dilations)
    )


def _post_ops(instruction: Instruction, lowering: Lowering, config: Config) -> PostOps:
    post_ops = read_post_ops(config)
    found, expected = len(instruction.operands), 2 + post_ops.operands
    if found != expected:
        raise lowering.unsupported(
            instruction, f"{found} operands, where its backend config speaks of {expected}"
        )
    return post_ops


@custom_call("__onednn$softmax", widens=True)
def softmax(instruction: Instruction, lowering: Lowering) -> Kernel:
    """exp(x - max) divided by its sum along one dimension, without a config along the last one.

    Until June 2024 XLA wrote no config and always took the last dimension, whatever the program asked for
    (its change 12537); a config that leaves out the axis means the first, as messages of proto3 do.

    XLA: service/cpu/onednn_softmax.cc, service/cpu/onednn_config.proto (OneDnnSoftmaxConfig).
    """
    config = read_config(instruction, lowering, "onednn_softmax_config")
    axis = config.integer("softmax_axis") if instruction.config_text else -1
    operand = instruction.operands[0].element_type
    result = instruction.element_type

    def kernel(x: Array) -> Array:
        wide = native(x, operand).astype(sum_dtype(operand), copy=False)
        exponentials = np.exp(wide - wide.max(axis=axis, keepdims=True))
        return finish(exponentials / exponentials.sum(axis=axis, keepdims=True), result)

    return kernel


@custom_call("__onednn$layernorm", widens=True)
def layer_norm(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Normalisation of the last dimension: operands x, scale and shift.

    XLA: service/cpu/onednn_layer_norm.cc.
    """
    config = read_config(instruction, lowering, "onednn_layer_norm_config")
    epsilon = float_of(config.integer("epsilon_typecast"))
    kinds = instruction.operand_types
    result = instruction.element_type

    def kernel(*operands: Array) -> Array:
        x, scale, shift = (native(o, k).astype(sum_dtype(k), copy=False) for o, k in zip(operands, kinds))
        centred = x - x.mean(axis=-1, keepdims=True)
        variance = np.square(centred).mean(axis=-1, keepdims=True)
        return finish(centred / np.sqrt(variance + epsilon) * scale + shift, result)

    return kernel
