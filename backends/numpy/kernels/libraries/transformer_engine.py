"""Attention by NVIDIA's Transformer Engine, which JAX programs call through its typed FFI.

Of the ways in which queries, keys and values may lie in memory, the one of separate arrays
[batch, length, heads, features] is known here. Without dropout the state of the random numbers is not read.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hlotool.backends.numpy.backend_configs import Config, assembler, read_config, result_shapes
from hlotool.backends.numpy.contraction import rounded, widened
from hlotool.backends.numpy.custom_calls import custom_call
from hlotool.backends.numpy.kernels.libraries.attention import Attention, Mask, summed_to
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.precision import compute_dtype
from hlotool.backends.numpy.registry import Kernel
from hlotool.ir.arrays import Array
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape

#: `NVTE_QKV_Layout`: three arrays [batch, length, heads, features].
_SEPARATE = 9

#: `NVTE_Mask_Type` by number: (by length, causal), as far as masks are aligned to the first key.
_MASKS = ((False, False), (True, False), (False, True), (True, True))

#: `NVTE_Bias_Type`: none, and after scaling.
_BIASES = (0, 2)

#: From query, key, value, bias and running sums of the lengths of queries and keys.
_Prepare = Callable[..., Attention]


@custom_call("te_fused_attn_forward_ffi", widens=True)
def attention(instruction: Instruction, lowering: Lowering) -> Kernel:
    """softmax(scale · Q Kᵀ + bias, masked) V, in f32 and rounded once; dropout is refused.

    Operands: Q, K, V, bias, seed, running sums of the lengths of queries and keys, six that other layouts
    need. Results: output, logarithms of the sums of exponentials, state of the random numbers (0 here),
    workspace.

    Source: TransformerEngine, transformer_engine/jax/csrc/extensions/attention.cpp, common/fused_attn.h.
    """
    prepare = _preparation(instruction, lowering, operands=13)
    results = result_shapes(instruction, lowering)
    _expect_statistics(results[1], instruction, lowering)
    assemble = assembler(instruction, lowering)

    def kernel(*operands: Array) -> object:
        query, key, value, bias, _, *lengths = operands[:7]
        output, statistics = prepare(query, key, value, bias, *lengths).forward()
        heads_last = rounded(_swapped(output), results[0].element_type)
        return assemble([heads_last, rounded(statistics[..., None], results[1].element_type)])

    return kernel


@custom_call("te_fused_attn_backward_ffi", widens=True)
def attention_backward(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Gradients of attention, in f32 and rounded once; dropout is refused.

    Operands: Q, K, V, bias, the second and third result of the forward pass, its output, the output's
    gradient, running sums of the lengths of queries and keys, six that other layouts need. Results: gradients
    of Q, K, V and the bias, workspace.

    Source: TransformerEngine, transformer_engine/jax/csrc/extensions/attention.cpp.
    """
    prepare = _preparation(instruction, lowering, operands=16)
    results = result_shapes(instruction, lowering)
    kinds = instruction.operand_types
    _expect_statistics(instruction.operands[4].array_shape, instruction, lowering)
    assemble = assembler(instruction, lowering)

    def kernel(*operands: Array) -> object:
        query, key, value, bias, statistics, _, output, gradient, *lengths = operands[:10]
        wide = [_swapped(widened(x, k, compute_dtype(k))) for x, k in zip((output, gradient), kinds[6:8])]
        call = prepare(query, key, value, bias, *lengths)
        *gradients, scores = call.backward(statistics[..., 0], *wide)
        values = [rounded(_swapped(g), r.element_type) for g, r in zip(gradients, results)]
        if call.bias is not None:
            values.append(rounded(summed_to(scores, results[3].dims), results[3].element_type))
        return assemble(values)

    return kernel


def _preparation(instruction: Instruction, lowering: Lowering, operands: int) -> _Prepare:
    """What makes the operands of a call an `Attention`."""
    config = read_config(instruction, lowering)
    _refuse(config, len(instruction.operands), operands)
    by_length, causal = _MASKS[config.integer("mask_type")]
    mask = Mask(causal, config.integer("window_size_left") + 1)
    has_bias, scale = bool(config.integer("bias_type")), config.number("scaling_factor")
    kinds = instruction.operand_types

    def prepare(query: Array, key: Array, value: Array, bias: Array, *sums: Array) -> Attention:
        q, k, v, b = (
            widened(x, kind, compute_dtype(kind)) for x, kind in zip((query, key, value, bias), kinds)
        )
        lengths = (np.diff(sums[0]), np.diff(sums[1])) if by_length else None
        kept = mask.kept(q.shape[1], k.shape[1], lengths)
        return Attention(_swapped(q), _swapped(k), _swapped(v), b if has_bias else None, kept, scale)

    return prepare


def _refuse(config: Config, found: int, operands: int) -> None:
    """Raise Unsupported for what cannot be modelled.

    Calls carry all of their attributes; the library itself takes an absent softmax_type for the plain one.
    Without bottom_right_diagonal, the mask_type alone says how a mask is aligned.
    """
    left, right = (config.integer(f"window_size_{side}") for side in ("left", "right"))
    mask = config.integer("mask_type")
    reasons = {
        "attention with dropout: cuDNN's random numbers are not public": config.number("dropout_probability")
        > 0,
        f"attention of {found} operands, by another version of Transformer Engine": found != operands,
        "attention on packed arrays or sequences": config.integer("qkv_layout") != _SEPARATE,
        f"attention with mask_type {mask}": not 0 <= mask < len(_MASKS),
        "attention with a bias before scaling, or ALiBi": config.integer("bias_type") not in _BIASES,
        f"attention with a window of {left} and {right}": right > 0
        or (mask < 2 and (left, right) != (-1, -1)),
        "attention with a mask aligned to the last key": config.flag("bottom_right_diagonal", False),
        "attention with another softmax": config.integer("softmax_type", 0) != 0,
    }
    for reason, applies in reasons.items():
        if applies:
            raise config.unsupported(reason)


def _expect_statistics(shape: ArrayShape, instruction: Instruction, lowering: Lowering) -> None:
    """Raise Unsupported unless that is one number per query: short sequences may keep all probabilities."""
    if shape.rank != 4 or shape.dims[-1] != 1:
        raise lowering.unsupported(instruction, f"attention that keeps {shape} for its gradient")


def _swapped(value: Array) -> Array:
    """[batch, heads, length, features] for [batch, length, heads, features], and the other way round."""
    return value.swapaxes(1, 2)
