"""What the devices of a manual region hold of a global array.

A manual region (JAX's shard_map) is written for one device, or for one along the mesh axes that are manual
while the others stay the compiler's. Entering it, each device takes its part of a global value along the
manual axes; leaving it, the parts become a global value again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hlotool.ir.attributes import Ints, MeshAxis, NamedSharding, Sharding
from hlotool.ir.dtypes import Array
from hlotool.values.placement import placement, region


@dataclass(frozen=True, slots=True, eq=False)
class ManualParts:
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
