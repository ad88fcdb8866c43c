"""Named axes over devices, and the orders of devices that they imply.

XLA: mesh_and_axis.h (Mesh, AxisRef), tile_assignment.h (IotaTileAssignment).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import prod

from hlotool.ir.attributes import Ints, IotaTiles, Mesh, MeshAxis

#: Devices that are listed one by one. No machine has as many, and a few digits in a text may mean more than
#: there is memory for.
MOST_LISTED = 1 << 20


def listed_count(sizes: Sequence[int]) -> int:
    """How many devices arrays of these sizes hold.

    Raises:
        ValueError: more than are listed one by one.
    """
    count = prod(sizes)
    if count > MOST_LISTED:
        raise ValueError(f"[{_commas(sizes)}] holds {count} devices, more than {MOST_LISTED} are not listed")
    return count


def transpose_order(order: Sequence[int], sizes: Ints, permutation: Sequence[int]) -> Ints:
    """`order`, read as an array of `sizes`, flattened again after its dimensions were permuted."""
    if prod(sizes) != len(order) or sorted(permutation) != list(range(len(sizes))):
        raise ValueError(f"{len(order)} devices cannot be [{_commas(sizes)}]T({_commas(permutation)})")
    strides = [prod(sizes[i + 1 :]) for i in range(len(sizes))]
    offsets = [0]
    for dimension in permutation:
        steps = [i * strides[dimension] for i in range(sizes[dimension])]
        offsets = [offset + step for offset in offsets for step in steps]
    return tuple(order[offset] for offset in offsets)


def iota_order(tiles: IotaTiles) -> Ints:
    """The device numbers of `[dims]<=[reshape_dims]T(permutation)`, row-major over `dims`.

    Raises:
        ValueError: the two lists of dimensions hold different numbers of devices, or too many.
    """
    count = listed_count(tiles.reshape_dims)
    if prod(tiles.dims) != count:
        raise ValueError(f"[{_commas(tiles.dims)}]<=[{_commas(tiles.reshape_dims)}] does not fit")
    permutation = tiles.permutation or tuple(range(len(tiles.reshape_dims)))
    return transpose_order(range(count), tiles.reshape_dims, permutation)


def mesh_order(mesh: Mesh) -> Ints:
    """The device numbers of a mesh, row-major over its axes.

    Raises:
        ValueError: the listed devices are not as many as the axes hold, or too many.
    """
    if mesh.maximal_device is not None:
        return (mesh.maximal_device,)
    count = listed_count([size for _, size in mesh.axes])
    if mesh.iota is not None:
        order = iota_order(mesh.iota)
    else:
        order = mesh.device_ids or tuple(range(count))
    if len(order) != count:
        raise ValueError(f"the mesh lists {len(order)} devices, its axes hold {count}")
    return order


def axis_size(mesh: Mesh, axis: MeshAxis) -> int:
    """Extent of an axis or of the part of one.

    Raises:
        ValueError: the mesh has no axis of that name.
    """
    return axis.size if axis.size is not None else _full_size(mesh, axis.name)


def order_along(mesh: Mesh, axes: Sequence[MeshAxis]) -> Ints:
    """The devices of a mesh, row-major with `axes` first.

    Args:
        mesh: the mesh.
        axes: distinct axes or parts of axes, in any order; what is left of the mesh follows in its own order.

    Raises:
        ValueError: unknown axis, parts that do not divide their axis, an axis used twice.
    """
    factors = _factors(mesh, axes)
    chosen = [i for axis in axes for i in _covered(mesh, axis, factors)]
    if len(set(chosen)) != len(chosen):
        raise ValueError(f"an axis is used twice: {', '.join(map(_axis_text, axes))}")
    rest = [i for i in range(len(factors)) if i not in chosen]
    return transpose_order(mesh_order(mesh), tuple(size for _, _, size in factors), chosen + rest)


def _factors(mesh: Mesh, axes: Iterable[MeshAxis]) -> list[tuple[str, int, int]]:
    """Every mesh axis cut where some part begins or ends: name, product of the sizes before, size."""
    factors = []
    for name, size in mesh.axes:
        cuts = {1, size}
        for axis in axes:
            if axis.name == name and axis.size is not None:
                before = axis.pre_size or 1
                cuts |= {before, before * axis.size}
        ordered = sorted(cuts)
        for low, high in pairwise(ordered):
            if high % low:
                raise ValueError(f"axis {name!r} of size {size} cannot be cut at {ordered}")
            factors.append((name, low, high // low))
    return factors


def _covered(mesh: Mesh, axis: MeshAxis, factors: list[tuple[str, int, int]]) -> list[int]:
    """Positions in `factors` of what `axis` stands for."""
    full = _full_size(mesh, axis.name)
    low = axis.pre_size or 1
    high = low * axis_size(mesh, axis)
    if full % high:
        raise ValueError(f"{_axis_text(axis)} is no part of an axis of size {full}")
    return [i for i, (name, before, _) in enumerate(factors) if name == axis.name and low <= before < high]


def _full_size(mesh: Mesh, name: str) -> int:
    for known, size in mesh.axes:
        if known == name:
            return size
    raise ValueError(f"the mesh has no axis {name!r}")


def _axis_text(axis: MeshAxis) -> str:
    return axis.name if axis.size is None else f"{axis.name}:({axis.pre_size}){axis.size}"


def _commas(numbers: Iterable[int]) -> str:
    return ",".join(map(str, numbers))
