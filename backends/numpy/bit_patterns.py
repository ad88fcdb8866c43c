"""Arrays as bits, packed as XLA packs them, and in the order of their layout: what `bitcast` reinterprets."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hlotool.backends.numpy.integers import carrier, is_sub_byte, wrap
from hlotool.ir.arrays import Array, dtype_of
from hlotool.ir.types import COMBINE, ArrayShape, ElementType


def reinterpret(array: Array, source: ElementType, target: ElementType) -> Array:
    """The bits of `array`, of type `source`, as a flat array of `target`.

    Raises:
        ValueError: the bits do not make a whole number of elements.
    """
    if source.bits < 8 and target.bits < 8:
        # Not by way of bytes: the elements need not fill the last one.
        return _from_low_bits(_regrouped(_low_bits(array, source).ravel(), source.bits, target.bits), target)
    raw = _to_bytes(array, source)
    return _from_bytes(raw, target)


def _to_bytes(array: Array, source: ElementType) -> Array:
    if source.bits >= 8:
        return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return _regrouped(_low_bits(array, source).ravel(), source.bits, 8)


def _from_bytes(raw: Array, target: ElementType) -> Array:
    if target is ElementType.PRED:
        return np.not_equal(raw, 0)
    if target.bits >= 8:
        # ml_dtypes reads the bits above the value of f6, too.
        meant = raw if target.value_bits >= 8 else np.bitwise_and(raw, (1 << target.value_bits) - 1)
        return meant.view(dtype_of(target))
    return _from_low_bits(_regrouped(raw, 8, target.bits), target)


def _regrouped(low: Array, old: int, new: int) -> Array:
    """Bytes that hold `old` bits each as bytes that hold `new` bits each, lowest bits first."""
    shifts = np.arange(0, max(old, new), min(old, new), dtype=np.uint8)
    if old < new:
        joined: Array = np.bitwise_or.reduce(np.left_shift(low.reshape(-1, len(shifts)), shifts), axis=1)
        return joined
    return np.bitwise_and(np.right_shift(low[:, None], shifts), (1 << new) - 1).reshape(-1)


def _low_bits(array: Array, source: ElementType) -> Array:
    """One byte per sub-byte element, upper bits zero."""
    if is_sub_byte(source):
        byte = array.astype(carrier(source)).view(np.uint8)
        return np.bitwise_and(byte, (1 << source.bits) - 1)
    return array.view(np.uint8)


def _from_low_bits(low: Array, target: ElementType) -> Array:
    if is_sub_byte(target):
        return wrap(low.view(carrier(target)), target)
    return low.view(dtype_of(target))


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
