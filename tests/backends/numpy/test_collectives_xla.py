"""Collectives against real XLA on up to eight devices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.devices import Grid, check_devices, header

from hlotool.lab.conformance.generators.cases import random_array

pytestmark = pytest.mark.xla


def reducer(opcode: str, kind: str) -> str:
    return f"r {{ a = {kind}[] parameter(0)\n b = {kind}[] parameter(1)\n ROOT c = {kind}[] {opcode}(a, b) }}"


def module(grid: Grid, line: str, kind: str = "f32", dims: str = "[8,8]", reduce: str = "add") -> str:
    return f"""{header(grid)}
{reducer(reduce, kind)}
ENTRY e {{
 x = {kind}{dims} parameter(0)
 ROOT y = {line}
}}"""


def arguments(grid: Grid, kind: str, *shape: int, limit: int = 9) -> list[list[Any]]:
    rng = np.random.default_rng(len(kind) + grid[0])
    return [[random_array(rng, kind, shape, limit)] for _ in range(grid[0] * grid[1])]


#: Groups of 8 devices: grid, attributes, size of the groups. The first list suits every collective.
#: A mesh with its own device order is left out: on the way to XLA through StableHLO the order is lost.
FORMS: list[tuple[Grid, str, int]] = [
    ((8, 1), "replica_groups={}", 8),
    ((8, 1), "replica_groups={{0,2,4,6},{7,5,3,1}}", 4),
    ((8, 1), "replica_groups=[4,2]<=[2,4]T(1,0)", 2),
    ((4, 2), "replica_groups={{0,3},{2,1}}", 2),
    ((4, 2), "replica_groups={}", 4),
    ((8, 1), "replica_groups={{7},{6},{5},{4},{3},{2},{1},{0}}", 1),
]
GLOBAL_FORMS: list[tuple[Grid, str, int]] = [
    ((1, 8), "channel_id=1, use_global_device_ids=true, replica_groups={{0,2,4,6},{7,5,3,1}}", 4),
    ((1, 8), "channel_id=1, use_global_device_ids=true, replica_groups=[2,4]<=[4,2]T(1,0)", 4),
    ((2, 4), "channel_id=1, use_global_device_ids=true, replica_groups={{0,5},{4,1},{2,7},{3,6}}", 2),
    ((4, 2), "channel_id=1, replica_groups={{3,0},{1,2}}", 4),
    (
        (1, 8),
        "channel_id=1, use_global_device_ids=true, replica_groups=mesh['x'=4,'y'=2] {'x':(2)2,'x':(1)2}",
        4,
    ),
    ((1, 8), "channel_id=1, use_global_device_ids=true, replica_groups=mesh['x'=4,'y'=2] {'y','x'}", 8),
]
PARTITION_FORMS: list[tuple[Grid, str, int]] = [
    ((1, 8), "channel_id=1, replica_groups={{0,2,4,6},{7,5,3,1}}", 4),
    ((2, 4), "channel_id=1, replica_groups={{3,0},{1,2}}", 2),
    ((1, 8), "channel_id=1, replica_groups=[4,2]<=[2,4]T(1,0)", 2),
]
reducing = pytest.mark.parametrize(("grid", "groups", "size"), FORMS + GLOBAL_FORMS)
#: XLA takes an all-to-all of one array only with its groups spelled out.
exchanging = pytest.mark.parametrize(
    ("grid", "groups", "size"), [form for form in FORMS if "{}" not in form[1]] + PARTITION_FORMS
)


@reducing
def test_all_reduce(grid: Grid, groups: str, size: int) -> None:
    text = module(grid, f"f32[8,8] all-reduce(x), {groups}, to_apply=r")
    check_devices(text, arguments(grid, "f32", 8, 8), grid, steps=size)


@reducing
@pytest.mark.parametrize("axis", [0, 1])
def test_all_gather(grid: Grid, groups: str, size: int, axis: int) -> None:
    dims = [8, 8]
    dims[axis] *= size
    text = module(grid, f"f32[{dims[0]},{dims[1]}] all-gather(x), dimensions={{{axis}}}, {groups}")
    check_devices(text, arguments(grid, "f32", 8, 8), grid)


@reducing
@pytest.mark.parametrize("axis", [0, 1])
def test_reduce_scatter(grid: Grid, groups: str, size: int, axis: int) -> None:
    dims = [8, 8]
    dims[axis] //= size
    line = f"f32[{dims[0]},{dims[1]}] reduce-scatter(x), dimensions={{{axis}}}, {groups}, to_apply=r"
    check_devices(module(grid, line), arguments(grid, "f32", 8, 8), grid, steps=size)


@exchanging
@pytest.mark.parametrize("axis", [0, 1])
def test_all_to_all(grid: Grid, groups: str, size: int, axis: int) -> None:
    text = module(grid, f"f32[8,8] all-to-all(x), dimensions={{{axis}}}, {groups}")
    check_devices(text, arguments(grid, "f32", 8, 8), grid)


@pytest.mark.parametrize(
    ("grid", "pairs"),
    [
        ((8, 1), "{{0,1},{1,2},{2,0},{4,4},{6,7}}"),
        ((4, 2), "{{0,1},{1,0},{3,2}}"),
        ((1, 8), "{{7,0},{0,1}}, channel_id=1"),
        ((2, 4), "{{0,3},{3,0},{1,1}}, channel_id=1"),
    ],
)
def test_collective_permute(grid: Grid, pairs: str) -> None:
    text = module(grid, f"f32[8,8] collective-permute(x), source_target_pairs={pairs}")
    check_devices(text, arguments(grid, "f32", 8, 8), grid)


@pytest.mark.parametrize("opcode", ["add", "multiply", "maximum", "minimum"])
@pytest.mark.parametrize("kind", ["f32", "bf16", "f16", "f64", "s32", "u8", "s64", "c64"])
def test_reducers(opcode: str, kind: str) -> None:
    if kind == "c64" and opcode in ("maximum", "minimum"):
        pytest.skip("no order on complex numbers")
    grid = (4, 1)
    text = module(grid, f"{kind}[8,8] all-reduce(x), to_apply=r", kind, reduce=opcode)
    check_devices(text, arguments(grid, kind, 8, 8), grid, steps=8)


@pytest.mark.parametrize("opcode", ["and", "or", "maximum", "minimum"])
def test_reducers_of_pred(opcode: str) -> None:
    text = module((4, 1), "pred[8,8] all-reduce(x), to_apply=r", "pred", reduce=opcode)
    check_devices(text, arguments((4, 1), "pred", 8, 8), (4, 1))


@pytest.mark.parametrize("count", [2, 3, 5, 7])
def test_any_number_of_devices(count: int) -> None:
    text = f"""{header((1, count))}
{reducer("add", "s32")}
ENTRY e {{
 x = s32[4] parameter(0)
 p = u32[] partition-id()
 q = s32[] convert(p)
 b = s32[4] broadcast(q), dimensions={{}}
 z = s32[4] add(x, b)
 a = s32[4] all-reduce(z), channel_id=1, use_global_device_ids=true, replica_groups=[1,{count}]<=[{count}], to_apply=r
 g = s32[{4 * count}] all-gather(z), channel_id=2, dimensions={{0}}, use_global_device_ids=true, replica_groups=[1,{count}]<=[{count}]
 ROOT t = (s32[4], s32[{4 * count}]) tuple(a, g)
}}"""  # noqa: E501 - one instruction per line
    check_devices(text, arguments((1, count), "s32", 4), (1, count))


def test_several_operands() -> None:
    text = f"""{header((8, 1))}
{reducer("add", "f32")}
ENTRY e {{
 x = f32[4,2] parameter(0)
 z = f32[3] parameter(1)
 v = (f32[4,2], f32[3]) all-reduce(x, z), replica_groups=[2,4]<=[8], to_apply=r
 a = f32[4,2] get-tuple-element(v), index=0
 b = f32[3] get-tuple-element(v), index=1
 ROOT t = (f32[4,2], f32[3]) tuple(a, b)
}}"""
    rng = np.random.default_rng(0)
    values = [[rng.integers(-9, 9, dims).astype(np.float32) for dims in ((4, 2), (3,))] for _ in range(8)]
    check_devices(text, values, (8, 1))


@pytest.mark.parametrize("grid", [(4, 1), (1, 4)])
def test_all_to_all_of_a_tuple(grid: Grid) -> None:
    channel = "channel_id=1, " if grid[1] > 1 else ""
    text = f"""{header(grid)}
