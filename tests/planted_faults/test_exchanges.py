"""Every kind of wrong exchange makes a program for several devices wrong, and leaves it valid HLO."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hlotool
from hlotool.facts.sharding import split
from hlotool.ir.module import Module
from hlotool.ir.types import strip_layouts
from hlotool.ir.verifier import verify
from hlotool.lab.faults import DEVICES, FaultKind

#: Every collective on four devices, two by two in their groups.
TEXT = """HloModule exchanges, num_partitions=4
sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
ENTRY main {
  x = f32[4,4] parameter(0), sharding={devices=[2,2]<=[4]}
  r = f32[4,4] all-reduce(x), channel_id=1, replica_groups={{0,1},{2,3}}, use_global_device_ids=true,
    to_apply=sum
  g = f32[8,4] all-gather(x), channel_id=2, replica_groups=[2,2]<=[4], use_global_device_ids=true,
    dimensions={0}
  s = f32[2,4] reduce-scatter(x), channel_id=3, replica_groups={{0,2},{1,3}}, use_global_device_ids=true,
    dimensions={0}, to_apply=sum
  p = f32[4,4] collective-permute(x), channel_id=4, source_target_pairs={{0,1},{1,2},{2,3},{3,0}}
  n = f32[4,4] negate(x)
  t = (f32[4,4], f32[4,4]) all-to-all(x, n), channel_id=5, replica_groups={{0,1},{2,3}}
  t0 = f32[4,4] get-tuple-element(t), index=0
  t1 = f32[4,4] get-tuple-element(t), index=1
  id = u32[] partition-id()
  table = s32[4] constant({0,2,1,3})
  zero = s32[] constant(0)
  own = s32[1] dynamic-slice(table, id), dynamic_slice_sizes={1}
  start = s32[] reshape(own)
  d = f32[1,4] dynamic-slice(x, start, zero), dynamic_slice_sizes={1,4}
  ROOT out = (f32[4,4], f32[8,4], f32[2,4], f32[4,4], f32[4,4], f32[4,4], f32[1,4])
    tuple(r, g, s, p, t0, t1, d)
}
"""


def returned(module: Module) -> list[Any]:
    """What each device returns, for parts of the global array that the sharding of the parameter says."""
    whole = np.arange(64, dtype=np.float32).reshape(8, 8) ** 1.5
    sharding = module.entry.parameters[0].sharding
    assert sharding is not None
    parts = split(whole, sharding, 4)
    rows = hlotool.run(module, [[part] for part in parts], partitions=4)
    return [array for row in rows for array in row]


@pytest.mark.parametrize("kind", DEVICES, ids=lambda kind: kind.name.replace(" ", "_"))
def test_each_kind_changes_what_devices_return(kind: FaultKind) -> None:
    right = hlotool.parse(TEXT)
    sites = kind.sites(right)
    assert sites
    for site in sites:
        wrong = kind.plant(right, site, seed=1)
        assert verify(wrong) == []
        assert strip_layouts(wrong.entry.root.shape) == strip_layouts(right.entry.root.shape)
        same = [one.tobytes() == other.tobytes() for one, other in zip(returned(right), returned(wrong))]
        assert not all(same), site


def test_kinds_are_told_apart() -> None:
    assert len({kind.name for kind in DEVICES}) == len(DEVICES) >= 12
    assert all(kind.imitates for kind in DEVICES)
