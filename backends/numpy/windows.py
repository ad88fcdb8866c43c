"""Windows of arrays: as strided slices, as rows of patches, at positions that an index array names.

A convolution may also go from each element of the image to the results that see it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import gcd, prod

import numpy as np
from msgspec.structs import replace

from hlotool.backends.numpy.contraction import multiply_matrices
from hlotool.ir.arrays import Array
from hlotool.ir.attributes import WindowDim

Slices = tuple[slice, ...]

#: Position in the window, output slice and input slice of one dimension.
AxisSlices = tuple[int, slice, slice]


def output_size(dim: WindowDim, input_size: int) -> int:
    """Number of window positions along a dimension of `input_size` elements."""
    dilated = (input_size - 1) * dim.base_dilation + 1 if input_size else 0
    room = dim.pad_low + dilated + dim.pad_high - dim.dilated_size
    return 0 if room < 0 or not dim.size else room // dim.stride + 1


def output_sizes(dims: Sequence[WindowDim], input_sizes: Sequence[int]) -> tuple[int, ...]:
    """`output_size` of every dimension."""
    return tuple(output_size(d, n) for d, n in zip(dims, input_sizes))


def window_slices(
    dims: Sequence[WindowDim], input_sizes: Sequence[int], output_sizes: Sequence[int]
) -> Iterator[tuple[tuple[int, ...], Slices, Slices]]:
    """(position in the window, output slices, input slices), in row-major order of the positions.

    Positions that no output sees are left out.
    """
    return combined([list(axis_slices(d, n, m)) for d, n, m in zip(dims, input_sizes, output_sizes)])


def combined(axes: Sequence[Sequence[AxisSlices]]) -> Iterator[tuple[tuple[int, ...], Slices, Slices]]:
    """`window_slices` from what each dimension has."""
    for parts in product(*axes):
        yield tuple(p[0] for p in parts), tuple(p[1] for p in parts), tuple(p[2] for p in parts)


def axis_slices(dim: WindowDim, input_size: int, output_size: int) -> Iterator[AxisSlices]:
    """`window_slices` of one dimension.

    Output o sees input (o · stride + position · dilation - padding) / base dilation.
    """
    common = gcd(dim.stride, dim.base_dilation)
    step = dim.base_dilation // common
    for position in range(dim.size):
        shift = position * dim.window_dilation - dim.pad_low
        if shift % common:
            continue
        residue = -shift // common * pow(dim.stride // common, -1, step) % step if step > 1 else 0
        first = max(0, -(shift // dim.stride))
        first += (residue - first) % step
        last = min(output_size - 1, ((input_size - 1) * dim.base_dilation - shift) // dim.stride)
        if input_size == 0 or first > last:
            continue
        count = (last - first) // step + 1
        start = (first * dim.stride + shift) // dim.base_dilation
        input_step = step * dim.stride // dim.base_dilation
        outputs = slice(first, first + (count - 1) * step + 1, step)
        yield position, outputs, slice(start, start + (count - 1) * input_step + 1, input_step)


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


@dataclass(frozen=True, slots=True)
class IndexWindows:
    """Where the windows start.

    Attributes:
        index_vector_dim: dimension of the index array that holds the components of one start; its rank for
            index arrays of single components.
        start_map: operand dimension of each component.
        batching: pairs of operand dimension and index array dimension: the start is the position along the
            latter.
    """

    index_vector_dim: int
    start_map: tuple[int, ...]
    batching: tuple[tuple[int, int], ...] = ()

    def starts(self, indices: Array) -> dict[int, Array]:
        """Start along each operand dimension that has one (all others start at 0).

        The arrays are int64 and broadcast to the batch dimensions: those of `indices` without the vector's.
        """
        return {d: as_int64(start) for d, start in self.given(indices).items()}

    def given(self, indices: Array) -> dict[int, Array]:
        """The same in the type that `indices` have."""
        rank = indices.ndim - (self.index_vector_dim < indices.ndim)
        components = [indices] if self.index_vector_dim == indices.ndim else self._components(indices)
        starts = dict(zip(self.start_map, components))
        for operand_dim, index_dim in self.batching:
            axis = index_dim - (index_dim > self.index_vector_dim)
            along = [-1 if a == axis else 1 for a in range(rank)]
            starts[operand_dim] = np.arange(indices.shape[index_dim]).reshape(along)
        return starts

    def batch_shape(self, indices: Array) -> tuple[int, ...]:
        """Dimensions of `indices` without the vector's."""
        return tuple(n for d, n in enumerate(indices.shape) if d != self.index_vector_dim)

    def _components(self, indices: Array) -> list[Array]:
        return list(np.moveaxis(indices, self.index_vector_dim, 0))


