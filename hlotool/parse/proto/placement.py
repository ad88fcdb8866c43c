"""Shardings, replica groups and meshes of a proto, read and written.

XLA: hlo_sharding.cc (FromProto, ToProto), collective_device_list.cc.
"""

from __future__ import annotations

from collections.abc import Iterable

from hlotool.errors import ProtoError
from hlotool.ir.attributes import (
    IotaTiles,
    Mesh,
    MeshAxis,
    MeshGroups,
    NamedSharding,
    ReplicaGroups,
    ShardedDimension,
    Sharding,
    ShardingKind,
)
from hlotool.parse.proto.metadata import read_metadata, write_metadata
from hlotool.parse.proto.schema import Message, enum_names, enum_numbers

_SIMPLE_KINDS: dict[str, ShardingKind] = {
    "REPLICATED": "replicated",
    "MANUAL": "manual",
    "UNKNOWN": "unknown",
    "UNREDUCED": "unreduced",
}


def read_sharding(proto: Message) -> Sharding:
    """The sharding of an OpSharding; raises ProtoError for a type that is not known."""
    if proto.HasField("named_sharding"):
        return Sharding("tiled", named=_read_named(proto.named_sharding))
    kind = enum_names("OpSharding.Type").get(proto.type, str(proto.type))
    metadata = tuple(m for m in map(read_metadata, proto.metadata) if m is not None)
    group = _shard_group(proto)
    if kind == "TUPLE":
        return Sharding("tuple", elements=tuple(map(read_sharding, proto.tuple_shardings)), shard_group=group)
    if kind == "MAXIMAL":
        [device] = proto.tile_assignment_devices
        return Sharding("maximal", device=device, shard_group=group, metadata=metadata)
    if kind in _SIMPLE_KINDS:
        return Sharding(_SIMPLE_KINDS[kind], shard_group=group, metadata=metadata)
    if kind != "OTHER":
        raise ProtoError(f"sharding type {kind} is not known")
    tile_dims = tuple(proto.tile_assignment_dimensions)
    return Sharding(
        "tiled",
        tile_dims=tile_dims,
        devices=tuple(proto.tile_assignment_devices),
        iota=_iota(tile_dims, proto) if proto.iota_reshape_dims else None,
        last_tile_dim_replicate=proto.replicate_on_last_tile_dim,
        last_tile_dims=tuple(enum_names("OpSharding.Type")[t].lower() for t in proto.last_tile_dims),
        shard_group=group,
        metadata=metadata,
    )


def _shard_group(proto: Message) -> tuple[str, int] | None:
    if not proto.is_shard_group:
        return None
    kind = enum_names("OpSharding.ShardGroupType")[proto.shard_group_type].lower()
    return f"shard_{kind}", proto.shard_group_id


def _iota(dims: tuple[int, ...], proto: Message) -> IotaTiles:
    return IotaTiles(dims, tuple(proto.iota_reshape_dims), tuple(proto.iota_transpose_perm))


def read_replica_groups(proto: Message) -> ReplicaGroups:
    """The groups of a collective instruction, from whichever of XLA's fields over time is set."""
    if proto.HasField("mesh_axes_replica_group_list"):
        groups = proto.mesh_axes_replica_group_list
        mesh = _read_mesh(groups.mesh)
        return ReplicaGroups(mesh=MeshGroups(mesh, _read_axes(groups.axes, mesh)))
    if proto.HasField("iota_collective_device_list"):
        return _iota_groups(proto.iota_collective_device_list)
    listed = proto.collective_device_list
    if listed.HasField("iota_replica_group_list"):
        return _iota_groups(listed.iota_replica_group_list)
    groups = listed.replica_groups or proto.replica_groups
    return ReplicaGroups(groups=tuple(tuple(group.replica_ids) for group in groups))


def _iota_groups(proto: Message) -> ReplicaGroups:
    return ReplicaGroups(iota=_iota((proto.num_replica_groups, proto.num_devices_per_group), proto))


def _read_mesh(proto: Message) -> Mesh:
    axes = tuple((axis.name, axis.size) for axis in proto.axes)
    devices = tuple(proto.device_ids)
    if not axes and len(devices) == 1:
        return Mesh((), maximal_device=devices[0])
    if proto.HasField("iota_transform"):
        transform = proto.iota_transform
        sizes = tuple(size for _, size in axes)
        order = IotaTiles(sizes, tuple(transform.reshape_dims), tuple(transform.transpose_perm))
        return Mesh(axes, iota=order)
    return Mesh(axes, devices)


def _read_axes(protos: Message, mesh: Mesh) -> tuple[MeshAxis, ...]:
    return tuple(_read_axis(proto, mesh) for proto in protos)


def _read_axis(proto: Message, mesh: Mesh) -> MeshAxis:
    name = mesh.axes[proto.mesh_axis_index][0]
    if not proto.HasField("sub_axis_info"):
        return MeshAxis(name)
    return MeshAxis(name, proto.sub_axis_info.pre_size, proto.sub_axis_info.size)


