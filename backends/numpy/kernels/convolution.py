"""Convolution with every parameter HLO knows; batch normalisation and its gradient."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

import numpy as np

from hlotool.backends.numpy.contraction import multiply_matrices, operand_dtype, rounded, widened
from hlotool.backends.numpy.floats import foreign
from hlotool.backends.numpy.kernels.dot import refuse_structure
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.precision import finish, native, sum_dtype
from hlotool.backends.numpy.registry import Kernel, lowers
from hlotool.backends.numpy.threads import each, spans
from hlotool.backends.numpy.windows import (
    Entry,
    Sight,
    dense_patches,
    output_sizes,
    patches,
    spread_products,
)
from hlotool.ir.arrays import Array
from hlotool.ir.attributes import ConvolutionDimensions, WindowDim
from hlotool.ir.module import Instruction
from hlotool.ir.types import ElementType, TupleShape

#: Some of the batch, and rows of the result: indices of its first spatial dimension.
_Tile = tuple[slice, slice]

#: Patches, and the weights that they are multiplied with.
_Factors = tuple[Array, Array]

#: From two matrices, or as many as a batch has, to their product.
Multiply: TypeAlias = Callable[[Array, Array], Array]

#: Elements of a matrix of patches; each thread holds one.
_PATCH_ELEMENTS = 1 << 19

#: Parts of a batch whose results are added up at the same time.
_MOST_BATCHES = 4

#: With so many times more results than elements, most of what their windows see is padding.
_MOSTLY_PADDING = 2


@lowers("convolution")
def convolution(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Cross-correlation of the input with a kernel (mirrored only where the window says so).

    Computed as products of a matrix of patches with the kernel, in which padding counts as 0: beside an
    infinite weight it makes NaN, in XLA's CPU code with some layouts only. Holes are skipped, there and here,
    and padding where nearly everything is padding. Types as for dot (see `contraction`): integers wrap, where
    XLA's evaluator saturates s8 and its CPU code wraps.

    XLA: operation_semantics.md#convwithgeneralpadding.
    """
    refuse_structure(instruction, lowering)
    return convolver(instruction)


def convolver(instruction: Instruction, multiply: Multiply = multiply_matrices) -> Callable[..., Array]:
    """What convolves two arrays; `multiply` makes [batch…, m, n] of [batch…, m, k] and [batch…, k, n]."""
    labels = instruction.attribute("dim_labels", ConvolutionDimensions)
    convolve = CanonicalConvolution(
        instruction.window.dims,
        instruction.integer("feature_group_count", 1),
        instruction.integer("batch_group_count", 1),
        multiply,
    )
    result = instruction.element_type
    lhs_type, rhs_type = instruction.operand_types
    dtype = operand_dtype(result, lhs_type, rhs_type)
    order = _result_order(labels)

    def kernel(lhs: Array, rhs: Array) -> Array:
        image = lhs.transpose([labels.input_batch, labels.input_feature, *labels.input_spatial])
        weights = rhs.transpose(
            [labels.kernel_output_feature, labels.kernel_input_feature, *labels.kernel_spatial]
        )
        product = convolve(widened(image, lhs_type, dtype), widened(weights, rhs_type, dtype))
        return rounded(product, result).transpose(order)

    return kernel


def _result_order(labels: ConvolutionDimensions) -> list[int]:
    """Where each dimension of the result is found in [batch, feature, spatial…]."""
    places = {labels.output_batch: 0, labels.output_feature: 1}
    places |= {dim: 2 + i for i, dim in enumerate(labels.output_spatial)}
    return [places[dim] for dim in range(len(places))]


