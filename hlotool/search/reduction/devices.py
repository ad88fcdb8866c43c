"""Fewer devices: the groups of collectives and the pairs of permutes shrink with them.

Of a program on global arrays all devices go but one, or none: how it is spread is written all over it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from hlotool.errors import HlotoolError
from hlotool.ir.attributes import AttributeValue, ReplicaGroups
from hlotool.ir.devices import (
    ONE_DEVICE,
    DeviceGrid,
    device_groups,
    expand_groups,
    group_mode,
    id_limit,
    source_target_ids,
)
from hlotool.ir.edit import with_attributes
from hlotool.ir.edit_clone import clone_module
from hlotool.ir.module import Instruction
from hlotool.ir.partitioning import for_grid, has_manual_regions
from hlotool.ir.verifier import verify_or_raise
from hlotool.search.reduction.case import Case, for_one_device
from hlotool.search.reduction.oracle import Candidate, CaseOracle

#: Sets of devices that are tried at a time.
_MOST = 16


def drop_devices(case: Case, oracle: CaseOracle) -> Case:
    """Run a program for several devices on fewer of them, where the failure stays."""
    while case.module.num_partitions * case.module.replica_count > 1:
        found = oracle.first_failing(list(_candidates(case)), "devices")
        if found is None:
            return case
        case = found[1]
    return case


def _candidates(case: Case) -> Iterator[Candidate]:
    grid = DeviceGrid(case.module.replica_count, case.module.num_partitions)
    if case.copies == 1:
        if not has_manual_regions(case.module):
            yield lambda: case.changed(for_one_device(case.module))
        return
    if min(grid.replicas, grid.partitions) > 1:
        # Neither replicas nor partitions can be left out one by one.
        return
    for kept in list(dict.fromkeys(_sets(case, grid)))[:_MOST]:
        yield partial(on_devices, case, kept)


def _sets(case: Case, grid: DeviceGrid) -> Iterator[tuple[int, ...]]:
    """Sets of devices that may be enough, the smallest first; the device that fails is in most of them."""
    count = len(grid)
    found = {(case.device,), tuple(range(count // 2)), tuple(range(count // 2, count))}
    for instruction in case.module.instructions():
        if "replica_groups" in instruction.attributes:
            found |= {tuple(sorted(group)) for group in device_groups(instruction, grid)}
        pairs = source_target_ids(instruction)
        found |= {tuple(sorted({source, target})) for source, target in pairs} | set(_rings(pairs))
    smaller = (kept for kept in found if 0 < len(kept) < count and max(kept) < count)
    yield from sorted(smaller, key=lambda kept: (len(kept), case.device not in kept, kept))


def _rings(pairs: Sequence[tuple[int, int]]) -> Iterator[tuple[int, ...]]:
    """The devices among which a permute moves values."""
    ring = {device: {device} for pair in pairs for device in pair}
    for source, target in pairs:
        joined = ring[source] | ring[target]
        ring.update(dict.fromkeys(joined, joined))
    yield from (tuple(sorted(devices)) for devices in ring.values())


def on_devices(case: Case, kept: Sequence[int]) -> Case | None:
    """The program on some of its devices, which are numbered anew; None where it is no valid one there.

    Args:
        case: a program for each of several replicas, or for each of several partitions.
        kept: numbers of devices.
    """
    numbers = {device: number for number, device in enumerate(kept)}
    grid = DeviceGrid(case.module.replica_count, case.module.num_partitions)
    module = clone_module(case.module).module
    try:
        for instruction in module.instructions():
            changes = _restated(instruction, grid, numbers)
            instruction.attributes = with_attributes(instruction.attributes, sharding=None, **changes)
        smaller = DeviceGrid(len(kept), 1) if grid.replicas > 1 else DeviceGrid(1, len(kept))
        module = for_grid(module, smaller if len(kept) > 1 else ONE_DEVICE)
        verify_or_raise(module)
    except HlotoolError:
        return None
    rows = case.rows
    made = case.with_rows(module, [rows[device] for device in kept])
    made.device = numbers.get(case.device, 0)
    return made


def _restated(
    instruction: Instruction, grid: DeviceGrid, numbers: Mapping[int, int]
) -> dict[str, AttributeValue | None]:
    """The groups and pairs of a collective among the devices that stay."""
    changes: dict[str, AttributeValue | None] = {}
    if not {"replica_groups", "source_target_pairs"} & set(instruction.attributes):
        return changes
    if id_limit(group_mode(instruction), grid) != len(grid):
        # The ids are not those of the devices that are left out.
        return changes
    if ids := expand_groups(instruction.replica_groups):
        groups = [tuple(numbers[i] for i in group if i in numbers) for group in ids]
        changes["replica_groups"] = ReplicaGroups(tuple(filter(None, groups)))
    if pairs := source_target_ids(instruction):
        changes["source_target_pairs"] = tuple(
            (numbers[s], numbers[t]) for s, t in pairs if s in numbers and t in numbers
        )
    return changes
