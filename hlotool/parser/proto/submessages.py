"""Attributes with messages of their own: contractions, windows, shardings, replica groups, meshes.

XLA: hlo_sharding.cc (FromProto, ToProto), collective_device_list.cc.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from hlotool.errors import ProtoError
from hlotool.ir.attributes import (
    AttributeValue,
    ConvolutionDimensions,
    IotaTiles,
    Mesh,
    MeshAxis,
    MeshGroups,
    NamedSharding,
    RawText,
    ReplicaGroups,
    ShardedDimension,
    Sharding,
    ShardingKind,
    Window,
    WindowDim,
)
from hlotool.parser.proto.fields import FieldContext, read_metadata, write_metadata
from hlotool.parser.proto.schema import Message, enum_names, enum_numbers

_PRECISION = "PrecisionConfig.Precision"


def read_precision(context: FieldContext) -> AttributeValue | None:
    """One word per operand, filled up with `default`; hidden when all are default."""
    names = enum_names(_PRECISION)
    words = [names.get(p, str(p)).lower() for p in context.proto.precision_config.operand_precision]
    if all(word == "default" for word in words):
        return None
    count = len(context.operands) - {"ragged-dot": 1, "scaled-dot": 2}.get(context.opcode, 0)
    return tuple((words + ["default"] * count)[:count])


def write_precision(proto: Message, words: Any) -> None:
    """Fill the precision of operands."""
    numbers = enum_numbers(_PRECISION)
    proto.precision_config.operand_precision.extend(numbers[word.upper()] for word in words)


#: Fields of WindowDim, and of WindowDimension.
_WINDOW = {
    "size": "size",
    "stride": "stride",
    "pad_low": "padding_low",
    "pad_high": "padding_high",
    "base_dilation": "base_dilation",
    "window_dilation": "window_dilation",
    "reversal": "window_reversal",
}


def read_window(context: FieldContext) -> AttributeValue | None:
    """The window, unless it has no dimensions."""
    dims = context.proto.window.dimensions
    read = (WindowDim(**{ours: getattr(d, theirs) for ours, theirs in _WINDOW.items()}) for d in dims)
    return Window(tuple(read)) if dims else None


def write_window(proto: Message, window: Window) -> None:
    """Fill the window, which counts as given even if it has no dimensions."""
    proto.window.SetInParent()
    for dim in window.dims:
        proto.window.dimensions.add(**{theirs: getattr(dim, ours) for ours, theirs in _WINDOW.items()})


#: The parts that dimensions of the three arrays play, beside the spatial ones.
_PARTS = {
    "input": ("batch", "feature"),
    "kernel": ("input_feature", "output_feature"),
    "output": ("batch", "feature"),
}


def read_dim_labels(context: FieldContext) -> AttributeValue | None:
    """Which dimension plays which part in a convolution; positions of no part occur in custom calls."""
    if not context.proto.HasField("convolution_dimension_numbers"):
        return None
    numbers = context.proto.convolution_dimension_numbers
    labels: dict[str, Any] = {}
    for array, parts in _PARTS.items():
        named = {f"{array}_{part}": getattr(numbers, f"{array}_{part}_dimension") for part in parts}
        spatial = tuple(getattr(numbers, f"{array}_spatial_dimensions"))
        used = (*named.values(), *spatial)
        unused = tuple(d for d in range(max(used) + 1) if d not in used)
        labels |= {**named, f"{array}_spatial": spatial, f"{array}_unused": unused}
    return ConvolutionDimensions(**labels)


def write_dim_labels(proto: Message, labels: ConvolutionDimensions) -> None:
    """Fill the dimension numbers of a convolution."""
    numbers = proto.convolution_dimension_numbers
    numbers.SetInParent()
    for array, parts in _PARTS.items():
        for part in parts:
            setattr(numbers, f"{array}_{part}_dimension", getattr(labels, f"{array}_{part}"))
        getattr(numbers, f"{array}_spatial_dimensions").extend(getattr(labels, f"{array}_spatial"))


_SIDE = re.compile(r"(lhs|rhs)=\{([^}]*)\}")
_SIDE_FIELD = re.compile(r"(\w+)=(\d+(?:x\d+)*)")


def read_sparsity(context: FieldContext) -> AttributeValue | None:
    """Which operands are sparse, and how."""
    return _read_sides(context.proto.sparsity_config, _sparsity_side)


def read_block_scaling(context: FieldContext) -> AttributeValue | None:
    """Which operands have scales by blocks, and where these are."""
    return _read_sides(context.proto.block_scaling_config, _block_scaling_side)


def _read_sides(proto: Message, text: Callable[[Message], Iterable[str]]) -> RawText | None:
    """What is said of each operand of a contraction, as XLA prints it."""
    given = [side for side in ("lhs", "rhs") if proto.HasField(side)]
    sides = [f"{side}={{{' '.join(text(getattr(proto, side)))}}}" for side in given]
    return RawText(f"{{{' '.join(sides)}}}") if sides else None


def _sparsity_side(proto: Message) -> Iterator[str]:
    yield f"sparsity={proto.num_non_zero}x{proto.block_size}"
    yield f"dimension={proto.dimension}"
    yield f"stride={proto.stride}"
    if proto.idx:  # which parsers before 0.12 do not take
        yield f"idx={proto.idx}"


def _block_scaling_side(proto: Message) -> Iterator[str]:
    yield f"scale_idx={proto.scale_idx}"
    if proto.zero_idx:
        yield f"zero_idx={proto.zero_idx}"
    for name in ("strides", "steps"):
        if sizes := getattr(proto, name):
            yield f"{name}={'x'.join(map(str, sizes))}"


def write_sparsity(proto: Message, raw: RawText) -> None:
    """Fill the sparsity of a contraction's operands."""
    for side, fields in _SIDE.findall(raw.text):
        tensor = getattr(proto.sparsity_config, side)
        tensor.SetInParent()
        for field, text in _SIDE_FIELD.findall(fields):
            if field == "sparsity":
                tensor.num_non_zero, tensor.block_size = map(int, text.split("x"))
            else:
                setattr(tensor, field, int(text))


def write_block_scaling(proto: Message, raw: RawText) -> None:
    """Fill the scales of a contraction's operands."""
    for side, fields in _SIDE.findall(raw.text):
        tensor = getattr(proto.block_scaling_config, side)
        tensor.SetInParent()
        for field, text in _SIDE_FIELD.findall(fields):
            if field in ("strides", "steps"):
                getattr(tensor, field).extend(map(int, text.split("x")))
            else:
                setattr(tensor, field, int(text))


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
