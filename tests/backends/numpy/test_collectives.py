"""Collectives against their definitions, for every way to form groups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from support.devices import Grid, header, run_devices
from support.differential import Array, parse

from hlotool.backends.numpy import NumpyBackend
from hlotool.errors import Unsupported, VerificationError
from hlotool.ir.devices import DeviceGrid

REDUCERS = """
add { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = f32[] add(a, b) }
max { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = f32[] maximum(a, b) }
halve { a = f32[] parameter(0)
 b = f32[] parameter(1)
 h = f32[] constant(0.5)
 m = f32[] multiply(a, h)
 ROOT c = f32[] add(m, b) }
"""


@dataclass(frozen=True)
class Case:
    """A way to form groups: the attributes that say so and the devices it means."""

    grid: Grid
    attributes: str
    groups: tuple[tuple[int, ...], ...]

    def __str__(self) -> str:
        return f"{self.grid} {self.attributes}"


#: Only opcodes with `use_global_device_ids`.
WIDE = [
    Case((2, 2), "channel_id=1, replica_groups={{1,0}}", ((2, 3, 0, 1),)),
    Case((4, 2), "channel_id=1, replica_groups={{0,3},{1,2}}", ((0, 1, 6, 7), (2, 3, 4, 5))),
    Case((1, 2), "channel_id=1, use_global_device_ids=true, replica_groups={{1,0}}", ((1, 0),)),
    Case((1, 4), "channel_id=1, use_global_device_ids=true, replica_groups=[2,2]<=[4]", ((0, 1), (2, 3))),
    Case(
        (2, 4),
        "channel_id=1, use_global_device_ids=true, replica_groups=[4,2]<=[2,4]T(1,0)",
        ((0, 4), (1, 5), (2, 6), (3, 7)),
    ),
    Case(
        (1, 8),
        "channel_id=1, use_global_device_ids=true, replica_groups=mesh['x'=4,'y'=2] {'x':(2)2,'y'}",
        ((0, 1, 2, 3), (4, 5, 6, 7)),
    ),
]
EVERYWHERE = [
    Case((2, 1), "replica_groups={}", ((0, 1),)),
    Case((3, 2), "replica_groups={}", ((0, 2, 4), (1, 3, 5))),
    Case((4, 1), "replica_groups={{0,2},{3,1}}", ((0, 2), (3, 1))),
    Case((7, 1), "replica_groups={{6,5,4,3,2,1,0}}", ((6, 5, 4, 3, 2, 1, 0),)),
    Case((2, 1), "replica_groups={{0},{1}}", ((0,), (1,))),
]
PARTITIONS = [
    Case((1, 3), "channel_id=1, replica_groups={{2,0,1}}", ((2, 0, 1),)),
    Case((2, 4), "channel_id=2, replica_groups={{3,0},{1,2}}", ((3, 0), (7, 4), (1, 2), (5, 6))),
]

by_reduction = pytest.mark.parametrize("case", EVERYWHERE + WIDE, ids=str)
by_exchange = pytest.mark.parametrize("case", EVERYWHERE + PARTITIONS, ids=str)


def operands(case: Case, *dims: int) -> list[Array]:
    """One array of small integers per device."""
    rng = np.random.default_rng(len(str(case)))
    return [rng.integers(-9, 9, dims).astype(np.float32) for _ in range(case.grid[0] * case.grid[1])]


def check(case: Case, values: list[Array], line: str, expected: Callable[[list[Array]], list[Array]]) -> None:
    """`line` computes `y` from `x`; `expected` says what the members of one group get."""
    dims = ",".join(map(str, values[0].shape))
    text = f"{header(case.grid)}\n{REDUCERS}\nENTRY e {{\n x = f32[{dims}] parameter(0)\n ROOT {line}\n}}"
    results = run_devices(text, [[value] for value in values], case.grid)
    assert sorted(device for group in case.groups for device in group) == list(range(len(values)))
    for group in case.groups:
        for device, wanted in zip(group, expected([values[member] for member in group])):
            (result,) = results[device]
            np.testing.assert_array_equal(result, wanted)
            assert result.dtype == np.float32


def shape(dims: list[int]) -> str:
    return f"f32[{','.join(map(str, dims))}]"


@by_reduction
@pytest.mark.parametrize("reducer", ["add", "max", "halve"])
def test_all_reduce(case: Case, reducer: str) -> None:
    def folded(members: list[Array]) -> list[Array]:
        total = members[0]
        for member in members[1:]:
            if reducer == "max":
                total = np.maximum(total, member)
            else:
                total = total * np.float32(0.5 if reducer == "halve" else 1) + member
        return [total] * len(members)

    line = f"y = f32[3,2] all-reduce(x), {case.attributes}, to_apply={reducer}"
    check(case, operands(case, 3, 2), line, folded)


@by_reduction
@pytest.mark.parametrize("axis", [0, 1])
def test_all_gather(case: Case, axis: int) -> None:
    dims = [2, 3]
    dims[axis] *= len(case.groups[0])
    line = f"y = {shape(dims)} all-gather(x), dimensions={{{axis}}}, {case.attributes}"
    check(case, operands(case, 2, 3), line, lambda m: [np.concatenate(m, axis)] * len(m))


@by_reduction
def test_reduce_scatter(case: Case) -> None:
    size = len(case.groups[0])
    line = f"y = f32[2,3] reduce-scatter(x), dimensions={{0}}, {case.attributes}, to_apply=add"
    check(
        case,
        operands(case, 2 * size, 3),
        line,
        lambda members: np.split(np.sum(members, 0, dtype=np.float32), size),
    )


@by_exchange
@pytest.mark.parametrize("axis", [0, 1])
def test_all_to_all_of_an_array(case: Case, axis: int) -> None:
    size = len(case.groups[0])
    dims = [2, 3]
    dims[axis] *= size
    line = f"y = {shape(dims)} all-to-all(x), dimensions={{{axis}}}, {case.attributes}"

    def traded(members: list[Array]) -> list[Array]:
        pieces = [np.split(member, size, axis) for member in members]
        return [np.concatenate([piece[i] for piece in pieces], axis) for i in range(size)]

    check(case, operands(case, *dims), line, traded)


@pytest.mark.parametrize("opcode", ["all-reduce", "all-gather"])
def test_start_and_done(opcode: str) -> None:
    case = EVERYWHERE[2]
    gather = opcode == "all-gather"
    result = "f32[4]" if gather else "f32[2]"
    started = "(f32[2], f32[4])" if gather else "f32[2]"
    extra = "dimensions={0}" if gather else "to_apply=add"
    lines = (
        f"s = {started} {opcode}-start(x), {case.attributes}, {extra}\n ROOT y = {result} {opcode}-done(s)"
    )
    values = operands(case, 2)
    text = f"{header(case.grid)}\n{REDUCERS}\nENTRY e {{\n x = f32[2] parameter(0)\n {lines}\n}}"
    results = run_devices(text, [[value] for value in values], case.grid)
    for group in case.groups:
        members = [values[member] for member in group]
        wanted = np.concatenate(members) if gather else sum(members)
        for device in group:
            np.testing.assert_array_equal(results[device][0], wanted)


def test_several_operands() -> None:
    text = f"""{header((4, 1))}
{REDUCERS}
ENTRY e {{
 x = f32[2] parameter(0)
 z = f32[] parameter(1)
 ROOT y = (f32[2], f32[]) all-reduce(x, z), replica_groups={{{{0,2}},{{3,1}}}}, to_apply=add
}}"""
    arguments = [[np.float32([d, 10 * d]), np.float32(100 * d)] for d in range(4)]
    results = run_devices(text, arguments, (4, 1))
    assert [[leaf.tolist() for leaf in device] for device in results] == [
        [[2, 20], 200],
        [[4, 40], 400],
        [[2, 20], 200],
        [[4, 40], 400],
    ]


def test_all_to_all_of_a_tuple() -> None:
    text = f"""{header((1, 2))}
