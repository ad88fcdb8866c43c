"""Convolution by what each element of the image adds to the results that see it.

The products of all elements with all positions of the window are made at once; those that belong to one
position lie in the result as a strided slice. Nothing is multiplied that no window sees, neither the holes of
a dilated image nor padding, so that an infinite weight on them adds nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from hlotool.backends.numpy.contraction import multiply_matrices
from hlotool.backends.numpy.window_slices import window_slices
from hlotool.ir.attributes import WindowDim
from hlotool.ir.dtypes import Array

_WHOLE = (slice(None),)


def spread_products(image: Array, kernel: Array, dims: Sequence[WindowDim], result: Array, most: int) -> None:
    """Add the convolution to `result`.

    Args:
        image: [groups, batch, features, spatial…].
        kernel: [groups, window positions, features, outputs per group].
        dims: the window.
        result: [groups, batch, results…, outputs per group].
        most: products that may be held at a time, unless one position has more.
    """
    groups, batch, features, *sizes = image.shape
    outputs = kernel.shape[-1]
    if prod(sizes) < kernel.shape[1]:
        # Fewer elements than positions: the image is the window then, and the kernel what it slides over.
        windows = kernel.reshape((groups, *(d.size for d in dims), features, outputs))
        slid_over = np.moveaxis(np.flip(windows, tuple(range(1, 1 + len(dims)))), (-1, -2), (1, 2))
        elements = np.flip(image, tuple(range(3, image.ndim))).reshape((groups, batch, features, prod(sizes)))
        turned = [_turned(d, size) for d, size in zip(dims, sizes)]
        spread_products(slid_over, elements.transpose((0, 3, 2, 1)), turned, np.swapaxes(result, 1, -1), most)
        return
    elements = np.moveaxis(image, 2, -1).reshape((groups, batch * prod(sizes), features))
    window = [d.size for d in dims]
    entries = list(window_slices(dims, sizes, result.shape[2:-1]))
    step = max(1, most // max(1, elements.shape[0] * elements.shape[1] * outputs))
    for start in range(0, len(entries), step):
        part = entries[start : start + step]
        numbers = [int(np.ravel_multi_index(position, window)) for position, _, _ in part]
        weights = kernel[:, numbers].transpose((0, 2, 1, 3)).reshape((groups, features, len(part) * outputs))
        products = multiply_matrices(elements, weights).reshape((groups, batch, *sizes, len(part), outputs))
        for number, (_, targets, sources) in enumerate(part):
            result[_WHOLE * 2 + targets] += products[..., number, :][_WHOLE * 2 + sources]


def _turned(dim: WindowDim, size: int) -> WindowDim:
    """What the elements of an image see of a window, both counted from their ends."""
    low = dim.pad_low - (dim.size - 1) * dim.window_dilation + (size - 1) * dim.base_dilation
    return replace(
        dim, size=size, pad_low=low, window_dilation=dim.base_dilation, base_dilation=dim.window_dilation
    )
