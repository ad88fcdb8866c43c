"""Patches: what every position of a sliding window sees of an image, as the rows of a matrix.

Padding counts as 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

import numpy as np

from hlotool.backends.numpy.window_slices import AxisSlices, Slices, axis_slices, combined
from hlotool.ir.attributes import WindowDim
from hlotool.ir.dtypes import Array

_WHOLE: Slices = (slice(None),)

#: A position in the window, the outputs that see an element there, and those elements.
Entry = tuple[tuple[int, ...], Slices, Slices]


class Sight:
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

    def of_rows(self, rows: slice) -> Iterator[Entry]:
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


def patches(image: Array, part: Sequence[Entry], spatial: tuple[int, ...]) -> Array:
    """[groups, batch and result positions, window positions and features]: what each position sees."""
    groups, batch, features = image.shape[:3]
    matrix = np.zeros((groups, batch, *spatial, len(part), features), image.dtype)
    for number, (_, outputs, elements) in enumerate(part):
        seen = np.moveaxis(image[_WHOLE * 3 + elements], 2, -1)
        matrix[..., number, :][_WHOLE * 2 + outputs] = seen
    return matrix.reshape((groups, batch * prod(spatial), len(part) * features))


def dense_patches(image: Array, dims: Sequence[WindowDim], rows: slice, outputs: Sequence[int]) -> Array:
    """All patches of some rows of the result as one view of what they see: quick where windows are large.

    Args:
        image: [groups, batch, features, spatial…], not dilated.
        dims: the window.
        rows: of the first spatial dimension of the result.
        outputs: sizes of the result.

    Returns:
        [groups, batch, results…, window…, features], not to be written to.
    """
    firsts = [rows.start, *(0 for _ in outputs[1:])]
    counts = [rows.stop - rows.start, *outputs[1:]]
    starts = [first * d.stride - d.pad_low for first, d in zip(firsts, dims)]
    extents = [(count - 1) * d.stride + d.dilated_size for count, d in zip(counts, dims)]
    seen = np.zeros((*image.shape[:3], *extents), image.dtype)
    spans = [
        (max(start, 0), min(start + extent, size), start)
        for start, extent, size in zip(starts, extents, image.shape[3:])
    ]
    if all(low < high for low, high, _ in spans):
        there = tuple(slice(low - start, high - start) for low, high, start in spans)
        seen[_WHOLE * 3 + there] = image[_WHOLE * 3 + tuple(slice(low, high) for low, high, _ in spans)]
    groups, batch, features, *spatial = seen.strides
    return np.lib.stride_tricks.as_strided(
        seen,
        (*seen.shape[:2], *counts, *(d.size for d in dims), seen.shape[2]),
        (
            groups,
            batch,
            *(step * d.stride for step, d in zip(spatial, dims)),
            *(step * d.window_dilation for step, d in zip(spatial, dims)),
            features,
        ),
        writeable=False,
    )
