"""Dots and convolutions in the open: every zero written out, terms seen one by one.

Zeros stand in holes, in padding and between the groups of a grouped convolution; a product of matrices of
NumPy's hides single terms.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from hlotool.backends.numpy.kernels.convolution import convolver
from hlotool.ir.arrays import Array
from hlotool.ir.attributes import ConvolutionDimensions, Window, WindowDim
from hlotool.ir.module import Instruction


def has_groups(instruction: Instruction) -> bool:
    """Whether a convolution has groups of features."""
    return instruction.integer("feature_group_count", 1) > 1


def has_holes(instruction: Instruction) -> bool:
    """Whether its operands have holes or are padded, and nothing is cut off."""
    dims = instruction.window.dims
    is_filled = any((d.base_dilation, d.window_dilation, d.pad_low, d.pad_high) != (1, 1, 0, 0) for d in dims)
    return is_filled and all(d.pad_low >= 0 and d.pad_high >= 0 for d in dims)


def without_groups(instruction: Instruction) -> Callable[[Array, Array], Array]:
    """The convolution as a dense one, whose weights are 0 between groups."""
    labels = instruction.attribute("dim_labels", ConvolutionDimensions)
    groups = instruction.integer("feature_group_count", 1)
    plain = {k: v for k, v in instruction.attributes.items() if k != "feature_group_count"}
    convolve = convolver(replace(instruction, attributes=plain))
    inputs, outputs = labels.kernel_input_feature, labels.kernel_output_feature

    def kernel(lhs: Array, rhs: Array) -> Array:
        per_input, per_output = rhs.shape[inputs], rhs.shape[outputs] // groups
        dims = list(rhs.shape)
        dims[inputs] *= groups
        dense = np.zeros(dims, rhs.dtype)
        for group in range(groups):
            here: list[Any] = [slice(None)] * rhs.ndim
            here[outputs] = slice(group * per_output, (group + 1) * per_output)
            there = list(here)
            there[inputs] = slice(group * per_input, (group + 1) * per_input)
            dense[tuple(there)] = rhs[tuple(here)]
        return convolve(lhs, dense)

    return kernel


def without_holes(instruction: Instruction) -> Callable[[Array, Array], Array]:
    """The convolution of operands that are filled with zeros where the window says holes and padding."""
    labels = instruction.attribute("dim_labels", ConvolutionDimensions)
    dims = instruction.window.dims
    filled = Window(tuple(WindowDim(d.dilated_size, d.stride, reversal=d.reversal) for d in dims))
    convolve = convolver(replace(instruction, attributes={**instruction.attributes, "window": filled}))

    def kernel(lhs: Array, rhs: Array) -> Array:
        for window, image, weights in zip(dims, labels.input_spatial, labels.kernel_spatial):
            lhs = _filled(lhs, image, window.base_dilation, (window.pad_low, window.pad_high))
            rhs = _filled(rhs, weights, window.window_dilation, (0, 0))
        return convolve(lhs, rhs)

    return kernel


def _filled(x: Array, axis: int, dilation: int, padding: tuple[int, int]) -> Array:
    size = x.shape[axis]
    dims = list(x.shape)
    dims[axis] = max(0, (size - 1) * dilation + 1) + sum(padding)
    result = np.zeros(dims, x.dtype)
    here: list[Any] = [slice(None)] * x.ndim
    here[axis] = slice(padding[0], padding[0] + max(0, (size - 1) * dilation + 1), dilation)
    result[tuple(here)] = x
    return result
