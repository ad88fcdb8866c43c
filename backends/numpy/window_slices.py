"""Sliding windows as strided slices, one pair of slices per position inside the window.

For a fixed position in the window, the elements that all output positions see there form a strided slice of
the input, and the output positions that see an element at all (and not padding, nor a hole of the base
dilation) form a strided slice of the output.

XLA: window_util.h, hlo_evaluator.cc (IterateThroughWindow).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import gcd

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
