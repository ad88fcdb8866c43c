"""Shardings, replica groups and meshes of the IR as protos: the inverse of `placement`."""

from __future__ import annotations

from collections.abc import Iterable

from hlotool.errors import ProtoError
from hlotool.ir.attributes import IotaTiles, Mesh, MeshAxis, NamedSharding, ReplicaGroups, Sharding
from hlotool.parse.proto.schema import Message, enum_numbers
from hlotool.parse.proto.write_origin import write_metadata


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