ENTRY e {{
 a = s32[2] parameter(0)
 b = s32[2] parameter(1)
 ROOT y = (s32[2], s32[2]) all-to-all(a, b), channel_id=1, replica_groups={{{{1,0}}}}
}}"""
    arguments = [[np.int32([d, 0]), np.int32([d, 1])] for d in range(2)]
    results = run_devices(text, arguments, (1, 2))
    assert [[leaf.tolist() for leaf in device] for device in results] == [
        [[1, 1], [0, 1]],
        [[1, 0], [0, 0]],
    ]


def test_sums_round_once() -> None:
    text = f"""{header((8, 1))}
{REDUCERS}
ENTRY e {{
 x = f32[] parameter(0)
 ROOT y = f32[] all-reduce(x), replica_groups={{}}, to_apply=add
}}"""
    arguments = [[np.float32(2**24 if d == 0 else 1)] for d in range(8)]
    assert run_devices(text, arguments, (8, 1))[3][0] == 2**24 + 8


@pytest.mark.parametrize("starts", [False, True])
def test_collective_permute(starts: bool) -> None:
    attributes = "source_target_pairs={{0,1},{1,2},{3,3}}, channel_id=1"
    body = f"ROOT y = f32[1] collective-permute(x), {attributes}"
    if starts:
        body = (
            f"s = (f32[1], f32[1], u32[], u32[]) collective-permute-start(x), {attributes}\n"
            " ROOT y = f32[1] collective-permute-done(s)"
        )
    text = f"{header((2, 4))}\nENTRY e {{\n x = f32[1] parameter(0)\n {body}\n}}"
    results = run_devices(text, [[np.float32([d + 1])] for d in range(8)], (2, 4))
    assert [float(result[0][0]) for result in results] == [0, 1, 2, 4, 0, 5, 6, 8]


def test_collective_permute_of_several_arrays() -> None:
    text = f"""{header((2, 1))}
