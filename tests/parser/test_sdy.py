"""Shardy's text in frontend attributes."""

from __future__ import annotations

import pytest

from hlotool.ir.attributes import Mesh, MeshAxis, NamedSharding, ShardedDimension, Sharding
from hlotool.ir.printed_annotations import sharding_text
from hlotool.parser.shardy import parse_manual_axes, parse_meshes, parse_shardings

MESH = Mesh((("x", 4), ("y", 2)))


def test_meshes() -> None:
    text = (
        '{mesh = #sdy.mesh<["x"=4, "y"=2]>, turned = #sdy.mesh<["x"=2], device_ids=[1, 0]>,'
        " one = #sdy.mesh<[], device_ids=[3]>, empty_mesh = #sdy.mesh<[]>}"
    )
    assert parse_meshes(text) == {
        "mesh": MESH,
        "turned": Mesh((("x", 2),), (1, 0)),
        "one": Mesh((), maximal_device=3),
        "empty_mesh": Mesh(()),
    }


def test_one_sharding() -> None:
    (sharding,) = parse_shardings('#sdy.sharding<@mesh, [{\\"x\\"}, {}]>', {"mesh": MESH})
    dims = (ShardedDimension((MeshAxis("x"),)), ShardedDimension(()))
    assert sharding == Sharding("tiled", named=NamedSharding(MESH, dims))


@pytest.mark.parametrize(
    ("shardy", "expected"),
    [
        ("[]", "[]"),
        ('[{"x", "y"}, {?}]', "[{'x', 'y'}, {?}]"),
        ('[{"x":(2)2, ?}p3]', "[{'x':(2)2, ?}p3]"),
        ('[{}], replicated={"y"}, unreduced={"x":(1)2}', "[{}], replicated={'y'}, unreduced={'x':(1)2}"),
    ],
)
def test_forms(shardy: str, expected: str) -> None:
    (sharding,) = parse_shardings(f"#sdy.sharding_per_value<[<@mesh, {shardy}>]>", {"mesh": MESH})
    assert sharding_text(sharding) == f"{{mesh['x'=4,'y'=2], {expected}}}"


def test_several_shardings_and_meshes() -> None:
    text = '#sdy.sharding_per_value<[<@a, [{"x"}]>, <@b, []>, <mesh<["z"=2]>, [{"z"}]>, <@none, [{}]>]>'
    meshes = {"a": MESH, "b": Mesh((), maximal_device=1), "none": Mesh(())}
    first, second, third, fourth = parse_shardings(text, meshes)
    assert sharding_text(first) == "{mesh['x'=4,'y'=2], [{'x'}]}"
    assert sharding_text(second) == "{maximal_mesh[device_id=1]}"
    assert sharding_text(third) == "{mesh['z'=2], [{'z'}]}"
    assert sharding_text(fourth) == "{replicated}"


def test_manual_axes() -> None:
    assert parse_manual_axes('#sdy<manual_axes{\\"x\\", \\"y\\"}>') == ("x", "y")
    assert parse_manual_axes("#sdy<manual_axes{}>") == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("#sdy.shard<@mesh, []>", "expected '#sdy.sharding' at character 1"),
        ("#sdy.sharding<@other, []>", "the name of a mesh"),
        ('#sdy.sharding<@mesh, [{"x" "y"}]>', "expected ',' or '}'"),
        ("#sdy.sharding<@mesh, [{x}]>", "a name in quotes"),
        ('#sdy.sharding<@mesh, [{"x":(a)2}]>', "a number"),
        ("#sdy.sharding<@mesh, [], manual={}>", "'replicated' or 'unreduced'"),
        ("#sdy.sharding<@mesh, []> and more", "expected the end"),
        ("#sdy.sharding<@mesh, [", r"expected '\{' at character 23"),
        ("#sdy.sharding<@mesh,", "expected '\\['"),
    ],
)
def test_unreadable_text(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_shardings(text, {"mesh": MESH})
