"""Which devices take part in a collective.

This backend executes one device. A collective is the identity, or nearly so, where each participant is alone.
"""

from __future__ import annotations

from math import prod

from hlotool.backends.numpy.lowering import Lowering
from hlotool.ir.attributes import IotaTiles, MeshGroups, ReplicaGroups
from hlotool.ir.module import Instruction, Module


def check_single_device(instruction: Instruction, lowering: Lowering) -> None:
    """Accept a module that was compiled for one device.

    Raises:
        Unsupported: naming the module attribute that asks for more.
    """
    several = _several_devices(lowering.module)
    if several:
        raise lowering.unsupported(instruction, f"the module has {several}; one device is executed")


def check_alone(instruction: Instruction, lowering: Lowering) -> None:
    """Accept a collective whose every group has one member.

    Raises:
        Unsupported: a group has several, or all devices of a module with several take part.
    """
    groups = instruction.attributes.get("replica_groups")
    size = _group_size(groups) if isinstance(groups, ReplicaGroups) else 0
    if size == 0:
        check_single_device(instruction, lowering)
    elif size > 1:
        raise lowering.unsupported(
            instruction, f"replica_groups of {size} participants; one device is executed"
        )


def _several_devices(module: Module) -> str:
    """The module attribute that asks for more than one device, or nothing."""
    counts = {"num_partitions": module.num_partitions, "replica_count": module.replica_count}
    return ", ".join(f"{name}={count}" for name, count in counts.items() if count > 1)


def _group_size(groups: ReplicaGroups) -> int:
    """Members of the largest group; 0 for the empty form, a group of all devices."""
    if groups.iota is not None:
        return _last(groups.iota)
    if groups.mesh is not None:
        return _mesh_size(groups.mesh)
    return max((len(group) for group in groups.groups or ()), default=0)


def _last(tiles: IotaTiles) -> int:
    return tiles.dims[-1] if tiles.dims else 0


def _mesh_size(groups: MeshGroups) -> int:
    sizes = dict(groups.mesh.axes)
    return prod(axis.size if axis.size is not None else sizes[axis.name] for axis in groups.axes)
