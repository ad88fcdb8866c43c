"""Shardings in versions 1, 2 and 3, and replica groups."""

from __future__ import annotations

from typing import Any

import pytest
from support.hlo_text import COMPUTATIONS, instruction, program, rejected

from hlotool.ir.attributes import (
    IotaTiles,
    Mesh,
    MeshAxis,
    MeshGroups,
    Metadata,
    NamedSharding,
    ReplicaGroups,
    ShardedDimension,
    Sharding,
)

X = "x = f32[4] parameter(0)"
XY = Mesh((("x", 2), ("y", 2)))
AXES = (MeshAxis("x"), MeshAxis("y"))
METADATA = Metadata(op_name="a")


def sharding(text: str) -> Sharding | None:
    """What `sharding=…` says."""
    return instruction(f"{X}, sharding={text}").sharding


def groups(text: str) -> Any:
    """What `replica_groups=…` says."""
    line = f"y = f32[4] all-reduce(x), replica_groups={text}, to_apply=add"
    return instruction(X, line, computations=COMPUTATIONS).attributes["replica_groups"]


# Versions 1 and 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{replicated}", Sharding("replicated")),
        ("{manual}", Sharding("manual")),
        ("{unknown}", Sharding("unknown")),
        ("{unreduced}", Sharding("unreduced")),
        ("{maximal device=3}", Sharding("maximal", device=3)),
        ("{device=3 maximal}", Sharding("maximal", device=3)),
        ("{maximal devices=[1]3}", Sharding("maximal", device=3)),
        ("{devices=[2]0,1}", Sharding("tiled", (2,), (0, 1))),
        ("{devices=[2,2]3,2,1,0}", Sharding("tiled", (2, 2), (3, 2, 1, 0))),
        ("{devices=[4]<=[4]}", Sharding("tiled", (4,), iota=IotaTiles((4,), (4,), (0,)))),
        (
            "{devices=[4,1]<=[2,2]T(1,0)}",
            Sharding("tiled", (4, 1), iota=IotaTiles((4, 1), (2, 2), (1, 0))),
        ),
        (
            "{devices=[2,2]0,1,2,3 last_tile_dim_replicate}",
            Sharding("tiled", (2, 2), (0, 1, 2, 3), last_tile_dim_replicate=True),
        ),
        (
            "{devices=[2,2]0,1,2,3 last_tile_dims={manual}}",
            Sharding("tiled", (2, 2), (0, 1, 2, 3), last_tile_dims=("manual",)),
        ),
        ("{replicated shard_as 2}", Sharding("replicated", shard_group=("shard_as", 2))),
        ('{replicated metadata={op_name="a"}}', Sharding("replicated", metadata=(METADATA,))),
        (
            "{replicated metadata={{op_name=\"a\"}, {op_name='a'}}}",
            Sharding("replicated", metadata=(METADATA, METADATA)),
        ),
        (
            "{{replicated}, {maximal device=0}}",
            Sharding("tuple", elements=(Sharding("replicated"), Sharding("maximal", device=0))),
        ),
        ("{}", Sharding("tuple")),
    ],
)
def test_device_lists(text: str, expected: Sharding) -> None:
    assert sharding(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{devices=[2,2]0,1}", "4 tiles are given 2 devices"),
        ("{devices=[4]<=[2]}", "4 tiles are given 2 devices"),
        ("{devices=[1]0}", "a tiled sharding names more than one device"),
        ("{devices=[4]<=[2,2]}", "this device order takes a permutation T(…) of its 2 dimensions"),
        ("{devices=[4]<=[2,2]T(0,0)}", "this device order takes a permutation T(…) of its 2 dimensions"),
        ("{devices=[4]<=[4]T(0)}", "this device order takes no T(…)"),
        ("{maximal}", "a maximal sharding names exactly one device"),
        ("{maximal devices=[2]0,1}", "a maximal sharding names exactly one device"),
        ("{replicated device=1}", "a replicated sharding names no devices"),
        ("{shard_as 1}", "a tiled sharding needs devices=[…]"),
        ("{devices=[2,2]0,1,2,3 last_tile_dims={unknown}}", "last_tile_dims holds replicated, maximal, "),
        ("{devices=[2]0,1 last_tile_dim_replicate last_tile_dims={manual}}", "exclude each other"),
        ("{sideways}", "found sideways"),
        ("replicated", "expected '{', found replicated"),
    ],
)
def test_wrong_device_lists(text: str, message: str) -> None:
    assert message in rejected(program(f"{X}, sharding={text}")).message


