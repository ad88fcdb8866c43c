"""Convolutions by libraries: forward, and the gradients with respect to input and kernel.

The window and the labels of a call describe the forward convolution, whichever of its three arrays the call
computes. A dimension without label (`?`) holds neighbouring features, as NCHW_VECT_C layouts do.

XLA: service/gpu/gpu_conv_runner.cc, service/gpu/transforms/conv_rewriter.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from hlotool.backends.numpy.contraction import operand_dtype, widened
from hlotool.backends.numpy.convolution_gradients import input_gradient, kernel_gradient
from hlotool.backends.numpy.kernels.convolution import CanonicalConvolution
from hlotool.backends.numpy.library_results import result_shapes
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.shapes import attribute, element_types
from hlotool.ir.attributes import ConvolutionDimensions, Window, WindowDim
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Instruction


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Where the dimensions of an array stand.

    Attributes:
        first: batch of an image, output feature of a kernel.
        features: feature dimension, then those that hold parts of features.
        spatial: in order.
    """

    first: int
    features: tuple[int, ...]
    spatial: tuple[int, ...]

    @property
    def order(self) -> tuple[int, ...]:
        """All dimensions, in canonical order."""
        return (self.first, *self.features, *self.spatial)

    def canonical(self, value: Array) -> Array:
        """The array as [first, features, spatial…]."""
        moved = value.transpose(self.order)
        after = 1 + len(self.features)
        return moved.reshape((moved.shape[0], prod(moved.shape[1:after]), *moved.shape[after:]))

    def restored(self, value: Array, dims: Sequence[int]) -> Array:
        """A canonical array as one of dimensions `dims`."""
        return value.reshape([dims[d] for d in self.order]).transpose(np.argsort(self.order))

    def spatial_sizes(self, dims: Sequence[int]) -> tuple[int, ...]:
        """The spatial dimensions of an array of dimensions `dims`."""
        return tuple(dims[d] for d in self.spatial)


@dataclass(frozen=True, slots=True)
class ConvolutionCall:
    """One call of a library.

    Attributes:
        dims: window of the forward convolution.
        groups: parts of the features, each of which has its own kernel.
        arrangements: of both operands and the result.
        result_dims: dimensions of the result.
        widen: the first two operands in the type of the computation.
    """

    dims: tuple[WindowDim, ...]
    groups: int
    arrangements: tuple[Arrangement, Arrangement, Arrangement]
    result_dims: tuple[int, ...]
    widen: Callable[[Array, Array], tuple[Array, Array]]

    def forward(self, image: Array, weights: Array) -> Array:
        """The output, not rounded."""
        convolve = CanonicalConvolution(self.dims, self.groups, 1)
        return self._restored(convolve(*self._operands(image, weights)))

    def backward_input(self, gradient: Array, weights: Array) -> Array:
        """The gradient of the input, not rounded."""
        left, right = self._operands(gradient, weights)
        return self._restored(input_gradient(self.dims, self.groups, left, right, self._sizes()))

    def backward_kernel(self, image: Array, gradient: Array) -> Array:
        """The gradient of the kernel, not rounded."""
        left, right = self._operands(image, gradient)
        return self._restored(kernel_gradient(self.dims, self.groups, left, right, self._sizes()))

    def spread_bias(self, bias: Array) -> Array:
        """One value per output feature, broadcastable against the result."""
        result = self.arrangements[2]
        dims = [size if d in result.features else 1 for d, size in enumerate(self.result_dims)]
        return result.restored(bias.reshape((1, -1, *([1] * len(result.spatial)))), dims)

    def _operands(self, left: Array, right: Array) -> tuple[Array, Array]:
        wide = self.widen(left, right)
        return self.arrangements[0].canonical(wide[0]), self.arrangements[1].canonical(wide[1])

    def _restored(self, value: Array) -> Array:
        return self.arrangements[2].restored(value, self.result_dims)

    def _sizes(self) -> tuple[int, ...]:
        return self.arrangements[2].spatial_sizes(self.result_dims)


def read_convolution(instruction: Instruction, lowering: Lowering, roles: str) -> ConvolutionCall:
    """The convolution that the attributes of a call describe.

    Args:
        instruction: the call.
        lowering: for errors.
        roles: what its operands and its result are: three of `i`(nput), `k`(ernel), `o`(utput).
    """
    labels = attribute(instruction, "dim_labels", ConvolutionDimensions, lowering)
    dims = attribute(instruction, "window", Window, lowering, Window(())).dims
    if any(dim.base_dilation != 1 for dim in dims):
        raise lowering.unsupported(instruction, "a library convolution with base dilation")
    arrangements = _arrangements(labels)
    first, second, result = (arrangements[role] for role in roles)
    shape = result_shapes(instruction, lowering)[0]
    lhs, rhs = element_types(instruction.operands[:2], lowering)
    dtype = np.dtype(np.int32) if lhs.is_integer else operand_dtype(shape.element_type, lhs, rhs)
    return ConvolutionCall(
        dims,
        attribute(instruction, "feature_group_count", int, lowering, 1),
        (first, second, result),
        shape.dims,
        lambda left, right: (widened(left, lhs, dtype), widened(right, rhs, dtype)),
    )


def _arrangements(labels: ConvolutionDimensions) -> dict[str, Arrangement]:
    return {
        "i": Arrangement(
            labels.input_batch, (labels.input_feature, *labels.input_unused), labels.input_spatial
        ),
        "k": Arrangement(
            labels.kernel_output_feature,
            (labels.kernel_input_feature, *labels.kernel_unused),
            labels.kernel_spatial,
        ),
        "o": Arrangement(
            labels.output_batch, (labels.output_feature, *labels.output_unused), labels.output_spatial
        ),
    }
