"""Shardings, replica groups and meshes of a proto.

XLA: hlo_sharding.cc (FromProto), collective_device_list.cc.
"""

from __future__ import annotations

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
from hlotool.parse.proto.metadata import read_metadata
from hlotool.parse.proto.schema import Message, enum_names

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
