"""Global arrays as per-device arrays and back, by their shardings and for manual regions.

Tiles are of one size: where a dimension does not divide, the last tiles are padded with zeros, as the SPMD
partitioner of XLA does.

A manual region (JAX's shard_map) is written for one device, or for one along the mesh axes that are manual
while the others stay the compiler's. Entering it, each device takes its part of a global value along the
manual axes; leaving it, the parts become a global value again.

XLA: spmd_partitioner.cc, hlo_sharding.h (TileOffsetForDevice), tile_assignment.h, named_sharding.h;
xla_data.proto (OpSharding).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import prod
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from hlotool.ir.arrays import Array
from hlotool.ir.attributes import Ints, MeshAxis, NamedSharding, Sharding
from hlotool.ir.devices import axis_size, iota_order, order_along
from hlotool.ir.types import Shape, leaves

#: What the devices that share a tile have to do with each other, in the order of `Placement.devices`.
_SUBGROUPS = ("replicated", "unreduced", "manual")


class Placement(Struct, frozen=True, eq=False):
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


class Disagreement(Struct, frozen=True):
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


class ManualParts(Struct, frozen=True, eq=False):
    """The parts of an array that devices hold inside a manual region.

    Attributes:
        counts: number of parts per dimension.
        devices: device numbers, of shape `(*counts, others)`; those with one last index hold one whole array.
    """

    counts: Ints
    devices: Array

    def index(self, device: int) -> Ints:
        """Which part a device holds."""
        return tuple(int(i) for i in np.argwhere(self.devices == device)[0][:-1])

    def members(self, device: int) -> Ints:
        """The devices that together hold one whole array with this one, by index, row-major."""
        other = np.argwhere(self.devices == device)[0][-1]
        return tuple(int(d) for d in self.devices[..., other].flat)

    def part(self, array: Array, device: int) -> Array:
        """A device's part of a global array; a view."""
        extents = [size // count for size, count in zip(array.shape, self.counts)]
        index = zip(self.index(device), extents)
        return region(array, (slice(i * extent, (i + 1) * extent) for i, extent in index))

    def whole(self, parts: Sequence[Array]) -> Array:
        """The global array, from the parts in the order of `members`."""
        return _block(parts, self.counts, 0)


def _block(parts: Sequence[Array], counts: Ints, axis: int) -> Array:
    """Concatenate along all dimensions, the last ones first."""
    if axis == len(counts):
        return parts[0]
    step = len(parts) // counts[axis]
    rows = [_block(parts[i : i + step], counts, axis + 1) for i in range(0, len(parts), step)]
    return np.concatenate(rows, axis) if len(rows) > 1 else rows[0]


def manual_parts(sharding: Sharding, whole: Ints, part: Ints, device_count: int) -> ManualParts:
    """How arrays of dimensions `part` on the devices make one of dimensions `whole`.

    Args:
        sharding: of the global array. It may split further than `part` says, along axes that are not manual;
            these come last in every dimension.
        whole: dimensions of the global array.
        part: dimensions on each device inside the region.
        device_count: number of partitions.

    Raises:
        ValueError: the sharding does not fit the two shapes, or see `placement`.
    """
    counts = tuple(size // extent if extent else 1 for size, extent in zip(whole, part))
    if len(whole) != len(part) or any(c * e != size for c, e, size in zip(counts, part, whole)):
        raise ValueError(f"parts {list(part)} do not make up {list(whole)}")
    placed = placement(sharding, len(whole), device_count)
    if any(tiles % count for tiles, count in zip(placed.tiles, counts)):
        raise ValueError(f"{list(placed.tiles)} tiles do not make up {list(counts)} parts")
    rank = len(whole)
    split = [n for tiles, count in zip(placed.tiles, counts) for n in (count, tiles // count)]
    devices = placed.devices.reshape([*split, -1])
    order = [*range(0, 2 * rank, 2), *range(1, 2 * rank, 2), 2 * rank]
    return ManualParts(counts, devices.transpose(order).reshape([*counts, -1]))


def along_axes(sharding: Sharding, names: Sequence[str]) -> Sharding:
    """`sharding`, which has named axes, cut down to the axes of these names; the others replicate.

    Raises:
        ValueError: a sharding without named axes that splits anything.
    """
    named = sharding.named
    if named is None:
        if sharding.kind == "replicated":
            return sharding
        raise ValueError("a sharding without named axes")

    def kept(axes: Sequence[MeshAxis]) -> tuple[MeshAxis, ...]:
        return tuple(axis for axis in axes if axis.name in names)

    dims = tuple(replace(dim, axes=kept(dim.axes)) for dim in named.dims)
    return replace(sharding, named=NamedSharding(named.mesh, dims))
