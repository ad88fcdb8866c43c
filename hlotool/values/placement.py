"""Where a sharding puts the parts of an array.

XLA: hlo_sharding.h, tile_assignment.h, named_sharding.h; xla_data.proto (OpSharding).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from hlotool.ir.attributes import Ints, MeshAxis, NamedSharding, Sharding
from hlotool.ir.dtypes import Array
from hlotool.ir.mesh import axis_size, iota_order, order_along

#: What the devices that share a tile have to do with each other, in the order of `Placement.devices`.
_SUBGROUPS = ("replicated", "unreduced", "manual")


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """The tile that each device holds.

    Attributes:
        tiles: number of tiles per dimension of the array.
        devices: device numbers, of shape `(*tiles, copies, summands, unrelated)`: devices that hold equal
            copies of a tile, values whose sum is the tile, and values that only a manual program understands.
    """

    tiles: Ints
    devices: Array

    @property
    def is_manual(self) -> bool:
        """Some devices hold values that are not parts of one array."""
        return bool(self.devices.shape[-1] > 1)

    def tile_dims(self, dims: Sequence[int]) -> Ints:
        """Dimensions of every tile of an array of `dims`; the last tiles are padded up to them."""
        return tuple(-(-size // tiles) for size, tiles in zip(dims, self.tiles))

    def tile_slices(self, index: Sequence[int], dims: Sequence[int]) -> tuple[slice, ...]:
        """The part of an array of `dims` that the tile at `index` covers; padding is left out."""
        tile = self.tile_dims(dims)
        starts = [min(i * extent, size) for i, extent, size in zip(index, tile, dims)]
        return tuple(slice(s, min(s + extent, size)) for s, extent, size in zip(starts, tile, dims))

    def tile_indices(self) -> dict[int, Ints]:
        """The tile index of each device that holds one."""
        rank = len(self.tiles)
        return {int(device): index[:rank] for index, device in np.ndenumerate(self.devices)}


def region(array: Array, slices: Iterable[slice]) -> Array:
    """A view of `array`, which may have no dimensions."""
    index: tuple[Any, ...] = (..., *slices)
    view: Array = array[index]
    return view


def placement(sharding: Sharding, rank: int, device_count: int) -> Placement:
    """Where `sharding` puts the parts of an array of `rank` dimensions.

    Raises:
        ValueError: the sharding is for another rank or number of devices, or says nothing of placement.
    """
    if sharding.kind == "tuple":
        raise ValueError("a tuple sharding on an array")
    if sharding.kind == "unknown":
        raise ValueError("the sharding is not known")
    if sharding.kind == "maximal":
        found = _whole(rank, [_maximal_device(sharding)], "replicated")
    elif sharding.kind != "tiled":
        found = _whole(rank, range(device_count), sharding.kind)
    elif sharding.named is not None:
        found = _named(sharding.named)
    else:
        found = _tiled(sharding)
    _check(found, sharding, rank, device_count)
    return found


def _maximal_device(sharding: Sharding) -> int:
    named = sharding.named
    device = sharding.device if named is None else named.mesh.maximal_device
    if device is None:
        raise ValueError("a maximal sharding without a device")
    return device


def _whole(rank: int, devices: Sequence[int], kind: str) -> Placement:
    """One tile on all `devices`."""
    shape = [1] * rank + [len(devices) if kind == subgroup else 1 for subgroup in _SUBGROUPS]
    return Placement((1,) * rank, np.array(devices).reshape(shape))


def _tiled(sharding: Sharding) -> Placement:
    """`devices=[…]` in either form."""
    dims = sharding.tile_dims if sharding.iota is None else sharding.iota.dims
    order = sharding.devices if sharding.iota is None else iota_order(sharding.iota)
    if prod(dims) != len(order):
        raise ValueError(f"{len(order)} devices for {prod(dims)} tiles")
    kinds = ("replicated",) if sharding.last_tile_dim_replicate else sharding.last_tile_dims
    rank = len(dims) - len(kinds)
    if unknown := set(kinds) - set(_SUBGROUPS):
        raise ValueError(f"a tile dimension of kind {min(unknown)}")
    by_kind = [[rank + i for i, kind in enumerate(kinds) if kind == group] for group in _SUBGROUPS]
    array = np.array(order).reshape(dims).transpose([*range(rank), *(i for group in by_kind for i in group)])
    return Placement(dims[:rank], array.reshape([*dims[:rank], *(prod(dims[i] for i in g) for g in by_kind)]))


def _named(named: NamedSharding) -> Placement:
    """Axes of a mesh; those that nothing names replicate."""

    def size(axes: Sequence[MeshAxis]) -> int:
        return prod(axis_size(named.mesh, axis) for axis in axes)

    axes = [axis for dim in named.dims for axis in dim.axes]
    order = np.array(order_along(named.mesh, [*axes, *named.unreduced, *named.manual]))
    tiles = tuple(size(dim.axes) for dim in named.dims)
    array = order.reshape([*tiles, size(named.unreduced), size(named.manual), -1])
    return Placement(tiles, np.moveaxis(array, -1, -3))


def _check(found: Placement, sharding: Sharding, rank: int, device_count: int) -> None:
    if len(found.tiles) != rank:
        raise ValueError(f"a sharding of {len(found.tiles)} dimensions on an array of {rank}")
    devices = set(found.devices.flat)
    expected = 1 if sharding.kind == "maximal" else device_count
    if len(devices) != found.devices.size or not devices <= set(range(device_count)):
        raise ValueError(f"device numbers are not distinct and below {device_count}")
    if len(devices) != expected:
        raise ValueError(f"a sharding over {len(devices)} devices for a program on {device_count}")