ENTRY e {{
 a = s32[] parameter(0)
 b = s32[2] parameter(1)
 ROOT y = (s32[], s32[2]) collective-permute(a, b), source_target_pairs={{{{0,1}}}}
}}"""
    results = run_devices(text, [[np.int32(d + 1), np.int32([d + 2] * 2)] for d in range(2)], (2, 1))
    assert [[leaf.tolist() for leaf in device] for device in results] == [[0, [0, 0]], [1, [2, 2]]]


def test_collective_broadcast() -> None:
    text = f"""{header((5, 1))}
ENTRY e {{
 a = s32[] parameter(0)
 ROOT y = s32[] collective-broadcast(a), replica_groups={{{{2,1}},{{4,3}}}}
}}"""
    results = run_devices(text, [[np.int32(d + 1)] for d in range(5)], (5, 1))
    assert [int(result[0]) for result in results] == [0, 3, 3, 5, 5]


def test_ragged_all_to_all() -> None:
    """The example of operation_semantics.md."""
    text = f"""{header((2, 1))}
ENTRY e {{
 i = s32[3] parameter(0)
 o = s32[4] parameter(1)
 io = s32[2] parameter(2)
 n = s32[2] parameter(3)
 oo = s32[2] parameter(4)
 r = s32[2] parameter(5)
 ROOT y = s32[4] ragged-all-to-all(i, o, io, n, oo, r), replica_groups={{{{0,1}}}}
}}"""
    zeros = [0, 0, 0, 0]
    rows = [
        ([1, 2, 2], zeros, [0, 1], [1, 2], [0, 0], [1, 1]),
        ([3, 4, 0], zeros, [0, 1], [1, 1], [1, 2], [2, 1]),
    ]
    results = run_devices(text, [[np.int32(v) for v in row] for row in rows], (2, 1))
    assert [result[0].tolist() for result in results] == [[1, 3, 0, 0], [2, 2, 4, 0]]


def test_ragged_all_to_all_with_several_updates() -> None:
    text = f"""{header((2, 1))}
