"""pad: edges and gaps filled with a value, or edges cut off."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.registry import Kernel, lowers
from hlotool.ir.attributes import PaddingDim
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Instruction


@lowers("pad")
def pad(instruction: Instruction, lowering: Lowering) -> Kernel:
    """`interior` copies of the value between elements, `low` before, `high` behind.

    Negative `low` and `high` cut off what the interior padding has produced. XLA: operation_semantics.md#pad.
    """
    paddings = instruction.listed("padding", PaddingDim)
    operand = instruction.operands[0].array_shape
    if operand.is_dynamic:
        return lambda x, value: _Placement(x.shape, paddings)(x, value)
    return _Placement(operand.dims, paddings)


class _Placement:
    """Where the elements of an array of given dimensions go."""

    def __init__(self, dims: Sequence[int], paddings: Sequence[PaddingDim]) -> None:
        self.dims = tuple(_padded_size(size, p) for size, p in zip(dims, paddings))
        places = [_place(size, p, out) for size, p, out in zip(dims, paddings, self.dims)]
        self.source = tuple(source for source, _ in places)
        self.target = tuple(target for _, target in places)

    def __call__(self, x: Array, value: Array) -> Array:
        result = np.full(self.dims, value, x.dtype)
        result[self.target] = x[self.source]
        return result


def _padded_size(size: int, padding: PaddingDim) -> int:
    gaps = max(0, size - 1) * padding.interior
    return max(0, padding.low + size + gaps + padding.high)


def _place(size: int, padding: PaddingDim, out: int) -> tuple[slice, slice]:
    """Which elements survive in one dimension, and where they go."""
    step = padding.interior + 1
    first = -(min(0, padding.low) // step)
    last = min(size - 1, (out - 1 - padding.low) // step)
    if last < first:
        return slice(0, 0), slice(0, 0)
    start, stop = padding.low + first * step, padding.low + last * step + 1
    return slice(first, last + 1), slice(start, stop, step)
