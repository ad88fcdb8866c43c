"""Grammar actions for shardings, meshes and replica groups. XLA: ParseSingleSharding, hlo_sharding.cc."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

from hlotool.grammar import Token
from hlotool.ir.attributes import (
    Ints,
    IotaTiles,
    Mesh,
    MeshAxis,
    MeshGroups,
    Metadata,
    NamedSharding,
    ReplicaGroups,
    ShardedDimension,
    Sharding,
    ShardingKind,
)
from hlotool.parser.text.attribute_actions import Action, integer, integers, of_all, string
from hlotool.parser.text.syntax import TextError

#: Which kind counts where several are written, strongest first.
_KINDS: tuple[ShardingKind, ...] = ("replicated", "maximal", "manual", "unknown", "unreduced")
#: Kinds that the subgroup dimensions of a tiling may have.
_SUBGROUP_KINDS = ("replicated", "maximal", "manual", "unreduced")


_NUMBERS = "[0-9]{1,9}(?>(?:,[0-9]{1,9})*)"
#: A sharding of version 2 without subgroups, or of one word.
PLAIN_SHARDING = (
    rf"\{{(?>replicated|manual|devices=\[{_NUMBERS}\]<=\[{_NUMBERS}\]"
    rf"(?>(?:T\({_NUMBERS}\))?)(?>(?: last_tile_dim_replicate)?))\}}"
)
_TILES = re.compile(r"\[([0-9,]+)\]<=\[([0-9,]+)\](?:T\(([0-9,]+)\))?( last_tile_dim_replicate)?\}")


class _Item(NamedTuple):
    """One part of a sharding in braces."""

    name: str
    value: Any
    position: int | None


class _Sizes(NamedTuple):
    """`[2,2]` and where it stands."""

    values: Ints
    position: int


class _DeviceList(NamedTuple):
    """`[2,2]0,1,2,3`."""

    dims: Ints
    devices: Ints


def _item(name: str, value: Callable[[list[Any]], object]) -> Action:
    """The action of a part that begins with a token."""
    return lambda self, children: _Item(name, value(children), children[0].start_pos)


class ShardingActions:
    """Shardings in versions 1 (device lists), 2 (iota) and 3 (named axes), and replica groups."""

    # Tiles of devices

    def sizes(self, children: list[Any]) -> _Sizes:
        return _Sizes(integers(children), children[0].start_pos)

    permutation = device_ids = of_all(integers, skipped=1)

    def iota_tiles(self, children: list[Any]) -> IotaTiles:
        return _iota(*children)

    def device_list(self, children: list[Any]) -> _DeviceList:
        dims, *devices = children
        if prod(dims.values) != len(devices):
            raise TextError(f"{prod(dims.values)} tiles are given {len(devices)} devices", dims.position)
        return _DeviceList(dims.values, integers(devices))

    # Versions 1 and 2

    sharding_kind = _item("kind", lambda parts: str(parts[0]))
    partial_replication = _item("last_tile_dim_replicate", lambda parts: True)
    sharding_devices = _item("devices", lambda parts: parts[1])
    sharding_device = _item("device", lambda parts: integer(parts[1]))
    shard_group = _item("shard_group", lambda parts: (str(parts[0]), integer(parts[1])))
    sharding_metadata = _item("metadata", lambda parts: tuple(parts[1:]))

    def last_tile_dims(self, children: list[Token]) -> _Item:
        kinds = tuple(map(str, children[1:]))
        if not set(kinds) <= set(_SUBGROUP_KINDS):
            raise TextError(f"last_tile_dims holds {', '.join(_SUBGROUP_KINDS)} only", children[0].start_pos)
        return _Item("last_tile_dims", kinds, children[0].start_pos)

    def device_sharding(self, children: list[_Item]) -> Sharding:
        given = {item.name: item.value for item in children}
        kinds = {item.value for item in children if item.name == "kind"}
        kind: ShardingKind = next((k for k in _KINDS if k in kinds), "tiled")
        metadata: tuple[Metadata, ...] = given.get("metadata", ())
        common: dict[str, Any] = {"shard_group": given.get("shard_group"), "metadata": metadata}
        position = children[0].position
        if kind == "tiled":
            return _tiled(given, common, position)
        if kind == "maximal":
            return Sharding(kind, device=_only_device(given, position), **common)
        if "device" in given or isinstance(given.get("devices"), _DeviceList):
            raise TextError(f"a {kind} sharding names no devices", position)
        return Sharding(kind, **common)

    tuple_sharding = of_all(lambda elements: Sharding("tuple", elements=elements))

    # Version 3

    def mesh(self, children: list[Any]) -> Mesh:
        axes = tuple(children[1:])
        if len({name for name, _ in axes}) != len(axes):
            raise TextError("two axes of a mesh have the same name", children[0].start_pos)
        return Mesh(axes)

    def mesh_axis(self, children: list[Token]) -> tuple[str, int]:
        return string(children[0]), integer(children[1])

    def iota_device_ids(self, children: list[Any]) -> IotaTiles:
        _, reshape, *permutation = children
        order = _checked_permutation(reshape, permutation[0] if permutation else None)
        return IotaTiles((), reshape.values, order)

    def axis(self, children: list[Token]) -> MeshAxis:
        name = string(children[0])
        return MeshAxis(name, *integers(children[1:])) if len(children) > 1 else MeshAxis(name)

    axes = dimension_shardings = of_all(tuple)

    def dimension_sharding(self, children: list[Any]) -> ShardedDimension:
        axes = tuple(child for child in children if isinstance(child, MeshAxis))
        return ShardedDimension(axes, closed=len(axes) == len(children))

    def axis_group(self, children: list[Any]) -> _Item:
        return _Item(children[0][:-1], children[1], children[0].start_pos)

    def named_sharding(self, children: list[Any]) -> Sharding:
        items = [child for child in children if isinstance(child, _Item)]
        mesh, *_, dims = (child for child in children if not isinstance(child, _Item))
        given = {item.name: item.value for item in items}
        if len(given) != len(items):
            raise TextError("parts of a sharding repeat", items[0].position)
        metadata = given.pop("metadata", ())
        named = NamedSharding(_mesh_with_order(children), dims, **given)
        unknown = _used_axes(named) - {name for name, _ in mesh.axes}
        if unknown:
            raise TextError(f"the mesh of the sharding has no axis {min(unknown)!r}")
        return Sharding("tiled", named=named, metadata=metadata)

    def named_kind_sharding(self, children: list[Any]) -> Sharding:
        kind: Any = next(str(child) for child in children if isinstance(child, Token))
        named = NamedSharding(_mesh_with_order(children), ())
        return Sharding(kind, named=named, metadata=_metadata_of(children))

    def maximal_mesh_sharding(self, children: list[Any]) -> Sharding:
        device = integer(children[2])
        mesh = Mesh((), maximal_device=device)
        return Sharding(
            "maximal", device=device, named=NamedSharding(mesh, ()), metadata=_metadata_of(children)
        )

    # Replica groups

    group_lists = of_all(lambda groups: ReplicaGroups(groups=groups))

    def iota_groups(self, children: list[IotaTiles]) -> ReplicaGroups:
        if len(children[0].dims) != 2:
            raise TextError("replica groups in iota form have two dimensions: groups, devices of each")
        return ReplicaGroups(iota=children[0])

    def mesh_groups(self, children: list[Any]) -> ReplicaGroups:
        return ReplicaGroups(mesh=MeshGroups(_mesh_with_order(children), children[-1]))


def plain_sharding(text: str) -> Sharding:
    """The sharding of a text that PLAIN_SHARDING matches; raises TextError."""
    found = _TILES.search(text)
    if found is None:
        kind: Any = text[1:-1]
        return Sharding(kind)
    *lists, is_partial = found.groups()
    dims, reshape, *order = [tuple(map(int, numbers.split(","))) for numbers in lists if numbers]
    iota = _iota(_Sizes(dims, 0), _Sizes(reshape, 0), *order)
    return Sharding("tiled", dims, iota=iota, last_tile_dim_replicate=bool(is_partial))


def _iota(dims: _Sizes, reshape: _Sizes, permutation: Ints | None = None) -> IotaTiles:
    order = _checked_permutation(reshape, permutation)
    if prod(dims.values) != prod(reshape.values):
        raise TextError(f"{prod(dims.values)} tiles are given {prod(reshape.values)} devices", dims.position)
    return IotaTiles(dims.values, reshape.values, order)


def _checked_permutation(reshape: _Sizes, permutation: Ints | None) -> Ints:
    rank = len(reshape.values)
    if rank == 1 and permutation is None:
        return (0,)
    if rank > 1 and permutation is not None and sorted(permutation) == list(range(rank)):
        return permutation
    needed = "no T(…)" if rank == 1 else f"a permutation T(…) of its {rank} dimensions"
    raise TextError(f"this device order takes {needed}", reshape.position)


def _tiled(given: dict[str, Any], common: dict[str, Any], position: int | None) -> Sharding:
    tiles = given.get("devices")
    if tiles is None:
        raise TextError("a tiled sharding needs devices=[…]", position)
    partial, subgroups = given.get("last_tile_dim_replicate", False), given.get("last_tile_dims", ())
    if partial and subgroups:
        raise TextError("last_tile_dim_replicate and last_tile_dims exclude each other", position)
    if isinstance(tiles, IotaTiles):
        return Sharding("tiled", tiles.dims, (), tiles, None, partial, subgroups, **common)
    if len(tiles.devices) < 2:
        raise TextError("a tiled sharding names more than one device", position)
    return Sharding("tiled", tiles.dims, tiles.devices, None, None, partial, subgroups, **common)


def _only_device(given: dict[str, Any], position: int | None) -> int:
    tiles = given.get("devices")
    if "device" in given:
        return int(given["device"])
    if isinstance(tiles, _DeviceList) and len(tiles.devices) == 1:
        return tiles.devices[0]
    raise TextError("a maximal sharding names exactly one device", position)


def _mesh_with_order(children: list[Any]) -> Mesh:
    """The mesh, with the device order that follows it, if one does."""
    mesh, order = children[0], children[1]
    sizes = tuple(size for _, size in mesh.axes)
    if isinstance(order, IotaTiles) and len(order.reshape_dims) > 1:
        return Mesh(mesh.axes, iota=IotaTiles(sizes, order.reshape_dims, order.permutation))
    is_list = isinstance(order, tuple) and bool(order) and isinstance(order[0], int)
    if is_list and len(order) != prod(sizes):
        raise TextError(f"a mesh of {prod(sizes)} devices is given {len(order)}")
    return Mesh(mesh.axes, device_ids=order) if is_list else mesh


def _used_axes(named: NamedSharding) -> set[str]:
    groups = (*(d.axes for d in named.dims), named.replicated, named.unreduced, named.manual)
    return {axis.name for axes in groups for axis in axes}


def _metadata_of(children: list[Any]) -> tuple[Metadata, ...]:
    items = (child for child in children if isinstance(child, _Item))
    return next((item.value for item in items), ())
