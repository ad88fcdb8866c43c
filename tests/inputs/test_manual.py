"""Parts of arrays in manual regions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlotool.facts.sharding import along_axes, manual_parts
from hlotool.ir.attributes import IotaTiles, Mesh, MeshAxis, NamedSharding, ShardedDimension, Sharding

MESH = Mesh((("x", 4), ("y", 2)))


def named(*dims: str, mesh: Mesh = MESH) -> Sharding:
    """One letter per axis: `named("xy", "")`."""
    sharded = tuple(ShardedDimension(tuple(map(MeshAxis, names))) for names in dims)
    return Sharding("tiled", named=NamedSharding(mesh, sharded))


@given(
    st.permutations(range(8)), st.sampled_from([("x", "y"), ("y", "x"), ("xy", ""), ("", "yx"), ("y", "")])
)
def test_parts_make_the_whole(order: list[int], dims: tuple[str, str]) -> None:
    sharding = named(*dims, mesh=Mesh(MESH.axes, tuple(order)))
    array = np.arange(8 * 16).reshape(8, 16)
    sizes = {"x": 4, "y": 2}
    counts = [int(np.prod([sizes[name] for name in names], dtype=int)) for names in dims]
    parts = manual_parts(sharding, (8, 16), (8 // counts[0], 16 // counts[1]), 8)
    held = {device: parts.part(array, device) for device in range(8)}
    for device in range(8):
        members = parts.members(device)
        assert device in members
        np.testing.assert_array_equal(parts.whole([held[member] for member in members]), array)


def test_only_manual_axes_split() -> None:
    sharding = along_axes(named("xy", ""), ["x"])
    parts = manual_parts(sharding, (8, 3), (2, 3), 8)
    assert [parts.index(device) for device in range(8)] == [(0, 0)] * 2 + [(1, 0)] * 2 + [(2, 0)] * 2 + [
        (3, 0)
    ] * 2
    assert parts.members(5) == (1, 3, 5, 7)


def test_axes_left_to_the_compiler_come_last() -> None:
    """A dimension of 8 tiles of which 4 are manual: the others make neighbouring tiles."""
    sharding = Sharding("tiled", (8,), iota=IotaTiles((8,), (8,), (0,)))
    parts = manual_parts(sharding, (16,), (4,), 8)
    assert [parts.index(device)[0] for device in range(8)] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert parts.members(0) == (0, 2, 4, 6)


def test_scalars_are_whole() -> None:
    parts = manual_parts(named(), (), (), 8)
    assert parts.part(np.array(5), 3) == 5
    assert parts.whole([np.array(7)]) == 7
    assert parts.members(3) == (3,)


@pytest.mark.parametrize(
    ("whole", "part", "message"),
    [
        ((8,), (3,), r"parts \[3\] do not make up \[8\]"),
        ((9,), (3,), r"\[4\] tiles do not make up \[3\] parts"),
    ],
)
def test_shapes_that_do_not_fit(whole: tuple[int, ...], part: tuple[int, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        manual_parts(named("x"), whole, part, 8)


def test_axes_need_names() -> None:
    assert along_axes(Sharding("replicated"), ["x"]).kind == "replicated"
    with pytest.raises(ValueError, match="without named axes"):
        along_axes(Sharding("tiled", (2,), (0, 1)), ["x"])