def as_int64(indices: Array) -> Array:
    """Indices of any integer type; u64 beyond the range of s64 stays out of every bound."""
    if indices.dtype == np.uint64:
        indices = np.minimum(indices, np.uint64(np.iinfo(np.int64).max))
    return indices.astype(np.int64)


def clamped(indices: Array, last: int) -> Array:
    """Indices of any integer type as s64, moved into [0, `last`]."""
    has_bits = indices.size and indices.dtype.kind in "iu"
    # A negative number is a large one of the unsigned type.
    if has_bits and indices.view(f"u{indices.dtype.itemsize}").max() <= last:
        return indices.astype(np.int64, copy=False)
    return np.clip(as_int64(indices), 0, last)


@dataclass(frozen=True, slots=True)
class Rows:
    """An array seen as a list of rows: the dimensions that every window takes whole, if they come last.

    Attributes:
        leading: sizes of the dimensions before them.
        row: number of elements of one row.
    """

    leading: tuple[int, ...]
    row: int

    def positions(
        self, starts: dict[int, Array], window: Sequence[int], batch_shape: tuple[int, ...]
    ) -> Array:
        """Row numbers that the windows cover, of shape [batch…, leading window sizes…]."""
        count = len(self.leading)
        shape = (*batch_shape, *window[:count])
        result: Array | None = None
        for dim in range(count):
            stride = prod(self.leading[dim + 1 :])
            if window[dim] > 1:
                along = [-1 if axis == len(batch_shape) + dim else 1 for axis in range(len(shape))]
                result = _sum(result, (np.arange(window[dim]) * stride).reshape(along))
            if dim in starts:
                start = starts[dim] if stride == 1 else starts[dim] * stride
                result = _sum(result, start.reshape((*start.shape, *(1,) * count)))
        return np.broadcast_to(np.int64(0) if result is None else result, shape)


def _sum(result: Array | None, more: Array) -> Array:
    return more if result is None else result + more


def rows(sizes: Sequence[int], window: Sequence[int], started: Sequence[int]) -> Rows:
    """Split `sizes` where the windows take the rest whole.

    Args:
        sizes: of the array.
        window: sizes of the windows.
        started: dimensions along which windows start elsewhere than at 0.
    """
    split = len(sizes)
    while split and window[split - 1] == sizes[split - 1] and split - 1 not in started:
        split -= 1
    return Rows(tuple(sizes[:split]), prod(sizes[split:]))


_SPREAD_PRODUCTS_WHOLE = (slice(None),)


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
            result[_SPREAD_PRODUCTS_WHOLE * 2 + targets] += products[..., number, :][
                _SPREAD_PRODUCTS_WHOLE * 2 + sources
            ]


def _turned(dim: WindowDim, size: int) -> WindowDim:
    """What the elements of an image see of a window, both counted from their ends."""
    low = dim.pad_low - (dim.size - 1) * dim.window_dilation + (size - 1) * dim.base_dilation
    return replace(
        dim, size=size, pad_low=low, window_dilation=dim.base_dilation, base_dilation=dim.window_dilation
    )
