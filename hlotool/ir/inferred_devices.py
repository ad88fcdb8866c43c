"""For how many devices a program is that does not say so: what its collectives speak of.

PyTorch/XLA leaves `replica_count` and `num_partitions` out of its headers, as do many texts that were copied
from elsewhere; a collective among replicas 0 to 7 then tells of eight.
"""

from __future__ import annotations

from hlotool.errors import InputError
from hlotool.ir.devices import DeviceGrid, GroupMode, expand_groups, group_mode, source_target_ids
from hlotool.ir.module import Instruction, Module
from hlotool.ir.opcodes import Class


def inferred_grid(module: Module) -> DeviceGrid:
    """The devices of the header; where it names none, those that groups and pairs of collectives speak of."""
    if module.replica_count * module.num_partitions > 1:
        return DeviceGrid(module.replica_count, module.num_partitions)
    replicas = partitions = 1
    counts_partitions = _asks_for_the_partition_alone(module)
    for instruction in module.instructions():
        if instruction.row.opcode_class is not Class.COLLECTIVE:
            continue
        count = 1 + max(_ids(instruction), default=0)
        mode = _mode(instruction)
        if mode is GroupMode.CROSS_PARTITION or (mode is GroupMode.FLATTENED_ID and counts_partitions):
            partitions = max(partitions, count)
        else:
            replicas = max(replicas, count)
    return DeviceGrid(replicas, partitions)


def _asks_for_the_partition_alone(module: Module) -> bool:
    """Whether devices tell themselves apart by `partition-id`: ids of the whole grid then count partitions.

    With `replica-id` as well, or with neither, groups of the flattened mode do not say what they count.
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
