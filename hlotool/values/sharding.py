"""Global arrays as per-device arrays, and back.

Tiles are of one size: where a dimension does not divide, the last tiles are padded with zeros, as the SPMD
partitioner of XLA does. XLA: spmd_partitioner.cc, hlo_sharding.h (TileOffsetForDevice).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hlotool.ir.attributes import Ints, Sharding
from hlotool.ir.dtypes import Array
from hlotool.ir.types import Shape, leaves
from hlotool.values.placement import Placement, placement, region


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Devices that should hold the same value and do not.

    Attributes:
        devices: the first that holds the part, and one that contradicts it.
        index: of the first element that differs, in the global array.
        values: what the two hold there.
    """

    devices: tuple[int, int]
    index: Ints
    values: tuple[Any, Any]

    def __str__(self) -> str:
        (a, b), (x, y) = self.devices, self.values
        place = ", ".join(map(str, self.index))
        return f"devices {a} and {b} should hold copies, but at [{place}] one holds {x}, the other {y}"


def local_dims(dims: Sequence[int], sharding: Sharding, device_count: int) -> Ints:
    """Dimensions of what each device holds of an array of `dims`.

    Raises:
        ValueError: see `placement`.
    """
    return placement(sharding, len(dims), device_count).tile_dims(dims)


def split(array: Array, sharding: Sharding, device_count: int) -> list[Array]:
    """What each device holds of `array`.

    Devices that `maximal` leaves out get the whole array too: what they hold means nothing. Of devices that
    hold summands, the first gets the value and the others zeros.

    Raises:
        ValueError: see `placement`.
    """
    placed = placement(sharding, array.ndim, device_count)
    parts: list[Array] = [array] * device_count
    for index, devices in _tiles(placed):
        tile = _padded(region(array, placed.tile_slices(index, array.shape)), placed.tile_dims(array.shape))
        zeros = np.zeros_like(tile) if devices.shape[1] > 1 else tile
        for (_, summand, _), device in np.ndenumerate(devices):
            parts[device] = zeros if summand else tile
    return parts


def assemble(
    parts: Sequence[Array], dims: Sequence[int], sharding: Sharding
) -> tuple[Array, Disagreement | None]:
    """The global array of `dims` whose parts the devices hold, and the first contradiction between copies.

    Raises:
        ValueError: see `placement`; also when a part has other dimensions than `local_dims` says, or when the
            sharding is manual: such parts make no one array.
    """
    placed = placement(sharding, len(dims), len(parts))
    if placed.is_manual:
        raise ValueError("values of a manual sharding are not parts of one array")
    tile_dims = placed.tile_dims(dims)
    result = np.zeros(dims, parts[0].dtype)
    found = None
    for index, devices in _tiles(placed):
        place = placed.tile_slices(index, dims)
        inside = tuple(slice(0, part.stop - part.start) for part in place)
        for part in devices.flat:
            if parts[part].shape != tile_dims:
                raise ValueError(f"device {part} holds dimensions {parts[part].shape}, expected {tile_dims}")
        copies = [_sum([region(parts[d], inside) for d in row]) for row in devices[:, :, 0]]
        result[place] = copies[0]
        offset = tuple(part.start for part in place)
        found = found or _contradiction(copies, devices[:, 0, 0], offset)
    return result, found


def leaf_shardings(shape: Shape, sharding: Sharding | None) -> list[Sharding | None]:
    """One sharding per leaf of `shape`, depth first; one that is no tuple holds for all leaves.

    Raises:
        ValueError: a tuple sharding of another number of elements.
    """
    count = sum(1 for _ in leaves(shape))
    if sharding is None or sharding.kind != "tuple":
        return [sharding] * count
    flat = list(_flat_elements(sharding))
    if len(flat) != count and not (count == 0 and len(flat) <= 1):
        raise ValueError(f"a sharding of {len(flat)} elements for {count} leaves")
    return list(flat[:count])


def _flat_elements(sharding: Sharding) -> Iterator[Sharding]:
    for element in sharding.elements:
        if element.kind == "tuple":
            yield from _flat_elements(element)
        else:
            yield element


def _tiles(placed: Placement) -> Iterator[tuple[Ints, Array]]:
    """Every tile index and the devices `(copies, summands, unrelated)` that hold the tile."""
    for index in np.ndindex(*placed.tiles):
        yield index, placed.devices[index]


def _padded(array: Array, dims: Ints) -> Array:
    """`array` in its corner of an array of `dims`, zeros elsewhere."""
    if array.shape == dims:
        return array
    result = np.zeros(dims, array.dtype)
    result[tuple(slice(0, size) for size in array.shape)] = array
    return result


def _sum(parts: Sequence[Array]) -> Array:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _contradiction(copies: Sequence[Array], devices: Array, offset: Ints) -> Disagreement | None:
    first = copies[0]
    for other, device in zip(copies[1:], devices[1:]):
        differs = (first != other) & ~((first != first) & (other != other))
        if differs.any():
            index = tuple(int(i) for i in np.argwhere(differs)[0])
            place = tuple(i + start for i, start in zip(index, offset))
            return Disagreement((int(devices[0]), int(device)), place, (first[index], other[index]))
    return None
