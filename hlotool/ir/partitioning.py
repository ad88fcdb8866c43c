"""For whom a program is written: for global arrays, or for one of several devices.

What the frontend gives is one program on global arrays, whatever `num_partitions` says; the SPMD partitioner
turns it into a program for each device, on that device's parts. Manual regions (JAX's shard_map) are written
for a device from the start, although the program around them is not.

XLA: spmd_partitioner.cc; Shardy: docs/sharding_representation.md.
"""

from __future__ import annotations

from dataclasses import replace

from hlotool.ir.attributes import Sharding
from hlotool.ir.devices import DeviceGrid
from hlotool.ir.module import Instruction, Module
from hlotool.ir.opcodes import Class
from hlotool.ir.types import TupleShape

#: Custom calls through which values enter a manual region, and leave it. The partitioner removes them.
ENTERS_REGION = frozenset({"SPMDFullToShardShape", "xla.sdy.GlobalToLocalShape"})
LEAVES_REGION = frozenset({"SPMDShardToFullShape", "xla.sdy.LocalToGlobalShape"})


def stated_shardings(instruction: Instruction) -> tuple[Sharding | None, ...]:
    """What is said of an array's sharding, or of each element's of a tuple of arrays; None: nothing.

    An element of a tuple has the sharding that the tuple has there, where it states none itself.
    """
    sharding = instruction.sharding
    if sharding is None and instruction.opcode == "get-tuple-element":
        of_elements = stated_shardings(instruction.operands[0])
        index = instruction.integer("index")
        sharding = of_elements[index] if index < len(of_elements) else None
    if not isinstance(instruction.shape, TupleShape):
        return (sharding,)
    count = len(instruction.shape.elements)
    if sharding is None or sharding.kind != "tuple":
        return (sharding,) * count
    return sharding.elements if len(sharding.elements) == count else (None,) * count


def manual_names(sharding: Sharding) -> frozenset[str]:
    """The axes of its mesh along which a value is manual."""
    named = sharding.named
    if named is None:
        return frozenset()
    if sharding.kind == "manual":
        return frozenset(name for name, _ in named.mesh.axes)
    return frozenset(axis.name for axis in named.manual)


def manual_inside(border: Instruction) -> frozenset[str]:
    """The axes along which a region is manual, as the shardings on the inside of its border name them."""
    inside = [border] if border.custom_call_target in ENTERS_REGION else border.operands
    stated = (sharding for value in inside for sharding in stated_shardings(value))
    return frozenset().union(*(manual_names(sharding) for sharding in stated if sharding is not None))


def has_manual_regions(module: Module) -> bool:
    """Whether parts of a program on global arrays are written for a device."""
    borders = ENTERS_REGION | LEAVES_REGION
    return any(i.custom_call_target in borders for i in module.instructions())


def is_one_program_with_regions(module: Module) -> bool:
    """Whether a program on global arrays is executed as one, but for parts that all partitions execute."""
    return has_manual_regions(module) and module.num_partitions > 1 and module.replica_count == 1


def is_per_device(module: Module) -> bool:
    """Whether the whole program is written for one of several devices.

    A program that neither exchanges values nor asks for its number gives the same result either way.
    """
    if module.replica_count * module.num_partitions == 1 or has_manual_regions(module):
        return False
    return any(map(_knows_devices, module.instructions()))


def own_arguments(module: Module) -> int:
    """How many devices take arguments of their own: one where the program is on global arrays."""
    return module.replica_count * module.num_partitions if is_per_device(module) else 1


def for_grid(module: Module, grid: DeviceGrid) -> Module:
    """The program with a header that speaks of the devices of `grid`."""
    attributes = {**module.attributes, "replica_count": grid.replicas, "num_partitions": grid.partitions}
    return replace(module, attributes=attributes)


def _knows_devices(instruction: Instruction) -> bool:
    """Whether its result depends on which device it runs on."""
    if instruction.opcode in ("partition-id", "replica-id"):
        return True
    if instruction.opcode in ("send", "recv"):
        return not instruction.flag("is_host_transfer")
    return instruction.row.opcode_class is Class.COLLECTIVE
