"""Placements against those of XLA and JAX on eight devices."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from support.xla import oracle

from hlotool.facts.sharding import placement
from hlotool.ir.attributes import IotaTiles, Mesh, MeshAxis, NamedSharding, ShardedDimension, Sharding
from hlotool.ir.printed_annotations import sharding_text

pytestmark = pytest.mark.xla

X, Y, MAJOR, MINOR = MeshAxis("x"), MeshAxis("y"), MeshAxis("x", 1, 2), MeshAxis("x", 2, 2)
MESHES = [
    Mesh((("x", 4), ("y", 2))),
    Mesh((("x", 4), ("y", 2)), device_ids=(7, 1, 6, 0, 5, 3, 4, 2)),
    Mesh((("x", 4), ("y", 2)), iota=IotaTiles((4, 2), (2, 4), (1, 0))),
]


def _named(mesh: Mesh, *dims: tuple[MeshAxis, ...], **axes: tuple[MeshAxis, ...]) -> Sharding:
    return Sharding("tiled", named=NamedSharding(mesh, tuple(map(ShardedDimension, dims)), **axes))


NAMED = [
    *(_named(mesh, (X,), (Y,)) for mesh in MESHES),
    *(_named(mesh, (Y, X), ()) for mesh in MESHES),
    *(_named(mesh, (), (X,)) for mesh in MESHES),
    *(_named(mesh, (MINOR,), (MAJOR, Y)) for mesh in MESHES),
    *(_named(mesh, (MINOR, Y), ()) for mesh in MESHES),
    *(_named(mesh, (MAJOR,), (), unreduced=(Y,)) for mesh in MESHES),
    *(_named(mesh, (), (MINOR,), unreduced=(Y,), manual=(MAJOR,)) for mesh in MESHES),
    *(_named(mesh, (Y,), (), manual=(X,)) for mesh in MESHES),
]
TILED = [
    Sharding("tiled", (2, 4), iota=IotaTiles((2, 4), (4, 2), (1, 0))),
    Sharding(
        "tiled", (2, 1, 4), iota=IotaTiles((2, 1, 4), (2, 2, 2), (1, 0, 2)), last_tile_dim_replicate=True
    ),
    Sharding("tiled", (2, 2, 2), (0, 2, 4, 6, 7, 5, 3, 1), last_tile_dim_replicate=True),
    Sharding(
        "tiled",
        (1, 2, 2, 2),
        iota=IotaTiles((1, 2, 2, 2), (2, 2, 2), (2, 0, 1)),
        last_tile_dims=("unreduced", "replicated"),
    ),
    Sharding("tiled", (1, 2, 2, 2), (0, 2, 4, 6, 7, 5, 3, 1), last_tile_dims=("replicated", "manual")),
]


@pytest.mark.parametrize("sharding", NAMED + TILED, ids=sharding_text)
def test_tiles_are_where_xla_puts_them(sharding: Sharding) -> None:
    _, dims, devices, kinds = oracle(8).placement(sharding_text(sharding))
    theirs = np.array(devices).reshape(dims)
    ours = placement(sharding, 2, 8)
    rank = theirs.ndim - len(kinds)
    assert ours.tiles == tuple(dims[:rank])
    order = ["replicated", "unreduced", "manual"]
    missing = [kind for kind in order if kind not in kinds]
    theirs = theirs.reshape([*dims, *(1 for _ in missing)])
    position = {kind: rank + i for i, kind in enumerate([*kinds, *missing])}
    theirs = theirs.transpose([*range(rank), *(position[kind] for kind in order)])
    np.testing.assert_array_equal(np.sort(ours.devices, axis=2), np.sort(theirs, axis=2))


SPECS: list[list[str | tuple[str, ...] | None]] = [
    *(list(entries) for entries in sorted(set(itertools.permutations(["x", "y", None, None], 2)), key=str)),
    [("x", "y"), None],
    [None, ("y", "x")],
    [("y", "x"), None],
]


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_slices_are_those_of_jax(spec: list[str | tuple[str, ...] | None]) -> None:
    dims = (16, 24)
    axes = [() if e is None else (e,) if isinstance(e, str) else e for e in spec]
    sharding = _named(MESHES[0], *(tuple(map(MeshAxis, names)) for names in axes))
    theirs = oracle(8).indices({"x": 4, "y": 2}, spec, dims)
    placed = placement(sharding, 2, 8)
    tiles = placed.tile_indices()
    ours = [[(s.start, s.stop) for s in placed.tile_slices(tiles[d], dims)] for d in range(8)]
    assert ours == [[tuple(pair) for pair in device] for device in theirs]
