"""Convolutions by libraries: forward, and the gradients with respect to input and kernel.

The window and the labels of a call describe the forward convolution, whichever of its three arrays the call
computes. A dimension without label holds neighbouring features, as in layouts NCHW_VECT_C.

XLA: service/gpu/gpu_conv_runner.cc, service/gpu/transforms/conv_rewriter.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from msgspec.structs import replace

from hlotool.backends.numpy.backend_configs import result_shapes
from hlotool.backends.numpy.contraction import operand_dtype, widened
from hlotool.backends.numpy.kernels.convolution import CanonicalConvolution
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.windows import output_sizes
from hlotool.ir.arrays import Array
from hlotool.ir.attributes import ConvolutionDimensions, WindowDim
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

    def feature_size(self, dims: Sequence[int]) -> int:
        """The number of features of an array of dimensions `dims`."""
        return prod(dims[d] for d in self.features)

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
    labels = instruction.attribute("dim_labels", ConvolutionDimensions)
    dims = instruction.window.dims
    if roles != "iko" and any(dim.base_dilation != 1 for dim in dims):
        raise lowering.unsupported(instruction, "a gradient of a convolution with base dilation")
    shapes = [o.array_shape for o in instruction.operands[:2]]
    shapes.append(result_shapes(instruction, lowering)[0])
    arrangements = [_arrangement(labels, role, s.rank) for role, s in zip(roles, shapes)]
    groups = instruction.integer("feature_group_count", 1)
    by_role = {role: (a, s.dims) for role, a, s in zip(roles, arrangements, shapes)}
    if not _fits(dims, groups, **by_role):
        raise lowering.unsupported(instruction, "a convolution whose shapes do not fit its window or groups")
    lhs, rhs, result = (s.element_type for s in shapes)
    # XLA:GPU hands integers of 64 bits to cuDNN, too, which has none; the text says what they are.
    whole = np.dtype(np.int64 if lhs.bits > 32 else np.int32)
    dtype = whole if lhs.is_integer else operand_dtype(result, lhs, rhs)
    return ConvolutionCall(
        dims,
        groups,
        (arrangements[0], arrangements[1], arrangements[2]),
        shapes[2].dims,
        lambda left, right: (widened(left, lhs, dtype), widened(right, rhs, dtype)),
    )


#: An arrangement and the dimensions of its array.
_Arranged = tuple[Arrangement, Sequence[int]]


def _fits(dims: tuple[WindowDim, ...], groups: int, i: _Arranged, k: _Arranged, o: _Arranged) -> bool:
    """Whether input, kernel and output belong to one convolution.

    XLA:GPU pads the output features of s8 to four, also where they are those of three groups.
    """
    spatial = [arrangement.spatial_sizes(sizes) for arrangement, sizes in (i, k, o)]
    read, per_group, made = (arrangement.feature_size(sizes) for arrangement, sizes in (i, k, o))
    window = tuple(d.size for d in dims)
    is_grouped = read == groups * per_group and made % groups == 0
    of_one_batch = i[1][i[0].first] == o[1][o[0].first]
    return spatial[1:] == [window, output_sizes(dims, spatial[0])] and is_grouped and of_one_batch


def _arrangement(labels: ConvolutionDimensions, role: str, rank: int) -> Arrangement:
    first, feature, spatial = {
        "i": (labels.input_batch, labels.input_feature, labels.input_spatial),
        "k": (labels.kernel_output_feature, labels.kernel_input_feature, labels.kernel_spatial),
        "o": (labels.output_batch, labels.output_feature, labels.output_spatial),
    }[role]
    unlabelled = sorted(set(range(rank)) - {first, feature, *spatial})
    return Arrangement(first, (feature, *unlabelled), spatial)


# Gradients of a convolution with respect to its input and its kernel, each as another convolution. Arrays are
# in canonical order, as for `CanonicalConvolution`: images [batch, features, spatial…], kernels [outputs,
# features per group, window…]. The window is that of the forward convolution, without base dilation.


def input_gradient(
    dims: Sequence[WindowDim], groups: int, gradient: Array, weights: Array, sizes: Sequence[int]
) -> Array:
    """From the gradient of the output to that of the input, whose spatial dimensions are `sizes`."""
    outputs, features, *window = weights.shape
    grouped = weights.reshape((groups, outputs // groups, features, *window))
    exchanged = grouped.swapaxes(1, 2).reshape((groups * features, outputs // groups, *window))
    backward = tuple(
        _input_window(dim, size, room) for dim, size, room in zip(dims, sizes, gradient.shape[2:])
    )
    return CanonicalConvolution(backward, groups, 1)(gradient, exchanged)


def _input_window(dim: WindowDim, input_size: int, output_size: int) -> WindowDim:
    """Every output spreads, mirrored, over the elements that it was computed from."""
    low = dim.dilated_size - 1 - dim.pad_low
    high = input_size + dim.pad_low - ((output_size - 1) * dim.stride + 1)
    return replace(
        dim, stride=1, base_dilation=dim.stride, pad_low=low, pad_high=high, reversal=not dim.reversal
    )


def kernel_gradient(
    dims: Sequence[WindowDim], groups: int, image: Array, gradient: Array, sizes: Sequence[int]
) -> Array:
    """From the input and the gradient of the output to that of the kernel, whose window has `sizes`."""
    backward = tuple(
        _kernel_window(dim, size, room, steps)
        for dim, size, room, steps in zip(dims, sizes, image.shape[2:], gradient.shape[2:])
    )
    convolve = CanonicalConvolution(backward, 1, groups)
    result = convolve(image.swapaxes(0, 1), gradient.swapaxes(0, 1)).swapaxes(0, 1)
    mirrored = tuple(2 + i for i, dim in enumerate(dims) if dim.reversal)
    return np.flip(result, mirrored)


def _kernel_window(dim: WindowDim, size: int, input_size: int, output_size: int) -> WindowDim:
    """The gradient slides over the input, one dilation of the kernel at a time."""
    reach = (output_size - 1) * dim.stride + 1
    high = (size - 1) * dim.window_dilation + reach - dim.pad_low - input_size
    return WindowDim(output_size, dim.window_dilation, dim.pad_low, high, window_dilation=dim.stride)
