"""The gradient of pooling: each window selects one element, and that element receives an update."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import EllipsisType

import numpy as np

from hlotool.backends.numpy.combining import combiner
from hlotool.backends.numpy.lanes import Lanes, lanes
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.registry import Kernel, lowers
from hlotool.backends.numpy.window_slices import window_slices
from hlotool.ir.attributes import WindowDim
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Instruction

#: Elements of the operand that are worked on together.
_PART_ELEMENTS = 1 << 16


@lowers("select-and-scatter")
def select_and_scatter(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Scatter `source` to the selected element of each window of `operand`; `init` is everywhere else.

    `select(selected, candidate)` keeps the selected element where it is true, so GE keeps the first maximum
    and GT takes the last. `scatter(current, source)` then combines, in row-major order of the windows. A
    window that lies completely in the padding selects nothing.

    The order of scatter's arguments is that of XLA's CPU compiler; its evaluator passes (source, current).

    XLA's fusion emitters on CPU visit those elements of a window last that may lie in the padding of some
    window, so they may select another one of several equal elements (as in 3x3 pooling with padding on one
    side only); with --xla_cpu_use_fusion_emitters=false they keep to row-major order.

    XLA: operation_semantics.md#selectandscatter.
    """
    dims = instruction.window.dims
    select = lanes(instruction.computation("select"), lowering)
    scatter = lanes(instruction.computation("scatter"), lowering)
    combine = combiner(scatter)

    def kernel(operand: Array, source: Array, init: Array) -> Array:
        windows = dims or [WindowDim(1)] * operand.ndim
        result = np.full(operand.shape, init, operand.dtype)
        for part in _parts(operand, windows):
            sources = source[part]
            selected = _selected(select, operand[part], sources.shape, windows)
            hit = selected >= 0
            combine([result[part].reshape((-1, 1))], selected[hit], [sources[hit].reshape((-1, 1))])
        return result

    return kernel


def _parts(operand: Array, dims: Sequence[WindowDim]) -> Iterator[tuple[slice | EllipsisType, ...]]:
    """Parts of the first dimension that no window spans, in order; of other arrays the whole.

    All of them are views: an array of rank 0, indexed by nothing, would be copied.
    """
    if not dims or dims[0] != WindowDim(1) or operand.size <= _PART_ELEMENTS:
        yield (...,)
        return
    step = max(1, _PART_ELEMENTS // (operand.size // len(operand)))
    for start in range(0, len(operand), step):
        yield (slice(start, start + step),)


def _selected(
    select: Lanes, operand: Array, source_sizes: tuple[int, ...], dims: Sequence[WindowDim]
) -> Array:
    """Row-major number of the operand element that each window selects, -1 for none."""
    numbers = np.arange(operand.size).reshape(operand.shape)
    selected = np.full(source_sizes, -1, np.int64)
    values = np.zeros(source_sizes, operand.dtype)
    for _, outputs, elements in window_slices(dims, operand.shape, source_sizes):
        candidates = operand[elements]
        (keep,) = select(values[outputs], candidates)
        switch = ~(keep & (selected[outputs] >= 0))
        values[outputs] = np.where(switch, candidates, values[outputs])
        selected[outputs] = np.where(switch, numbers[elements], selected[outputs])
    return selected