@dataclass(frozen=True, slots=True)
class CanonicalConvolution:
    """Convolution of arrays in canonical order.

    Attributes:
        dims: the window.
        feature_groups: parts of the input features, each of which has its own kernel.
        batch_groups: parts of the input batch, each of which has its own kernel.
        multiply: multiplies patches with weights.
    """

    dims: tuple[WindowDim, ...]
    feature_groups: int
    batch_groups: int
    multiply: Multiply = multiply_matrices

    def __call__(self, image: Array, weights: Array) -> Array:
        """[batch, features, spatial…] with [outputs, features per group, window…].

        Returns:
            [batch, outputs, spatial…].
        """
        if (own := foreign(image)) is not None:
            result: Array = own.convolved(weights, self._of_floats)
            return result
        return self._of_floats(image, weights)

    def _of_floats(self, image: Array, weights: Array) -> Array:
        groups = max(self.feature_groups, self.batch_groups)
        reversed_axes = tuple(2 + i for i, d in enumerate(self.dims) if d.reversal)
        weights = np.flip(weights, reversed_axes)
        outputs, features, *window = weights.shape
        matrices = weights.reshape((groups, outputs // groups, features, prod(window)))
        kernel = np.ascontiguousarray(matrices.transpose((0, 3, 2, 1)))
        grouped = self._grouped(image, groups)
        spatial = output_sizes(self.dims, image.shape[2:])
        result = np.zeros((groups, grouped.shape[1], prod(spatial), outputs // groups), image.dtype)
        if self._is_sparse(grouped.shape[3:], spatial):
            self._spread(grouped, kernel, spatial, result)
            return self._merged(result, spatial)
        inner = prod(spatial[1:])
        sight = Sight(self.dims, grouped.shape[3:], spatial)

        def convolve(tile: _Tile) -> None:
            batch, rows = tile
            positions = slice(rows.start * inner, rows.stop * inner)
            result[:, batch, positions] = self._convolve(grouped[:, batch], kernel, sight, rows)

        each(convolve, list(self._tiles(grouped, spatial)))
        return self._merged(result, spatial)

    def _is_sparse(self, sizes: Sequence[int], spatial: Sequence[int]) -> bool:
        """Whether windows see little but holes and padding."""
        if any(d.base_dilation > 1 for d in self.dims):
            return True
        return prod(spatial) >= _MOSTLY_PADDING * prod(sizes) and prod(sizes) > 0

    def _spread(self, grouped: Array, kernel: Array, spatial: Sequence[int], result: Array) -> None:
        whole = result.reshape((*result.shape[:2], *spatial, result.shape[-1]))

        def convolve(batch: slice) -> None:
            spread_products(grouped[:, batch], kernel, self.dims, whole[:, batch], _PATCH_ELEMENTS)

        each(convolve, list(spans(grouped.shape[1], _MOST_BATCHES)))

    def _merged(self, result: Array, spatial: Sequence[int]) -> Array:
        """[batch, outputs, spatial…] of [groups, batch, positions, outputs per group]."""
        groups, batch, _, outputs = result.shape
        return result.transpose((1, 0, 3, 2)).reshape((batch, groups * outputs, *spatial))

    def _grouped(self, image: Array, groups: int) -> Array:
        """[groups, batch per group, features per group, spatial…]."""
        batch, features, *spatial = image.shape
        if self.batch_groups > 1:
            return image.reshape((groups, batch // groups, features, *spatial))
        parts = image.reshape((batch, groups, features // groups, *spatial))
        return np.moveaxis(parts, 1, 0)

    def _tiles(self, grouped: Array, spatial: Sequence[int]) -> Iterator[_Tile]:
        """Parts of the batch, or of the first spatial dimension, whose patches fit into memory together."""
        groups, batch, features = grouped.shape[:3]
        height = spatial[0] if spatial else 1
        row = groups * features * prod(spatial[1:]) * prod(d.size for d in self.dims)
        images = max(1, _PATCH_ELEMENTS // max(1, row * height))
        rows = max(1, min(height, _PATCH_ELEMENTS // max(1, row)))
        for start in range(0, batch, images):
            for top in range(0, height, rows):
                yield slice(start, start + images), slice(top, min(height, top + rows))

    def _convolve(self, image: Array, kernel: Array, sight: Sight, rows: slice) -> Array:
        """[groups, batch, spatial, outputs per group] of some rows; large windows in several parts.

        Args:
            kernel: [groups, window positions, features, outputs per group].
        """
        batch, outputs = image.shape[1], kernel.shape[-1]
        spatial = (rows.stop - rows.start, *sight.spatial[1:]) if sight.spatial else ()
        total: Array = np.zeros((kernel.shape[0], batch, prod(spatial), outputs), image.dtype)
        is_large = kernel.shape[1] > batch * prod(spatial) > 0
        parts = self._dense_parts if is_large else self._parts
        for seen, weights in parts(image, kernel, sight, rows):
            total += self.multiply(seen, weights).reshape(total.shape)
        return total

    def _parts(self, image: Array, kernel: Array, sight: Sight, rows: slice) -> Iterator[_Factors]:
        """Some positions of the window after the other, each with all results."""
        groups, batch, features = image.shape[:3]
        spatial = (rows.stop - rows.start, *sight.spatial[1:]) if sight.spatial else ()
        entries = list(sight.of_rows(rows))
        step = max(1, _PATCH_ELEMENTS // max(1, groups * batch * features * prod(spatial)))
        for start in range(0, len(entries), step):
            part = entries[start : start + step]
            yield patches(image, part, spatial), self._matrix(kernel, part)

    def _dense_parts(self, image: Array, kernel: Array, sight: Sight, rows: slice) -> Iterator[_Factors]:
        """The same for windows of more positions than there are results: whole rows of the window."""
        views = dense_patches(image, self.dims, rows, sight.spatial)
        groups, features, outputs = kernel.shape[0], kernel.shape[2], kernel.shape[3]
        first, *others = (d.size for d in self.dims)
        before = (slice(None),) * (2 + len(self.dims))
        step = max(1, _PATCH_ELEMENTS * first // views.size)
        for start in range(0, first, step):
            stop = min(first, start + step)
            terms = (stop - start) * prod(others) * features
            weights = kernel[:, start * prod(others) : stop * prod(others)]
            seen = views[(*before, slice(start, stop))].reshape((groups, -1, terms))
            yield seen, weights.reshape((groups, terms, outputs))

    def _matrix(self, kernel: Array, part: Sequence[Entry]) -> Array:
        """[groups, window positions and features, outputs] of the positions in `part`."""
        groups, _, features, outputs = kernel.shape
        window = [d.size for d in self.dims]
        numbers = [int(np.ravel_multi_index(position, window)) if window else 0 for position, _, _ in part]
        in_a_row = numbers[-1] - numbers[0] + 1 == len(numbers)
        chosen = kernel[:, numbers[0] : numbers[-1] + 1] if in_a_row else kernel[:, numbers]
        return chosen.reshape((groups, len(part) * features, outputs))


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