ENTRY e {{
 i = s32[4] parameter(0)
 o = s32[4] parameter(1)
 io = s32[2,2] parameter(2)
 n = s32[2,2] parameter(3)
 oo = s32[2,2] parameter(4)
 r = s32[2,2] parameter(5)
 ROOT y = s32[4] ragged-all-to-all(i, o, io, n, oo, r), replica_groups={{{{1,0}}}}
}}"""
    one = [[1, 1], [1, 1]]
    rows = [
        ([1, 2, 3, 4], [0] * 4, [[0, 1], [2, 3]], one, [[0, 2], [1, 3]], one),
        ([5, 6, 7, 8], [0] * 4, [[0, 1], [2, 3]], one, [[1, 3], [0, 2]], one),
    ]
    results = run_devices(text, [[np.int32(v) for v in row] for row in rows], (2, 1))
    assert [result[0].tolist() for result in results] == [[7, 3, 8, 4], [1, 5, 2, 6]]


def test_device_numbers() -> None:
    text = f"""{header((2, 3))}
ENTRY e {{
 p = u32[] partition-id()
 r = u32[] replica-id()
 ROOT y = (u32[], u32[]) tuple(p, r)
}}"""
    results = run_devices(text, [[] for _ in range(6)], (2, 3))
    assert [tuple(int(leaf) for leaf in device) for device in results] == [
        (0, 0),
        (1, 0),
        (2, 0),
        (0, 1),
        (1, 1),
        (2, 1),
    ]


def test_in_an_asynchronous_call() -> None:
    text = f"""{header((1, 2))}
wrapped {{
 q = f32[2] parameter(0)
 ROOT w = f32[2] all-to-all(q), channel_id=1, replica_groups={{{{0,1}}}}, dimensions={{0}}
}}
ENTRY e {{
 x = f32[2] parameter(0)
 s = ((f32[2]), f32[2]) async-start(x), calls=wrapped
 ROOT y = f32[2] async-done(s)
}}"""
    results = run_devices(text, [[np.float32([1, 2])], [np.float32([3, 4])]], (1, 2))
    assert [result[0].tolist() for result in results] == [[1, 3], [2, 4]]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("y = f32[1] all-reduce(x), replica_groups={{0,1}}, to_apply=add", "device 2 is in no group"),
        ("y = f32[1] all-reduce(x), replica_groups={{0,3,1,2}}, to_apply=add", "id 3 is out of range"),
    ],
)
def test_groups_that_do_not_fit(line: str, message: str) -> None:
    text = f"{header((3, 1))}\n{REDUCERS}\nENTRY e {{\n x = f32[1] parameter(0)\n ROOT {line}\n}}"
    with pytest.raises(VerificationError, match=message) as caught:
        NumpyBackend().compile_devices(parse(text), DeviceGrid(3))
    assert caught.value.instruction == "y"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "y = f32[1] all-reduce(x), replica_groups={{0,1}}, to_apply=add",
            "replica_groups of 2 participants; one device is executed",
        ),
        ("y = f32[1] all-reduce(x), replica_groups={}, to_apply=add", "the module has replica_count=2"),
        ("y = f32[1] collective-permute(x), source_target_pairs={{0,0}}", "the module has replica_count=2"),
        ("y = u32[] replica-id()", "the module has replica_count=2"),
    ],
)
def test_one_device_of_several_is_refused(line: str, message: str) -> None:
    text = f"{header((2, 1))}\n{REDUCERS}\nENTRY e {{\n x = f32[1] parameter(0)\n ROOT {line}\n}}"
    with pytest.raises(Unsupported, match=message):
        NumpyBackend().compile(parse(text))