# Version 3


def named(*dims: ShardedDimension, mesh: Mesh = XY, **parts: tuple[MeshAxis, ...]) -> Sharding:
    """A sharding by axes."""
    return Sharding("tiled", named=NamedSharding(mesh, dims, **parts))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{mesh['x'=2,'y'=2], [{'x','y'}, {}]}", named(ShardedDimension(AXES), ShardedDimension(()))),
        ('{mesh["x"=2,"y"=2], [{?}]}', named(ShardedDimension((), closed=False))),
        ("{mesh['x'=2,'y'=2], [{'x', ?}]}", named(ShardedDimension(AXES[:1], closed=False))),
        ("{mesh['x'=2,'y'=2], []}", named()),
        (
            "{mesh['x'=4], [{'x':(2)2}]}",
            named(ShardedDimension((MeshAxis("x", 2, 2),)), mesh=Mesh((("x", 4),))),
        ),
        (
            "{mesh['x'=2,'y'=2], [{}], replicated={'x'}, unreduced={'y'}}",
            named(ShardedDimension(()), replicated=AXES[:1], unreduced=AXES[1:]),
        ),
        (
            "{mesh['x'=2,'y'=2], device_ids=(3,2,1,0), [], manual={'x'}}",
            named(mesh=Mesh(XY.axes, (3, 2, 1, 0)), manual=AXES[:1]),
        ),
        (
            "{mesh['x'=2,'y'=2], device_ids=([2,2]T(1,0)), []}",
            named(mesh=Mesh(XY.axes, iota=IotaTiles((2, 2), (2, 2), (1, 0)))),
        ),
        ("{mesh['x'=2,'y'=2], replicated}", Sharding("replicated", named=NamedSharding(XY, ()))),
        (
            "{maximal_mesh[device_id=1]}",
            Sharding("maximal", device=1, named=NamedSharding(Mesh((), maximal_device=1), ())),
        ),
        (
            "{single_device[device_id=1]}",
            Sharding("maximal", device=1, named=NamedSharding(Mesh((), maximal_device=1), ())),
        ),
        (
            '{mesh[], manual, metadata={op_name="a"}}',
            Sharding("manual", named=NamedSharding(Mesh(()), ()), metadata=(METADATA,)),
        ),
    ],
)
def test_named_axes(text: str, expected: Sharding) -> None:
    assert sharding(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{mesh['x'=2,'x'=2], []}", "two axes of a mesh have the same name"),
        ("{mesh['x'=2], [{'y'}]}", "the mesh of the sharding has no axis 'y'"),
        ("{mesh['x'=2], device_ids=(0), []}", "a mesh of 2 devices is given 1"),
        ("{mesh['x'=2], [], manual={'x'}, manual={'x'}}", "parts of a sharding repeat"),
        ("{mesh['x'=2]}", "found '}'"),
    ],
)
def test_wrong_named_axes(text: str, message: str) -> None:
    assert message in rejected(program(f"{X}, sharding={text}")).message


# Replica groups


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{}", ReplicaGroups(groups=())),
        ("{{}}", ReplicaGroups(groups=((),))),
        ("{{0,1},{2,3}}", ReplicaGroups(groups=((0, 1), (2, 3)))),
        ("[2,2]<=[4]", ReplicaGroups(iota=IotaTiles((2, 2), (4,), (0,)))),
        ("[2,2]<=[2,2]T(1,0)", ReplicaGroups(iota=IotaTiles((2, 2), (2, 2), (1, 0)))),
        ("mesh['x'=2,'y'=2] {'x'}", ReplicaGroups(mesh=MeshGroups(XY, AXES[:1]))),
        (
            "mesh['x'=2,'y'=2], device_ids=(3,2,1,0) {'x','y'}",
            ReplicaGroups(mesh=MeshGroups(Mesh(XY.axes, (3, 2, 1, 0)), AXES)),
        ),
    ],
)
def test_replica_groups(text: str, expected: ReplicaGroups) -> None:
    assert groups(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[4]<=[4]", "replica groups in iota form have two dimensions"),
        ("[2,2]<=[2]", "4 tiles are given 2 devices"),
        ("{0,1}", "expected '{' or '}', found 0"),
        ("0", "found 0"),
    ],
)
def test_wrong_replica_groups(text: str, message: str) -> None:
    lines = (X, f"y = f32[4] all-reduce(x), replica_groups={text}, to_apply=add")
    assert message in rejected(program(*lines, computations=COMPUTATIONS)).message
