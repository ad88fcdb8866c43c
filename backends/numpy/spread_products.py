"""Convolution by what each element of the image adds to the results that see it.

The products of all elements with all positions of the window are made at once; those that belong to one
position lie in the result as a strided slice. Nothing is multiplied that no window sees, neither the holes of
a dilated image nor padding, so that an infinite weight on them adds nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
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
