"""Text of shardings, meshes and replica groups.

XLA: hlo_sharding.cc, named_sharding.h, mesh_and_axis.h, replica_group.cc, tile_assignment.cc.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hlotool.ir.attributes import (
    IotaTiles,
    Mesh,
    MeshAxis,
    Metadata,
    NamedSharding,
    ReplicaGroups,
    ShardedDimension,
    Sharding,
)
from hlotool.ir.printing.metadata import metadata_text
from hlotool.ir.types import join_indexed


def sharding_text(sharding: Sharding, metadata: bool = True) -> str:
    """`{devices=[2,2]<=[4]}` and its many relatives; `metadata` says whether its metadata is printed."""
    if sharding.kind == "tuple":
        return "{" + join_indexed(sharding_text(e, metadata) for e in sharding.elements) + "}"
    shown = sharding.metadata if metadata else ()
    if sharding.named is not None:
        return "{" + ", ".join(_named_parts(sharding, sharding.named, shown)) + "}"
    return "{" + " ".join(_parts(sharding, shown)) + "}"


def _parts(sharding: Sharding, metadata: tuple[Metadata, ...]) -> Iterator[str]:
    if sharding.kind == "tiled":
        yield _devices(sharding)
        if sharding.last_tile_dim_replicate:
            yield "last_tile_dim_replicate"
        if sharding.last_tile_dims:
            yield f"last_tile_dims={{{', '.join(sharding.last_tile_dims)}}}"
    elif sharding.kind == "maximal":
        yield f"maximal device={sharding.device}"
    else:
        yield sharding.kind
    if sharding.shard_group is not None:
        yield f"{sharding.shard_group[0]} {sharding.shard_group[1]}"
    if len(metadata) == 1:
        yield f"metadata={{{metadata_text(metadata[0])}}}"
    elif metadata:
        yield _metadata_list(metadata)


def _devices(sharding: Sharding) -> str:
    if sharding.iota is not None:
        return f"devices={iota_text(sharding.iota)}"
    return f"devices=[{_commas(sharding.tile_dims)}]{_commas(sharding.devices)}"


def _metadata_list(metadata: Iterable[Metadata]) -> str:
    return "metadata={" + ", ".join(f"{{{metadata_text(m)}}}" for m in metadata) + "}"


def _named_parts(sharding: Sharding, named: NamedSharding, metadata: tuple[Metadata, ...]) -> Iterator[str]:
    yield mesh_text(named.mesh)
    if sharding.kind in ("replicated", "unreduced", "manual") and not named.dims:
        yield sharding.kind
    elif sharding.kind != "maximal":
        yield f"[{', '.join(map(_dimension_text, named.dims))}]"
        for key in ("replicated", "unreduced", "manual"):
            if axes := getattr(named, key):
                yield f"{key}={{{', '.join(map(_axis_text, axes))}}}"
    if metadata:
        yield _metadata_list(metadata)


def _dimension_text(dimension: ShardedDimension) -> str:
    parts = [_axis_text(axis) for axis in dimension.axes]
    if not dimension.closed:
        parts.append("?")
    priority = "" if dimension.priority is None else f"p{dimension.priority}"
    return f"{{{', '.join(parts)}}}{priority}"


def _axis_text(axis: MeshAxis) -> str:
    part = "" if axis.size is None else f":({axis.pre_size}){axis.size}"
    return f"'{axis.name}'{part}"


def mesh_text(mesh: Mesh) -> str:
    """`mesh['x'=2,'y'=2], device_ids=(…)` or `maximal_mesh[device_id=1]`."""
    if mesh.maximal_device is not None:
        return f"maximal_mesh[device_id={mesh.maximal_device}]"
    text = "mesh[" + ",".join(f"'{name}'={size}" for name, size in mesh.axes) + "]"
    if mesh.iota is not None:
        return f"{text}, device_ids=({_iota_order(mesh.iota)})"
    return f"{text}, device_ids=({_commas(mesh.device_ids)})" if mesh.device_ids else text


def replica_groups_text(groups: ReplicaGroups) -> str:
    """`{{0,1},{2,3}}`, `[2,2]<=[4]` or `mesh['x'=2,'y'=2] {'x'}`."""
    if groups.iota is not None:
        return iota_text(groups.iota)
    if groups.mesh is not None:
        return f"{mesh_text(groups.mesh.mesh)} {{{','.join(map(_axis_text, groups.mesh.axes))}}}"
    return "{" + ",".join(f"{{{_commas(group)}}}" for group in groups.groups or ()) + "}"


def iota_text(tiles: IotaTiles) -> str:
    """`[2,2]<=[2,2]T(1,0)`."""
    return f"[{_commas(tiles.dims)}]<={_iota_order(tiles)}"


def _iota_order(tiles: IotaTiles) -> str:
    permutation = tiles.permutation or range(len(tiles.reshape_dims))
    transposed = f"T({_commas(permutation)})" if len(tiles.reshape_dims) > 1 else ""
    return f"[{_commas(tiles.reshape_dims)}]{transposed}"


def _commas(numbers: Iterable[int]) -> str:
    return ",".join(map(str, numbers))
