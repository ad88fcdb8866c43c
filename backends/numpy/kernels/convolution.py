"""Convolution with every parameter HLO knows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from hlotool.backends.numpy.contraction import multiply_matrices, operand_dtype, rounded, widened
from hlotool.backends.numpy.foreign import foreign
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.registry import Kernel, lowers
from hlotool.backends.numpy.threads import each
from hlotool.backends.numpy.window_slices import AxisSlices, Slices, axis_slices, combined, output_sizes
from hlotool.ir.attributes import ConvolutionDimensions, WindowDim
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Instruction

_WHOLE: Slices = (slice(None),)

#: A position in the window, the outputs that see an element there, and those elements.
_Entry = tuple[tuple[int, ...], Slices, Slices]

#: Some of the batch, and rows of the result: indices of its first spatial dimension.
_Tile = tuple[slice, slice]

#: Elements of a matrix of patches; each thread holds one.
_PATCH_ELEMENTS = 1 << 19


@lowers("convolution")
def convolution(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Cross-correlation of the input with a kernel (mirrored only where the window says so).

    Computed as products of a matrix of patches with the kernel; padding and holes count as 0. Types as for
    dot (see `contraction`): integers wrap, where XLA's evaluator saturates s8 and its CPU code wraps.

    XLA: operation_semantics.md#convwithgeneralpadding.
    """
    if "sparsity_config" in instruction.attributes:
        raise lowering.unsupported(instruction, "convolution with sparse operands")
    labels = instruction.attribute("dim_labels", ConvolutionDimensions)
    convolve = CanonicalConvolution(
        instruction.window.dims,
        instruction.integer("feature_group_count", 1),
        instruction.integer("batch_group_count", 1),
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
    """

    dims: tuple[WindowDim, ...]
    feature_groups: int
    batch_groups: int

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
        result = np.empty((groups, grouped.shape[1], prod(spatial), outputs // groups), image.dtype)
        inner = prod(spatial[1:])
        sight = _Sight(self.dims, grouped.shape[3:], spatial)

        def convolve(tile: _Tile) -> None:
            batch, rows = tile
            positions = slice(rows.start * inner, rows.stop * inner)
            result[:, batch, positions] = self._convolve(grouped[:, batch], kernel, sight, rows)

        each(convolve, list(self._tiles(grouped, spatial)))
        merged = result.transpose((1, 0, 3, 2))
        return merged.reshape((grouped.shape[1], outputs, *spatial))

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

    def _convolve(self, image: Array, kernel: Array, sight: _Sight, rows: slice) -> Array:
        """[groups, batch, spatial, outputs per group] of some rows; large windows in several parts.

        Args:
            kernel: [groups, window positions, features, outputs per group].
        """
        groups, batch, features = image.shape[:3]
        entries = list(sight.of_rows(rows))
        spatial = (rows.stop - rows.start, *sight.spatial[1:]) if sight.spatial else ()
        total: Array = np.zeros((groups, batch, prod(spatial), kernel.shape[-1]), image.dtype)
        step = max(1, _PATCH_ELEMENTS // max(1, groups * batch * features * prod(spatial)))
        for start in range(0, len(entries), step):
            part = entries[start : start + step]
            product = multiply_matrices(_patches(image, part, spatial), self._matrix(kernel, part))
            total += product.reshape(total.shape)
        return total

    def _matrix(self, kernel: Array, part: Sequence[_Entry]) -> Array:
        """[groups, window positions and features, outputs] of the positions in `part`."""
        groups, _, features, outputs = kernel.shape
        window = [d.size for d in self.dims]
        numbers = [int(np.ravel_multi_index(position, window)) if window else 0 for position, _, _ in part]
        in_a_row = numbers[-1] - numbers[0] + 1 == len(numbers)
        chosen = kernel[:, numbers[0] : numbers[-1] + 1] if in_a_row else kernel[:, numbers]
        return chosen.reshape((groups, len(part) * features, outputs))


class _Sight:
    """What the positions of a window see.

    Args:
        dims: the window.
        sizes: of the image.

    Attributes:
        spatial: sizes of the result.
    """

    def __init__(self, dims: Sequence[WindowDim], sizes: Sequence[int], spatial: tuple[int, ...]) -> None:
        self.spatial = spatial
        self._axes = [list(axis_slices(d, n, m)) for d, n, m in zip(dims, sizes, spatial)]
        outputs = [o for _, o, _ in self._axes[0]] if spatial else []
        self._first, self._stop = (
            np.array(limits, np.int64) for limits in ([o.start for o in outputs], [o.stop for o in outputs])
        )

    def of_rows(self, rows: slice) -> Iterator[_Entry]:
        """What they see from some rows of the result, which are counted from the first of them."""
        if not self.spatial:
            return combined([])
        # Windows may be much larger than what a few rows see of the image.
        near = np.flatnonzero((self._first < rows.stop) & (self._stop > rows.start))
        seen = [_in_rows(self._axes[0][number], rows) for number in near]
        return combined([[part for part in seen if part is not None], *self._axes[1:]])


def _in_rows(part: AxisSlices, rows: slice) -> AxisSlices | None:
    """What of the first dimension belongs to some rows of the result, counted from the first of them."""
    position, outputs, elements = part
    step = outputs.step
    first = max(0, -((outputs.start - rows.start) // step))
    last = min(len(range(outputs.start, outputs.stop, step)) - 1, (rows.stop - 1 - outputs.start) // step)
    if first > last:
        return None
    top, start = outputs.start + first * step - rows.start, elements.start + first * elements.step
    here = slice(top, top + (last - first) * step + 1, step)
    there = slice(start, start + (last - first) * elements.step + 1, elements.step)
    return position, here, there


def _patches(image: Array, part: Sequence[_Entry], spatial: tuple[int, ...]) -> Array:
    """[groups, batch and result positions, window positions and features]: what each position sees."""
    groups, batch, features = image.shape[:3]
    patches = np.zeros((groups, batch, *spatial, len(part), features), image.dtype)
    for number, (_, outputs, elements) in enumerate(part):
        seen = np.moveaxis(image[_WHOLE * 3 + elements], 2, -1)
        patches[..., number, :][_WHOLE * 2 + outputs] = seen
    return patches.reshape((groups, batch * prod(spatial), len(part) * features))
