"""Arrays in the order of their layout: what `bitcast` reinterprets.

XLA: docs/layouts.md, docs/tiled_layout.md.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hlotool.backends.numpy.patterns import reinterpret
from hlotool.ir.dtypes import Array
from hlotool.ir.types import COMBINE, ArrayShape


def bitcaster(source: ArrayShape, target: ArrayShape) -> Callable[[Array], Array]:
    """The function that reads the buffer of a `source` array as a `target` array.

    In a buffer of tiles the target may have fewer elements: TPU programs cut off what fills up tiles.

    Raises:
        ValueError: the two do not describe the same buffer, or tiles leave padding between elements.
    """
    if source.is_dynamic or target.is_dynamic:
        raise ValueError("an array of dynamic size")
    same_size = source.size * source.element_type.bits == target.size * target.element_type.bits
    if not same_size and not (_is_tiled(source) and _is_tiled(target) and target.size < source.size):
        raise ValueError(f"{source} and {target} have unequal sizes")
    if not same_size or not have_same_tiles(source, target):
        return _between_tiles(source, target)
    return _reinterpreter(source, target)


def _between_tiles(source: ArrayShape, target: ArrayShape) -> Callable[[Array], Array]:
    """Each element of the result is the one of the operand that lies at the same place in memory."""
    if source.element_type is not target.element_type:
        raise ValueError(f"layouts of {source} and {target} are tiled differently")
    before, after = _elements_in_memory(source), _elements_in_memory(target)
    places = np.flatnonzero(after >= 0)
    if places.max(initial=-1) >= len(before) or (before[places] < 0).any():
        raise ValueError(f"{target} has elements where {source} is padded")
    order = np.empty(target.size, np.int64)
    order[after[places]] = before[places]
    dims = target.dims
    return lambda x: x.reshape(-1)[order].reshape(dims)


def _elements_in_memory(shape: ArrayShape) -> Array:
    """Row-major number of the element at each place in memory, -1 where there is padding."""
    places = np.arange(shape.size).reshape(shape.dims).transpose(shape.minor_to_major[::-1])
    for tile in shape.layout.tiles if shape.layout else ():
        if COMBINE in tile:
            raise ValueError(f"the tiles of {shape}")
        # A scalar fills a tile, too.
        places = places.reshape((*[1] * (len(tile) - places.ndim), *places.shape))
        outer = places.shape[: places.ndim - len(tile)]
        inner = list(zip(places.shape[len(outer) :], tile))
        padding = [(0, 0)] * len(outer) + [(0, -size % extent) for size, extent in inner]
        padded = np.pad(places, padding, constant_values=-1)
        split = [n for size, extent in inner for n in (-(-size // extent), extent)]
        axes = [len(outer) + 2 * i + part for part in (0, 1) for i in range(len(tile))]
        places = padded.reshape((*outer, *split)).transpose([*range(len(outer)), *axes])
    return places.reshape(-1)


def _is_tiled(shape: ArrayShape) -> bool:
    return shape.layout is not None and bool(shape.layout.tiles)


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
