"""Reductions in parts: long ones are cut into windows side by side, whose results are reduced in turn.

XLA for CPUs does so with windows of 32 and fills up the last one with what changes nothing
(tree_reduction_rewriter.cc). How long a window is makes no difference to the result, so it may be any
length that makes as many of them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from hlotool.ir.attributes import WindowDim

#: Shorter windows are those of a pooling, which mean what they are.
_SHORTEST: Final = 32


def is_in_parts(dim: WindowDim, given: int, made: int) -> bool:
    """Whether windows lie side by side over all of a dimension, and the padding is less than one of them.

    Args:
        dim: the window.
        given: size of the dimension.
        made: number of windows.
    """
    padding = dim.pad_low + dim.pad_high
    is_plain = dim.base_dilation == dim.window_dilation == 1 and min(dim.pad_low, dim.pad_high) >= 0
    is_tiled = dim.size == dim.stride >= _SHORTEST and given + padding == dim.size * made
    return is_plain and is_tiled and padding < dim.size


def part_window(dim: WindowDim, given: int, made: int) -> WindowDim:
    """The window over a dimension of another size that makes as many parts."""
    size = -(-given // made)
    padding = size * made - given
    low = padding // 2 if dim.pad_low else 0
    return replace(dim, size=size, stride=size, pad_low=low, pad_high=padding - low)
