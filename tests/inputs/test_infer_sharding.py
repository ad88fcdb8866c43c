"""Shardings of results, found from the values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hlotool.facts.sharding import assemble, placement, split
from hlotool.inputs.infer_sharding import arrangements, infer_sharding, part_counts
from hlotool.ir.attributes import IotaTiles, Mesh, Sharding
from hlotool.ir.printed_annotations import sharding_text

MESH = Mesh((("x", 4), ("y", 2)))


def iota(dims: tuple[int, ...], reshape: tuple[int, ...], permutation: tuple[int, ...]) -> Sharding:
    tiles = IotaTiles(dims, reshape, permutation)
    return Sharding("tiled", dims, iota=tiles, last_tile_dim_replicate=len(dims) > 2)


SHARDINGS = [
    iota((4, 2), (8,), (0,)),
    iota((2, 4), (4, 2), (1, 0)),
    iota((8, 1), (8,), (0,)),
    iota((1, 4, 2), (8,), (0,)),
    iota((2, 1, 4), (4, 2), (1, 0)),
    iota((2, 2, 2), (2, 2, 2), (1, 0, 2)),
    iota((1, 8), (2, 4), (1, 0)),
    Sharding("replicated"),
]


@settings(max_examples=30)
@given(st.sampled_from(SHARDINGS), st.sampled_from([[], [MESH]]), st.tuples(*[st.integers(1, 12)] * 2))
def test_the_arrangement_is_found(sharding: Sharding, meshes: list[Mesh], dims: tuple[int, int]) -> None:
    array = np.random.default_rng(1).standard_normal(dims).astype(np.float32)
    parts = [part + np.float32(1e-6) for part in split(array, sharding, 8)]
    found = infer_sharding(parts, array, meshes)
    whole, disagreement = assemble(parts, dims, found)
    np.testing.assert_allclose(whole, array, atol=1e-5)
    assert disagreement is None


def test_whole_axes_come_first() -> None:
    texts = [sharding_text(sharding) for sharding in arrangements(MESH, (4, 1))]
    assert texts[0] == "{mesh['x'=4,'y'=2], [{'x'}, {}]}"
    assert "{mesh['x'=4,'y'=2], [{'x':(2)2, 'y'}, {}]}" in texts
    assert len(texts) == len(set(texts)) == 6


def test_parts_in_the_opposite_order() -> None:
    array = np.arange(16.0)
    order = Sharding("tiled", (4, 2), (6, 7, 4, 5, 2, 3, 0, 1), last_tile_dim_replicate=True)
    found = infer_sharding(split(array, order, 8), array, [MESH])
    assert sharding_text(found) == "{devices=[4,2]6,7,4,5,2,3,0,1 last_tile_dim_replicate}"


def test_each_arrangement_once() -> None:
    found = {placement(sharding, 2, 8).devices.tobytes() for sharding in arrangements(MESH, (4, 2))}
    assert len(found) == 6


def test_equal_values_do_not_mislead() -> None:
    """All parts are alike: the natural order will do."""
    found = infer_sharding([np.zeros(2)] * 8, np.zeros(16), [MESH])
    assert sharding_text(found) == "{mesh['x'=4,'y'=2], [{'x', 'y'}]}"


def test_copies_that_differ_cannot_be_copies() -> None:
    """The values of two arrangements are equally close, but only one of them has equal copies."""
    array = np.array([1.0, 1.0])
    parts = [np.array([1.0 + 1e-7 * (d % 2)]) for d in range(8)]
    found = infer_sharding(parts, array, [MESH])
    assert sharding_text(found) == "{mesh['x'=4,'y'=2], [{'y'}]}"


def test_wrong_values_and_nan_do_not_break_it() -> None:
    sharding = iota((4, 2), (8,), (0,))
    array = np.arange(64.0).reshape(8, 8)
    parts = split(array, sharding, 8)
    parts[3] = np.full_like(parts[3], np.nan)
    found = infer_sharding(parts, array, [MESH])
    np.testing.assert_array_equal(placement(found, 2, 8).devices.ravel(), range(8))


def test_counts() -> None:
    assert list(part_counts((2, 5), (10, 5), 8)) == [(8, 1)]
    assert list(part_counts((3,), (10,), 8)) == [(4,)]
    assert list(part_counts((), (), 8)) == [()]
    assert list(part_counts((2,), (10, 5), 8)) == []


def test_parts_that_make_nothing() -> None:
    with pytest.raises(ValueError, match=r"parts of \[3\] on 8 devices do not make \[16\]"):
        infer_sharding([np.zeros(3)] * 8, np.zeros(16), [])