def _read_named(proto: Message) -> NamedSharding:
    mesh = _read_mesh(proto.mesh)
    return NamedSharding(
        mesh,
        tuple(ShardedDimension(_read_axes(d.axes, mesh), d.is_closed) for d in proto.dim_shardings),
        replicated=_read_axes(proto.replicated_axes, mesh),
        unreduced=_read_axes(proto.unreduced_axes, mesh),
        manual=_read_axes(proto.manual_axes, mesh),
    )


def write_sharding(proto: Message, sharding: Sharding) -> None:
    """Fill an OpSharding."""
    types = enum_numbers("OpSharding.Type")
    proto.SetInParent()
    for metadata in sharding.metadata:
        write_metadata(proto.metadata.add(), metadata)
    if sharding.shard_group is not None:
        kind, proto.shard_group_id = sharding.shard_group
        proto.is_shard_group = True
        proto.shard_group_type = enum_numbers("OpSharding.ShardGroupType")[
            kind.removeprefix("shard_").upper()
        ]
    if sharding.named is not None:
        proto.type = types["OTHER"]
        _write_named(proto.named_sharding, sharding.named)
    elif sharding.kind == "tuple":
        proto.type = types["TUPLE"]
        for element in sharding.elements:
            write_sharding(proto.tuple_shardings.add(), element)
    elif sharding.kind == "maximal":
        proto.type = types["MAXIMAL"]
        proto.tile_assignment_dimensions.append(1)
        proto.tile_assignment_devices.append(sharding.device or 0)
    elif sharding.kind == "tiled":
        proto.type = types["OTHER"]
        _write_tiles(proto, sharding)
    else:
        proto.type = types[sharding.kind.upper()]


def _write_tiles(proto: Message, sharding: Sharding) -> None:
    proto.tile_assignment_dimensions.extend(sharding.tile_dims)
    proto.tile_assignment_devices.extend(sharding.devices)
    if sharding.iota is not None:
        _write_iota(proto, sharding.iota)
    proto.replicate_on_last_tile_dim = sharding.last_tile_dim_replicate
    types = enum_numbers("OpSharding.Type")
    proto.last_tile_dims.extend(types[kind.upper()] for kind in sharding.last_tile_dims)


def _write_iota(proto: Message, tiles: IotaTiles) -> None:
    proto.iota_reshape_dims.extend(tiles.reshape_dims)
    proto.iota_transpose_perm.extend(tiles.permutation)


def write_replica_groups(proto: Message, groups: ReplicaGroups) -> None:
    """Set the replica groups of an HloInstructionProto, in the field that their form has."""
    if groups.mesh is not None:
        listed = proto.mesh_axes_replica_group_list
        _write_mesh(listed.mesh, groups.mesh.mesh)
        _write_axes(listed.axes, groups.mesh.axes, groups.mesh.mesh)
    elif groups.iota is not None:
        listed = proto.iota_collective_device_list
        listed.num_replica_groups, listed.num_devices_per_group = groups.iota.dims
        _write_iota(listed, groups.iota)
    else:
        proto.collective_device_list.SetInParent()
        for group in groups.groups or ():
            proto.collective_device_list.replica_groups.add(replica_ids=group)


def _write_mesh(proto: Message, mesh: Mesh) -> None:
    for name, size in mesh.axes:
        proto.axes.add(name=name, size=size)
    if mesh.maximal_device is not None:
        proto.device_ids.append(mesh.maximal_device)
    elif mesh.iota is not None:
        proto.iota_transform.reshape_dims.extend(mesh.iota.reshape_dims)
        proto.iota_transform.transpose_perm.extend(mesh.iota.permutation)
    else:
        proto.device_ids.extend(mesh.device_ids)
    proto.SetInParent()


def _write_axes(protos: Message, axes: Iterable[MeshAxis], mesh: Mesh) -> None:
    names = [name for name, _ in mesh.axes]
    for axis in axes:
        if axis.name not in names:
            raise ProtoError(f"mesh axis {axis.name!r} is not one of {names}")
        proto = protos.add(mesh_axis_index=names.index(axis.name))
        if axis.size is not None:
            proto.sub_axis_info.pre_size = axis.pre_size or 0
            proto.sub_axis_info.size = axis.size


def _write_named(proto: Message, named: NamedSharding) -> None:
    _write_mesh(proto.mesh, named.mesh)
    for dimension in named.dims:
        sharded = proto.dim_shardings.add(is_closed=dimension.closed)
        _write_axes(sharded.axes, dimension.axes, named.mesh)
    _write_axes(proto.replicated_axes, named.replicated, named.mesh)
    _write_axes(proto.unreduced_axes, named.unreduced, named.mesh)
    _write_axes(proto.manual_axes, named.manual, named.mesh)
