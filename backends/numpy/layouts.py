"""Arrays in the order of their layout: what `bitcast` reinterprets.

XLA: docs/layouts.md, docs/tiled_layout.md.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hlotool.backends.numpy.patterns import reinterpret
from hlotool.ir.dtypes import Array
from hlotool.ir.types import ArrayShape


def bitcaster(source: ArrayShape, target: ArrayShape) -> Callable[[Array], Array]:
    """The function that reads the buffer of a `source` array as a `target` array.

    Raises:
        ValueError: the two do not describe the same buffer, or they are tiled unlike each other.
    """
    if source.is_dynamic or target.is_dynamic:
        raise ValueError("an array of dynamic size")
    if source.size * source.element_type.bits != target.size * target.element_type.bits:
        raise ValueError(f"{source} and {target} have unequal sizes")
    if not have_same_tiles(source, target):
        raise ValueError(f"layouts of {source} and {target} are tiled differently")
    return _reinterpreter(source, target)


def have_same_tiles(source: ArrayShape, target: ArrayShape) -> bool:
    """Whether tiles cut both buffers alike: none, or equal ones over equal dimensions (size 1 aside)."""
    tiles = [shape.layout.tiles if shape.layout else () for shape in (source, target)]
    if tiles == [(), ()]:
        return True
    extents = [[s.dims[d] for d in s.minor_to_major[::-1] if s.dims[d] != 1] for s in (source, target)]
    return tiles[0] == tiles[1] and extents[0] == extents[1] and source.element_type is target.element_type


def _reinterpreter(source: ArrayShape, target: ArrayShape) -> Callable[[Array], Array]:
    into_buffer = source.minor_to_major[::-1]
    order = target.minor_to_major[::-1]
    buffer_dims = tuple(target.dims[d] for d in order)
    out_of_buffer = tuple(int(i) for i in np.argsort(order))
    old, new = source.element_type, target.element_type
    if old is new:
        return lambda x: x.transpose(into_buffer).reshape(buffer_dims).transpose(out_of_buffer)

    def kernel(x: Array) -> Array:
        flat = reinterpret(x.transpose(into_buffer), old, new)
        return flat.reshape(buffer_dims).transpose(out_of_buffer)

    return kernel
