"""What the hardware tells a thread of itself and of the launch (PTX ISA, "Special Registers")."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hlotool.backends.gpu_ptx.types import Values

if TYPE_CHECKING:
    from hlotool.backends.gpu_ptx.machine import Machine


def special_register(machine: Machine, name: str) -> Values:
    """The value in every thread of a special register that does not depend on the hardware."""
    word, _, axis = name[1:].partition(".")
    if axis and word in (
        "tid",
        "ctaid",
        "ntid",
        "nctaid",
        "clusterid",
        "nclusterid",
        "cluster_ctaid",
        "cluster_nctaid",
    ):
        place = "xyz".index(axis)
        if word in ("ntid", "nctaid", "nclusterid"):
            return np.uint32((machine.extents if word == "ntid" else machine.grid)[place])
        if word.startswith("cluster_"):
            return np.uint32(word == "cluster_nctaid")
        extents, linear = (
            (machine.extents, machine.thread) if word == "tid" else (machine.grid, machine.grid_block)
        )
        below = int(np.prod(extents[:place], dtype=np.int64))
        found = (linear // below % extents[place]).astype(np.uint32)
        return found[0] if extents[place] == 1 or (word == "ctaid" and machine.blocks == 1) else found
    lane = machine.lane.astype(np.uint64)
    one = np.uint64(1)
    masks: dict[str, Values] = {
        "lanemask_eq": one << lane,
        "lanemask_lt": (one << lane) - one,
        "lanemask_le": (np.uint64(2) << lane) - one,
        "lanemask_gt": ~((np.uint64(2) << lane) - one),
        "lanemask_ge": ~((one << lane) - one),
    }
    plain: dict[str, Values] = {
        "laneid": machine.lane,
        "warpid": machine.thread // 32,
        "nwarpid": np.uint32(machine.warps_per_block),
        "gridid": np.uint64(0),
        "dynamic_smem_size": np.uint32(machine.dynamic_shared),
        "total_smem_size": np.uint32(machine.shared_bytes),
        "cluster_ctarank": np.uint32(0),
        "cluster_nctarank": np.uint32(1),
        "is_explicit_cluster": np.bool_(False),
    }
    value = (masks | plain)[word]
    return value.astype(np.uint32) if word != "gridid" else value
