"""How many devices a program is for that does not say so."""

from __future__ import annotations

import pytest

import hlotool
from hlotool.ir.devices import DeviceGrid
from hlotool.ir.partitioning import inferred_grid

_GATHER = "all-gather(x), replica_groups={{0,1,2,3,4,5,6,7}}, dimensions={0}"
_FLATTENED = f"ROOT r = f32[16] {_GATHER}, channel_id=1, use_global_device_ids=true"
_PARTITION = "i = u32[] partition-id()"


def program(*lines: str, header: str = "") -> hlotool.Module:
    body = "\n".join(f"  {line}" for line in lines)
    return hlotool.parse(f"HloModule m{header}\n\nENTRY e {{\n  x = f32[2] parameter(0)\n{body}\n}}\n")


@pytest.mark.parametrize(
    ("lines", "grid"),
    [
        ((f"ROOT r = f32[16] {_GATHER}",), (8, 1)),
        ((f"ROOT r = f32[16] {_GATHER}, channel_id=1",), (8, 1)),
        ((_FLATTENED,), (8, 1)),
        ((_FLATTENED, _PARTITION), (1, 8)),
        (
            (
                _FLATTENED,
                _PARTITION,
                "j = u32[] replica-id()",
            ),
            (8, 1),
        ),
        (("ROOT r = f32[2] collective-permute(x), channel_id=1, source_target_pairs={{0,1},{1,2}}",), (1, 3)),
        (("ROOT r = f32[2] collective-permute(x), source_target_pairs={{0,1},{1,2}}",), (3, 1)),
        (("ROOT r = f32[2] negate(x)",), (1, 1)),
        (("ROOT r = f32[2] negate(x), sharding={devices=[4]<=[4]}",), (1, 4)),
        (("ROOT r = f32[2] negate(x), sharding={devices=[1,2]0,1 last_tile_dim_replicate}",), (1, 2)),
        (("ROOT r = f32[2] negate(x), sharding={replicated}",), (1, 1)),
        # Ids of the whole grid count the same devices as the tiles do, and as the pairs of partitions.
        (("y = f32[2] negate(x), sharding={devices=[8]<=[8]}", _FLATTENED), (1, 8)),
        (
            (
                "y = f32[2] collective-permute(x), channel_id=1, source_target_pairs={{0,1},{1,2}}",
                _FLATTENED,
            ),
            (1, 8),
        ),
    ],
)  # fmt: skip
def test_collectives_tell_how_many(lines: tuple[str, ...], grid: tuple[int, int]) -> None:
    assert inferred_grid(program(*lines)) == DeviceGrid(*grid)


def test_a_header_decides() -> None:
    lines = (
        _FLATTENED,
        _PARTITION,
    )
    assert inferred_grid(program(*lines, header=", replica_count=8")) == DeviceGrid(8, 1)
