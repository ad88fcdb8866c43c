"""Gradients of a convolution with respect to its input and its kernel, each as another convolution.

Arrays are in canonical order, as for `CanonicalConvolution`: images [batch, features, spatial…], kernels
[outputs, features per group, window…]. The window is that of the forward convolution, without base dilation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hlotool.backends.numpy.kernels.convolution import CanonicalConvolution
from hlotool.ir.attributes import WindowDim
from hlotool.ir.dtypes import Array


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
