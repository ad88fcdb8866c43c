"""Groups of devices: every form of replica groups, every mode."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlotool.errors import VerificationError
from hlotool.ir.attributes import AttributeValue, IotaTiles, Mesh, MeshAxis, MeshGroups, ReplicaGroups
from hlotool.ir.devices import (
    DeviceGrid,
    GroupMode,
    device_groups,
    device_pairs,
    expand_groups,
    group_mode,
    iota_order,
    order_along,
)
from hlotool.ir.module import Instruction
from hlotool.ir.types import TOKEN

MESH = Mesh((("x", 4), ("y", 2)))


def collective(opcode: str = "all-reduce", **attributes: AttributeValue) -> Instruction:
    return Instruction("c", opcode, TOKEN, (), attributes, line=7)


def explicit(*groups: tuple[int, ...]) -> ReplicaGroups:
    return ReplicaGroups(groups=groups)


def along(*axes: MeshAxis, mesh: Mesh = MESH) -> ReplicaGroups:
    return ReplicaGroups(mesh=MeshGroups(mesh, axes))


@pytest.mark.parametrize(
    ("opcode", "attributes", "mode"),
    [
        ("all-reduce", {}, GroupMode.CROSS_REPLICA),
        ("all-reduce", {"use_global_device_ids": False}, GroupMode.CROSS_REPLICA),
        ("all-reduce", {"channel_id": 1}, GroupMode.CROSS_REPLICA_AND_PARTITION),
        ("all-gather-start", {"channel_id": 1, "use_global_device_ids": True}, GroupMode.FLATTENED_ID),
        ("all-to-all", {}, GroupMode.CROSS_REPLICA),
        ("all-to-all", {"channel_id": 1}, GroupMode.CROSS_PARTITION),
        ("collective-permute", {"channel_id": 3}, GroupMode.CROSS_PARTITION),
    ],
)
def test_mode(opcode: str, attributes: dict[str, AttributeValue], mode: GroupMode) -> None:
    assert group_mode(collective(opcode, **attributes)) is mode


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        (explicit(), ()),
        (explicit((0, 2), (3, 1)), ((0, 2), (3, 1))),
        (ReplicaGroups(iota=IotaTiles((2, 4), (8,), (0,))), ((0, 1, 2, 3), (4, 5, 6, 7))),
        (ReplicaGroups(iota=IotaTiles((4, 2), (2, 4), (1, 0))), ((0, 4), (1, 5), (2, 6), (3, 7))),
        (along(MeshAxis("x")), ((0, 2, 4, 6), (1, 3, 5, 7))),
        (along(MeshAxis("y")), ((0, 1), (2, 3), (4, 5), (6, 7))),
        (along(MeshAxis("y"), MeshAxis("x")), ((0, 2, 4, 6, 1, 3, 5, 7),)),
        (along(MeshAxis("x", 2, 2)), ((0, 2), (1, 3), (4, 6), (5, 7))),
        (along(MeshAxis("x", 2, 2), MeshAxis("x", 1, 2)), ((0, 4, 2, 6), (1, 5, 3, 7))),
        (
            along(MeshAxis("x", 1, 2), mesh=Mesh(MESH.axes, iota=IotaTiles((4, 2), (2, 4), (1, 0)))),
            ((0, 2), (4, 6), (1, 3), (5, 7)),
        ),
        (along(MeshAxis("x"), mesh=Mesh((("x", 2), ("y", 1)), (1, 0))), ((1, 0),)),
        (along(MeshAxis("y"), mesh=Mesh((("x", 2), ("y", 1)))), ((0,), (1,))),
    ],
)
def test_groups(groups: ReplicaGroups, expected: tuple[tuple[int, ...], ...]) -> None:
    assert expand_groups(groups) == expected


@given(st.permutations(range(3)), st.tuples(*[st.integers(1, 4)] * 3))
def test_iota_is_reshape_transpose(permutation: list[int], sizes: tuple[int, int, int]) -> None:
    count = int(np.prod(sizes))
    expected = np.arange(count).reshape(sizes).transpose(permutation).ravel()
    assert iota_order(IotaTiles((count,), sizes, tuple(permutation))) == tuple(expected)


@given(st.permutations(["x", "y", "z"]), st.integers(0, 3))
def test_order_along_axes_is_a_transpose(names: list[str], count: int) -> None:
    mesh = Mesh((("x", 2), ("y", 3), ("z", 4)))
    rest = [name for name in "xyz" if name not in names[:count]]
    permutation = ["xyz".index(name) for name in names[:count] + rest]
    expected = np.arange(24).reshape(2, 3, 4).transpose(permutation).ravel()
    assert order_along(mesh, [MeshAxis(name) for name in names[:count]]) == tuple(expected)


GRID = DeviceGrid(2, 4)


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({}, ((0, 4), (1, 5), (2, 6), (3, 7))),
        ({"replica_groups": explicit((1,), (0,))}, ((4,), (5,), (6,), (7,), (0,), (1,), (2,), (3,))),
        ({"channel_id": 1}, ((0, 1, 2, 3, 4, 5, 6, 7),)),
        ({"channel_id": 1, "replica_groups": explicit((1,), (0,))}, ((4, 5, 6, 7), (0, 1, 2, 3))),
        (
            {
                "channel_id": 1,
                "use_global_device_ids": True,
                "replica_groups": explicit((0, 1, 4, 5), (2, 3, 6, 7)),
            },
            ((0, 1, 4, 5), (2, 3, 6, 7)),
        ),
    ],
)
def test_devices_of_an_all_reduce(
    attributes: dict[str, AttributeValue], expected: tuple[tuple[int, ...], ...]
) -> None:
    assert device_groups(collective(**attributes), GRID) == expected


def test_devices_across_partitions() -> None:
    instruction = collective("all-to-all", channel_id=1, replica_groups=explicit((3, 0), (1, 2)))
    assert device_groups(instruction, GRID) == ((3, 0), (7, 4), (1, 2), (5, 6))


def test_pairs() -> None:
    pairs = ((0, 1), (1, 0))
    across_replicas = collective("collective-permute", source_target_pairs=pairs)
    assert device_pairs(across_replicas, DeviceGrid(2, 2)) == ((0, 2), (1, 3), (2, 0), (3, 1))
    across_partitions = collective("collective-permute", source_target_pairs=pairs, channel_id=1)
    assert device_pairs(across_partitions, DeviceGrid(2, 2)) == ((0, 1), (2, 3), (1, 0), (3, 2))


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"use_global_device_ids": True}, "needs a channel_id"),
        ({"channel_id": 1, "use_global_device_ids": True}, "cannot be empty"),
        ({"replica_groups": explicit((0, 2))}, r"id 2 is out of range \[0, 2\) for 2 replicas of 4"),
        ({"replica_groups": explicit((0,), (1, 0))}, "id 0 occurs twice"),
        ({"replica_groups": ReplicaGroups(iota=IotaTiles((2, 4), (9,), (0,)))}, "does not fit"),
        ({"replica_groups": ReplicaGroups(iota=IotaTiles((2,), (2,), (0,)))}, "two dimensions"),
        ({"replica_groups": along(MeshAxis("z"))}, "no axis 'z'"),
        ({"replica_groups": along(MeshAxis("x"), MeshAxis("x", 1, 2))}, "used twice"),
        ({"replica_groups": along(MeshAxis("x", 1, 3))}, "cannot be cut"),
        ({"replica_groups": along(MeshAxis("x", 2, 4))}, "no part of an axis of size 4"),
        ({"replica_groups": along(MeshAxis("x"), mesh=Mesh((("x", 4),), (0, 1)))}, "lists 2 devices"),
    ],
)
def test_bad_groups_name_the_instruction(attributes: dict[str, AttributeValue], message: str) -> None:
    with pytest.raises(VerificationError, match=message) as caught:
        device_groups(collective(**attributes), GRID)
    assert caught.value.instruction == "c"
    assert caught.value.location.line == 7


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        (((0, 1), (0, 2)), "id 0 occurs twice"),
        (((0, 9),), "id 9 is out of range"),
        (((0, 1, 2),), "pairs of ids"),
    ],
)
def test_bad_pairs(pairs: tuple[tuple[int, ...], ...], message: str) -> None:
    with pytest.raises(VerificationError, match=message):
        device_pairs(collective("collective-permute", source_target_pairs=pairs), DeviceGrid(4))
