"""For how many devices a program is that does not say so: what its shardings and collectives speak of.

PyTorch/XLA leaves `replica_count` and `num_partitions` out of its headers, as did jaxlib up to 0.4.20 and as
do many texts that were copied from elsewhere; a collective among replicas 0 to 7 then tells of eight, an
array in four tiles of four partitions.
"""

from __future__ import annotations

from math import prod

from hlotool.errors import InputError
from hlotool.ir.attributes import Sharding
from hlotool.ir.devices import DeviceGrid, GroupMode, expand_groups, group_mode, source_target_ids
from hlotool.ir.module import Instruction, Module
from hlotool.ir.opcodes import Class


def inferred_grid(module: Module) -> DeviceGrid:
    """The devices of the header; where it names none, those of shardings, groups and pairs of collectives."""
    if module.replica_count * module.num_partitions > 1:
        return DeviceGrid(module.replica_count, module.num_partitions)
    replicas = devices = 1
    partitions = max((_tiled_over(i.sharding) for i in module.instructions() if i.sharding), default=1)
    for instruction in module.instructions():
        if instruction.row.opcode_class is not Class.COLLECTIVE:
            continue
        count = 1 + max(_ids(instruction), default=0)
        mode = _mode(instruction)
        if mode is GroupMode.FLATTENED_ID:
            devices = max(devices, count)
        elif mode is GroupMode.CROSS_PARTITION:
            partitions = max(partitions, count)
        else:
            replicas = max(replicas, count)
    if partitions > 1 or _asks_for_the_partition_alone(module):
        return DeviceGrid(replicas, max(partitions, -(-devices // replicas)))
    return DeviceGrid(max(replicas, devices), 1)


def _tiled_over(sharding: Sharding) -> int:
    """How many devices hold the tiles of an array, or of the elements of a tuple."""
    if sharding.kind == "tuple":
        return max(map(_tiled_over, sharding.elements), default=1)
    if sharding.named is not None:
        return prod(size for _, size in sharding.named.mesh.axes)
    return len(sharding.devices) if sharding.iota is None else prod(sharding.iota.reshape_dims)


def _asks_for_the_partition_alone(module: Module) -> bool:
    """Whether devices tell themselves apart by `partition-id`: ids of the whole grid then count partitions.

    With `replica-id` as well, or with neither, groups of the flattened mode do not say what they count; where
    nothing else speaks of partitions, replicas are more likely.
    """
    opcodes = {instruction.opcode for instruction in module.instructions()}
    return "partition-id" in opcodes and "replica-id" not in opcodes


def _mode(instruction: Instruction) -> GroupMode | None:
    try:
        return group_mode(instruction)
    except InputError:
        return None


def _ids(instruction: Instruction) -> list[int]:
    """All ids that a collective names; none where it names nobody, or in a way that breaks a rule."""
    try:
        if "source_target_pairs" in instruction.attributes:
            return [device for pair in source_target_ids(instruction) for device in pair]
        if "replica_groups" in instruction.attributes:
            return [device for group in expand_groups(instruction.replica_groups) for device in group]
    except (ValueError, InputError):
        pass
    return []
