"""Global arrays split over devices and put together again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlotool.facts.sharding import assemble, leaf_shardings, local_dims, split
from hlotool.ir.attributes import IotaTiles, Mesh, MeshAxis, NamedSharding, ShardedDimension, Sharding
from hlotool.ir.types import TOKEN, ArrayShape, ElementType, TupleShape

REPLICATED = Sharding("replicated")
UNREDUCED = Sharding("unreduced")


def tiled(dims: tuple[int, ...], devices: tuple[int, ...], *kinds: str) -> Sharding:
    return Sharding("tiled", dims, devices, last_tile_dims=kinds)


def iota(
    dims: tuple[int, ...], reshape: tuple[int, ...], permutation: tuple[int, ...], replicate: bool = False
) -> Sharding:
    tiles = IotaTiles(dims, reshape, permutation)
    return Sharding("tiled", dims, iota=tiles, last_tile_dim_replicate=replicate)


def named(*dims: tuple[MeshAxis, ...], unreduced: tuple[MeshAxis, ...] = ()) -> Sharding:
    mesh = Mesh((("x", 4), ("y", 2)))
    return Sharding("tiled", named=NamedSharding(mesh, tuple(map(ShardedDimension, dims)), (), unreduced))


@st.composite
def tilings(draw: st.DrawFn) -> Sharding:
    """Tilings of two dimensions over eight devices in any order, with copies and summands."""
    factors = draw(st.permutations([2, 2, 2, 1]))
    kinds = draw(st.permutations(["replicated", "unreduced"]))
    merge = draw(st.booleans())
    order = tuple(draw(st.permutations(range(8))))
    if merge:
        return Sharding(
            "tiled", (factors[0], factors[1], factors[2] * factors[3]), order, last_tile_dim_replicate=True
        )
    return tiled(tuple(factors), order, *kinds)


@given(tilings(), st.tuples(st.integers(0, 9), st.integers(0, 9)))
def test_what_was_split_comes_together_again(sharding: Sharding, dims: tuple[int, int]) -> None:
    array = np.arange(1, 1 + dims[0] * dims[1], dtype=np.int32).reshape(dims)
    parts = split(array, sharding, 8)
    assert {part.shape for part in parts} == {local_dims(dims, sharding, 8)}
    result, disagreement = assemble(parts, dims, sharding)
    np.testing.assert_array_equal(result, array)
    assert disagreement is None


def test_tiles_follow_the_device_order() -> None:
    parts = split(np.arange(6), tiled((3,), (2, 0, 1)), 3)
    assert [part.tolist() for part in parts] == [[2, 3], [4, 5], [0, 1]]


def test_uneven_tiles_are_padded_with_zeros() -> None:
    parts = split(np.arange(1, 6), tiled((4,), (0, 1, 2, 3)), 4)
    assert [part.tolist() for part in parts] == [[1, 2], [3, 4], [5, 0], [0, 0]]


def test_partial_replication() -> None:
    parts = split(np.arange(4), iota((2, 2), (2, 2), (1, 0), replicate=True), 4)
    assert [part.tolist() for part in parts] == [[0, 1], [2, 3], [0, 1], [2, 3]]


def test_named_axes_and_parts_of_axes() -> None:
    minor_half = MeshAxis("x", 2, 2)
    parts = split(np.arange(4), named((minor_half, MeshAxis("y"))), 8)
    assert [int(part[0]) for part in parts] == [0, 1, 2, 3, 0, 1, 2, 3]


def test_scalars() -> None:
    sharding = named()
    parts = split(np.array(7), sharding, 8)
    result, disagreement = assemble(parts, (), sharding)
    assert (result, result.shape, disagreement) == (7, (), None)
    _, disagreement = assemble([*parts[:7], np.array(8)], (), sharding)
    assert str(disagreement) == "devices 0 and 7 should hold copies, but at [] one holds 7, the other 8"


def test_summands_are_added() -> None:
    parts = [np.array([1.0, 2.0]), np.array([10.0, 20.0])]
    assert assemble(parts, (2,), UNREDUCED)[0].tolist() == [11.0, 22.0]
    along_x = named((MeshAxis("y"),), unreduced=(MeshAxis("x"),))
    assert assemble([np.array([d]) for d in range(8)], (2,), along_x)[0].tolist() == [12, 16]


def test_only_the_maximal_device_counts() -> None:
    parts = [np.array([0]), np.array([5])]
    assert assemble(parts, (1,), Sharding("maximal", device=1)) == (np.array([5]), None)


def test_a_disagreement_names_devices_and_place() -> None:
    sharding = tiled((2, 2), (0, 1, 2, 3), "replicated")
    parts = split(np.arange(8.0), sharding, 4)
    parts[3] = np.array([4.0, 5.0, 66.0, 7.0])
    array, disagreement = assemble(parts, (8,), sharding)
    assert array.tolist() == list(range(8))
    assert disagreement is not None
    assert (disagreement.devices, disagreement.index, disagreement.values) == ((2, 3), (6,), (6.0, 66.0))


def test_equal_nans_agree_and_padding_does_not_matter() -> None:
    sharding = tiled((2, 2), (0, 1, 2, 3), "replicated")
    nan = float("nan")
    parts = [np.array([nan, 1.0])] * 2 + [np.array([2.0, 3.0]), np.array([2.0, 4.0])]
    assert assemble(parts, (3,), sharding)[1] is None


@pytest.mark.parametrize(
    ("sharding", "message"),
    [
        (tiled((2, 2), (0, 1, 2, 3)), "a sharding of 2 dimensions on an array of 1"),
        (tiled((2,), (0, 1)), "over 2 devices for a program on 4"),
        (tiled((4,), (0, 1, 2, 2)), "not distinct"),
        (tiled((4,), (0, 1, 2, 4)), "below 4"),
        (tiled((4,), (0, 1)), "2 devices for 4 tiles"),
        (tiled((1, 4), (0, 1, 2, 3), "maximal"), "kind maximal"),
        (Sharding("unknown"), "not known"),
        (Sharding("tuple"), "tuple sharding on an array"),
        (Sharding("maximal"), "without a device"),
    ],
)
def test_shardings_that_do_not_fit(sharding: Sharding, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        split(np.arange(4), sharding, 4)


def test_parts_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="device 1 holds dimensions"):
        assemble([np.zeros(2), np.zeros(3)], (4,), tiled((2,), (0, 1)))
    with pytest.raises(ValueError, match="manual"):
        assemble([np.zeros(2)] * 2, (2,), Sharding("manual"))


F32 = ArrayShape(ElementType.F32, (4,))


def test_tuples() -> None:
    shape = TupleShape((F32, TupleShape((F32, TOKEN))))
    by_halves = tiled((2,), (0, 1))
    sharding = Sharding("tuple", elements=(by_halves, REPLICATED, REPLICATED))
    assert leaf_shardings(shape, sharding) == [by_halves, REPLICATED, REPLICATED]
    assert leaf_shardings(shape, REPLICATED) == [REPLICATED] * 3
    with pytest.raises(ValueError, match="2 elements for 3 leaves"):
        leaf_shardings(shape, Sharding("tuple", elements=(REPLICATED, REPLICATED)))
