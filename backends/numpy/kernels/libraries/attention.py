"""Scaled dot-product attention and its gradients: fused multi-head attention (flash attention) by cuDNN."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hlotool.backends.numpy.backend_configs import (
    Config,
    assembler,
    read_config,
    result_shapes,
    result_types,
)
from hlotool.backends.numpy.contraction import rounded, widened
from hlotool.backends.numpy.custom_calls import custom_call
from hlotool.backends.numpy.gemm import read_dot_dimensions
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.precision import compute_dtype
from hlotool.backends.numpy.registry import Kernel
from hlotool.ir.arrays import Array
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, ElementType


@dataclass(frozen=True, slots=True)
class Mask:
    """Which keys a query attends to.

    Attributes:
        causal: none behind its own position, counted from the first query and the first key.
        window: not those so many positions before its own, or further away; 0 means no limit.
    """

    causal: bool
    window: int

    def kept(self, queries: int, keys: int, lengths: tuple[Array, Array] | None) -> Array:
        """bool[batch or 1, 1, queries, keys]; `lengths` are the numbers of queries and keys per batch."""
        row, column = np.arange(queries)[:, None], np.arange(keys)
        kept = np.ones((1, 1, queries, keys), np.bool_)
        if self.causal:
            kept &= column <= row
        if self.window > 0:
            kept &= column > row - self.window
        if lengths is None:
            return kept
        query_lengths, key_lengths = (each.reshape((-1, 1, 1, 1)) for each in lengths)
        return kept & (row < query_lengths) & (column < key_lengths)


@dataclass(frozen=True, slots=True)
class Attention:
    """The operands that the forward and the backward pass share.

    Attributes:
        query: [batch, heads, queries, features].
        key: [batch, key heads, keys, features].
        value: [batch, key heads, keys, value features].
        bias: added to the scores, broadcastable against them, or None.
        kept: mask, broadcastable against the scores.
        scale: factor of the products of queries and keys.
    """

    query: Array
    key: Array
    value: Array
    bias: Array | None
    kept: Array
    scale: float

    def forward(self) -> tuple[Array, Array]:
        """(output, logarithm of the sum of the exponentials of each query's scores)."""
        scores = self._scores()
        largest = scores.max(axis=-1, keepdims=True, initial=-np.inf)
        shift = np.where(np.isneginf(largest), largest.dtype.type(0), largest)
        powers = np.exp(scores - shift)
        total = powers.sum(axis=-1, keepdims=True)
        weights = np.divide(powers, total, out=np.zeros_like(powers), where=total != 0)
        return np.matmul(weights, self._per_query_head(self.value)), (np.log(total) + shift)[..., 0]

    def backward(
        self, statistics: Array, output: Array, gradient: Array
    ) -> tuple[Array, Array, Array, Array]:
        """Gradients of query, key, value and scores, the latter after scaling.

        Args:
            statistics: the second result of `forward`.
            output: its first one.
            gradient: of the output.
        """
        exponents = self._scores() - statistics[..., None]
        weights = np.where(self.kept, np.exp(exponents), exponents.dtype.type(0))
        drop = (gradient * output).sum(axis=-1, keepdims=True)
        pulled = np.matmul(gradient, self._per_query_head(self.value).swapaxes(-1, -2))
        score_gradient = weights * (pulled - drop)
        scaled = score_gradient * score_gradient.dtype.type(self.scale)
        query_gradient = np.matmul(scaled, self._per_query_head(self.key))
        key_gradient = self._per_key_head(np.matmul(scaled.swapaxes(-1, -2), self.query))
        value_gradient = self._per_key_head(np.matmul(weights.swapaxes(-1, -2), gradient))
        return query_gradient, key_gradient, value_gradient, score_gradient

    def _scores(self) -> Array:
        products = np.matmul(self.query, self._per_query_head(self.key).swapaxes(-1, -2))
        scores = products * products.dtype.type(self.scale)
        if self.bias is not None:
            scores = scores + self.bias
        result: Array = np.where(self.kept, scores, scores.dtype.type(-np.inf))
        return result

    def _per_query_head(self, value: Array) -> Array:
        sharing = self.query.shape[1] // value.shape[1]
        return value if sharing == 1 else np.repeat(value, sharing, axis=1)

    def _per_key_head(self, gradient: Array) -> Array:
        batch, _, *rest = gradient.shape
        grouped = gradient.reshape((batch, self.key.shape[1], -1, *rest))
        result: Array = grouped.sum(axis=2)
        return result


def summed_to(value: Array, dims: tuple[int, ...]) -> Array:
    """Sums over the dimensions along which an array of dimensions `dims` was broadcast."""
    axes = tuple(i for i, (size, own) in enumerate(zip(value.shape, dims)) if own == 1 and size != 1)
    result: Array = value.sum(axis=axes, keepdims=True)
    return result


#: `CudnnfMHABackendConfig.MaskType` by number.
_MASKS = ("NO_MASK", "PADDING", "CAUSAL", "PADDING_CAUSAL", "ALIBI")


@custom_call(
    "__cudnn$fmhaSoftmax",
    "__cudnn$fmhaScaleBiasSoftmax",
    "__cudnn$fmhaSoftmaxDropout",
    "__cudnn$fmhaScaleBiasSoftmaxDropout",
    widens=True,
)
def attention(instruction: Instruction, lowering: Lowering) -> Kernel:
    """softmax(scale · Q Kᵀ + bias, masked) V, in f32 and rounded once; dropout is refused.

    Operands: Q, K, V, bias if the target names one, lengths of queries and keys under a padding mask, page
    tables of K and V if they are paged. Results: the output [batch, heads, length, features], the logarithms
    of the sums of exponentials if training asks for them, workspace. Queries beyond their length give 0 and
    -inf.

    XLA: service/gpu/transforms/cudnn_custom_call_compiler.cc, stream_executor/cuda/cuda_dnn.cc;
    jax/_src/cudnn/fused_attention_stablehlo.py.
    """
    call = _read_call(instruction, lowering, "bmm1_dot_dimension_numbers")
    kinds = instruction.operand_types
    result_kinds = result_types(instruction, lowering)
    count = len(result_kinds) - 1
    if count > 1:
        call.expect_statistics(result_shapes(instruction, lowering)[1])
    query_order = call.order("bmm1", "lhs", "fc")
    key_order = call.order("bmm1", "rhs", "fc")
    value_order = call.order("bmm2", "rhs", "cf")
    call.expect(3 + call.has_bias + 2 * call.has_lengths + 2 * call.is_paged)
    assemble = assembler(instruction, lowering)

    def kernel(*operands: Array) -> object:
        rest = iter(zip(operands, kinds))
        query, key, value = (_wide(rest).transpose(o) for o in (query_order, key_order, value_order))
        bias = _wide(rest) if call.has_bias else None
        lengths = (next(rest)[0], next(rest)[0]) if call.has_lengths else None
        if call.is_paged:
            key, value = (_unpaged(pages, next(rest)[0]) for pages in (key, value))
        kept = call.mask.kept(query.shape[2], key.shape[2], lengths)
        values = Attention(query, key, value, bias, kept, call.scale).forward()
        return assemble([rounded(v, k) for v, k in zip(values[:count], result_kinds)])

    return kernel


@custom_call(
    "__cudnn$fmhaSoftmaxBackward",
    "__cudnn$fmhaScaleBiasSoftmaxBackward",
    "__cudnn$fmhaSoftmaxDropoutBackward",
    "__cudnn$fmhaScaleBiasSoftmaxDropoutBackward",
    widens=True,
)
def attention_backward(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Gradients of attention, in f32 and rounded once; dropout is refused.

    Operands: Q, K, V, the logarithms of the sums of exponentials, gradient of the output, bias if the target
    names one, the output, lengths of queries and keys under a padding mask. Results: gradients of Q, K and V
    as [batch, heads, length, features], of the bias if there are five results, workspace. The gradient of the
    bias is summed over those dimensions that have size 1 in its own shape.

    XLA: service/gpu/transforms/cudnn_custom_call_compiler.cc, stream_executor/cuda/cuda_dnn.cc.
    """
    call = _read_call(instruction, lowering, "bmm1_grad_gemm1_dot_dimension_numbers")
    kinds = instruction.operand_types
    results = result_shapes(instruction, lowering)
    query_order = call.order("bmm1_grad_gemm1", "rhs", "cf")
    key_order = call.order("bmm1_grad_gemm2", "rhs", "cf")
    value_order = call.order("bmm2_grad_gemm2", "rhs", "fc")
    output_order = call.order("bmm2_grad_gemm1", "rhs", "cf")
    call.expect(6 + call.has_bias + 2 * call.has_lengths)
    call.expect_statistics(instruction.operands[3].array_shape)
    assemble = assembler(instruction, lowering)

    def kernel(*operands: Array) -> object:
        rest = iter(zip(operands, kinds))
        query, key, value = (_wide(rest).transpose(o) for o in (query_order, key_order, value_order))
        statistics, gradient = _wide(rest), _wide(rest).transpose(output_order)
        bias = _wide(rest) if call.has_bias else None
        output = _wide(rest).transpose(output_order)
        lengths = (next(rest)[0], next(rest)[0]) if call.has_lengths else None
        kept = call.mask.kept(query.shape[2], key.shape[2], lengths)
        *gradients, scores = Attention(query, key, value, bias, kept, call.scale).backward(
            statistics, output, gradient
        )
        if len(results) == 5:
            gradients.append(summed_to(scores, results[3].dims))
        return assemble([rounded(g, r.element_type) for g, r in zip(gradients, results)])

    return kernel


@dataclass(frozen=True, slots=True)
class _Call:
    """What the config and the target of a call say.

    Attributes:
        instruction: the call.
        config: its CudnnfMHABackendConfig.
        has_bias: one of its operands is added to the scores.
        has_lengths: two of its operands are lengths of queries and keys.
        is_paged: keys and values lie in pages that two operands list.
        mask: which scores are kept.
        scale: factor of the products of queries and keys.
    """

    instruction: Instruction
    config: Config
    has_bias: bool
    has_lengths: bool
    is_paged: bool
    mask: Mask
    scale: float

    def order(self, product: str, side: str, rest: str) -> tuple[int, ...]:
        """The dimensions of an operand as [batch, heads, length, features].

        Args:
            product: the matrix product that describes it.
            side: its side there, `lhs` or `rhs`.
            rest: which dimensions follow those of the batch: `f`(ree) and `c`(ontracting), in order.
        """
        dimensions = read_dot_dimensions(self.config.section(f"{product}_dot_dimension_numbers"))
        is_left = side == "lhs"
        batch = dimensions.lhs_batch if is_left else dimensions.rhs_batch
        contracting = dimensions.lhs_contracting if is_left else dimensions.rhs_contracting
        free = dimensions.lhs_free(4) if is_left else dimensions.rhs_free(4)
        if (len(batch), len(contracting), len(free)) != (2, 1, 1):
            raise self.config.unsupported(f"attention whose {product} is {dimensions}")
        return batch + (free + contracting if rest == "fc" else contracting + free)

    def expect(self, operands: int) -> None:
        """Raise Unsupported unless the call has that many operands."""
        found = len(self.instruction.operands)
        if found != operands:
            raise self.config.unsupported(f"{found} operands, of which its backend config has {operands}")

    def expect_statistics(self, shape: ArrayShape) -> None:
        """Raise Unsupported unless that is one number per query: early versions kept all probabilities."""
        if shape.rank != 3:
            raise self.config.unsupported(f"attention that keeps {shape} for its gradient")


def _read_call(instruction: Instruction, lowering: Lowering, first_product: str) -> _Call:
    config = read_config(instruction, lowering, "cudnn_fmha_backend_config")
    target = instruction.text("custom_call_target")
    mask = _mask(config)
    is_paged = config.flag("is_paged_attention")
    _refuse(config, instruction, mask, first_product)
    if any(o.array_shape.rank != 4 for o in instruction.operands[:3]):
        raise config.unsupported("attention on operands of another rank than 4")
    return _Call(
        instruction,
        config,
        has_bias="Bias" in target,
        has_lengths=mask.startswith("PADDING") or is_paged,
        is_paged=is_paged,
        mask=Mask(mask.endswith("CAUSAL"), config.integer("sliding_window_length")),
        scale=config.needed("fmha_scale").number("fmha_scale"),
    )


def _mask(config: Config) -> str:
    """The name of its kind; until April 2024 configs had a flag for causal ones in its place."""
    if "mask_type" not in config and config.flag("is_causal_mask"):
        return "CAUSAL"
    return config.choice("mask_type", _MASKS)


def _refuse(config: Config, instruction: Instruction, mask: str, first_product: str) -> None:
    """Raise Unsupported for what cannot be modelled."""
    reasons = {
        "attention with dropout: cuDNN's random numbers are not public": config.number("dropout_rate") > 0,
        "attention on several sequences packed into one": config.integer("max_seg_per_batch") > 1,
        "attention with an ALiBi mask": mask == "ALIBI",
        "attention that modifies scores by a computation": any(True for _ in instruction.called),
        "attention whose config has no dot dimensions": first_product not in config,
    }
    for reason, applies in reasons.items():
        if applies:
            raise config.unsupported(reason)


def _wide(rest: Iterator[tuple[Array, ElementType]]) -> Array:
    """The next operand in the type of the computation."""
    value, kind = next(rest)
    return widened(value, kind, compute_dtype(kind))


def _unpaged(pages: Array, table: Array) -> Array:
    """[blocks, heads, block length, features] at the blocks that s32[batch, 1, blocks each, 1] lists."""
    chosen = np.moveaxis(pages[table[:, 0, :, 0]], 1, 2)
    batch, heads, blocks, length, features = chosen.shape
    return chosen.reshape((batch, heads, blocks * length, features))