ENTRY e {{
 a = f32[2] parameter(0)
 b = f32[2] parameter(1)
 v = (f32[2], f32[2]) all-to-all(a, b), {channel}replica_groups={{{{3,0}},{{1,2}}}}
 c = f32[2] get-tuple-element(v), index=0
 d = f32[2] get-tuple-element(v), index=1
 ROOT t = (f32[2], f32[2]) tuple(d, c)
}}"""
    values = [[np.float32([d, i]) for i in range(2)] for d in range(4)]
    check_devices(text, values, grid)


def test_in_a_loop() -> None:
    """Each device adds its neighbour's value again and again."""
    text = f"""{header((1, 4))}
body {{
 s = (s32[], s32[2]) parameter(0)
 i = s32[] get-tuple-element(s), index=0
 x = s32[2] get-tuple-element(s), index=1
 one = s32[] constant(1)
 j = s32[] subtract(i, one)
 n = s32[2] collective-permute(x), channel_id=1, source_target_pairs={{{{0,1}},{{1,2}},{{2,3}},{{3,0}}}}
 y = s32[2] add(x, n)
 ROOT t = (s32[], s32[2]) tuple(j, y)
}}
cond {{
 s = (s32[], s32[2]) parameter(0)
 i = s32[] get-tuple-element(s), index=0
 zero = s32[] constant(0)
 ROOT p = pred[] compare(i, zero), direction=GT
}}
ENTRY e {{
 x = s32[2] parameter(0)
 n = s32[] constant(6)
 s = (s32[], s32[2]) tuple(n, x)
 w = (s32[], s32[2]) while(s), condition=cond, body=body
 ROOT r = s32[2] get-tuple-element(w), index=1
}}"""
    check_devices(text, [[np.int32([d, 10 * d])] for d in range(4)], (1, 4))
