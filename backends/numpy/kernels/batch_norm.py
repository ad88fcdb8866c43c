"""Batch normalisation and its gradient."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.precision import finish, native, sum_dtype
from hlotool.backends.numpy.registry import Kernel, lowers
from hlotool.ir.arrays import Array
from hlotool.ir.module import Instruction
from hlotool.ir.types import ElementType, TupleShape


@lowers("batch-norm-training")
def batch_norm_training(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Normalise by the mean and (biased) variance of each feature; returns (output, mean, variance).

    XLA: operation_semantics.md#batchnormtraining.
    """
    features = _stated(instruction)
    return lambda *operands: features.finish_all(*features.trained(*features.widen(*operands)))


def in_terms_of_sums(
    instruction: Instruction,
    total: Callable[[Array], Array],
    x: Array,
    scale: Array,
    offset: Array,
) -> tuple[Array, ...]:
    """batch-norm-training as XLA expands it: the variance is the mean of squares less the square of the mean.

    Args:
        instruction: whose attributes count.
        total: sums an array over everything but the feature dimension.
        x: in the type that sums are made in.
        scale: likewise.
        offset: likewise.

    XLA: xla/service/batchnorm_expander.cc.
    """
    features = _stated(instruction)
    count = x.dtype.type(x.size // scale.size)
    with np.errstate(all="ignore"):
        mean, squares = total(x) / count, total(np.square(x)) / count
        variance = squares - np.square(mean)
        return features.normalise(x, scale, offset, mean, variance).astype(x.dtype), mean, variance


@lowers("batch-norm-inference")
def batch_norm_inference(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Normalise by given means and variances. XLA: operation_semantics.md#batchnorminference."""
    features = _stated(instruction)
    return lambda *operands: features.finish_all(features.normalise(*features.widen(*operands)))[0]


@lowers("batch-norm-grad")
def batch_norm_grad(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Gradient of batch-norm-training with respect to operand, scale and offset.

    Operands: operand, scale, mean, variance, gradient of the output.
    XLA: operation_semantics.md#batchnormgrad.
    """
    features = _stated(instruction)

    def kernel(*operands: Array) -> tuple[Array, ...]:
        x, scale, mean, variance, grad = features.widen(*operands)
        factor = 1 / np.sqrt(variance + features.epsilon)
        return features.finish_all(*features.gradients(x, scale, mean, factor, grad))

    return kernel


def _stated(instruction: Instruction) -> Features:
    """What the attributes of a batch-norm instruction say."""
    return Features(instruction, instruction.number("epsilon"), instruction.integer("feature_index"))


class Features:
    """Statistics per feature, in the accumulation type of the operands.

    Args:
        instruction: whose operands and results are arrays with features.
        epsilon: added to variances.
        axis: the dimension of features.

    Attributes:
        epsilon: added to variances.
    """

    def __init__(self, instruction: Instruction, epsilon: float, axis: int) -> None:
        # XLA holds the attribute in f32.
        self.epsilon = float(np.float32(epsilon))
        self._axis = axis
        self._operand_types = instruction.operand_types
        shape = instruction.shape
        parts = shape.elements if isinstance(shape, TupleShape) else (shape,)
        self._result_types = [getattr(part, "element_type", None) for part in parts]

    def widen(self, *operands: Array) -> list[Array]:
        """The operands in their accumulation types."""
        return [native(o, k).astype(sum_dtype(k), copy=False) for o, k in zip(operands, self._operand_types)]

    def finish_all(self, *results: Array) -> tuple[Array, ...]:
        """The results in their declared types."""
        return tuple(finish(r, k) for r, k in zip(results, self._types()))

    def sum(self, x: Array) -> Array:
        """Over everything but the feature dimension."""
        result: Array = x.sum(axis=self._others(x))
        return result

    def mean(self, x: Array) -> Array:
        """Over everything but the feature dimension."""
        count = x.size // x.shape[self._axis] if x.shape[self._axis] else 0
        return self.sum(x) / count

    def spread(self, feature: Array, x: Array) -> Array:
        """One value per feature, broadcastable against `x`."""
        return feature.reshape([-1 if d == self._axis else 1 for d in range(x.ndim)])

    def trained(self, x: Array, scale: Array, offset: Array) -> tuple[Array, Array, Array]:
        """Normalised by their own mean and (biased) variance, which come after."""
        mean = self.mean(x)
        variance = self.mean(np.square(x - self.spread(mean, x)))
        return self.normalise(x, scale, offset, mean, variance), mean, variance

    def normalise(self, x: Array, scale: Array, offset: Array, mean: Array, variance: Array) -> Array:
        """(x - mean) / sqrt(variance + epsilon) · scale + offset."""
        factor = scale / np.sqrt(variance + self.epsilon)
        return (x - self.spread(mean, x)) * self.spread(factor, x) + self.spread(offset, x)

    def gradients(self, x: Array, scale: Array, mean: Array, factor: Array, grad: Array) -> tuple[Array, ...]:
        """With respect to operand, scale and offset, where `factor` is 1 / sqrt(variance + epsilon)."""
        normalised = (x - self.spread(mean, x)) * self.spread(factor, x)
        mean_grad, mean_product = self.mean(grad), self.mean(grad * normalised)
        pulled = grad - self.spread(mean_grad, x) - normalised * self.spread(mean_product, x)
        return pulled * self.spread(scale * factor, x), self.sum(grad * normalised), self.sum(grad)

    def _others(self, x: Array) -> tuple[int, ...]:
        return tuple(d for d in range(x.ndim) if d != self._axis)

    def _types(self) -> Sequence[ElementType]:
        return [k for k in self._result_types if isinstance(k, ElementType)]
