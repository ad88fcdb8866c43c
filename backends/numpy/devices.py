"""Which devices take part in a collective, and how its kernel reaches them.

On one device a collective is the identity, or nearly so: each participant is alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from hlotool.backends.numpy.lockstep import Device
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.registry import Calling, Kernel
from hlotool.backends.numpy.run import Run
from hlotool.errors import VerificationError
from hlotool.ir.attributes import Ints
from hlotool.ir.devices import device_groups, expand_groups
from hlotool.ir.module import Instruction, Module

#: From the operands of every member, in the order of the group, to the result of each.
Exchange: TypeAlias = Callable[[Sequence[tuple[Any, ...]]], Sequence[Any]]


def group_of_each(instruction: Instruction, lowering: Lowering) -> dict[int, Ints]:
    """The group of every device that is in one.

    Raises:
        Unsupported: one device is executed, and the collective is between several.
        VerificationError: malformed groups.
    """
    if len(lowering.grid) == 1:
        _check_alone(instruction, lowering)
        return {0: (0,)}
    groups = device_groups(instruction, lowering.grid)
    return {device: group for group in groups for device in group}


def collective(instruction: Instruction, lowering: Lowering, exchange: Exchange) -> Kernel:
    """The kernel of a collective in which every device is in a group; one that is alone waits for nobody.

    Raises:
        VerificationError: a device is in no group, or malformed groups.
        Unsupported: see `group_of_each`.
    """
    groups = group_of_each(instruction, lowering)
    outside = [d for d in range(len(lowering.grid)) if d not in groups]
    if outside:
        raise VerificationError(
            "replica-groups",
            f"{instruction.opcode}: device {outside[0]} is in no group",
            instruction.name,
            lowering.module.location(instruction),
        )
    if all(len(group) == 1 for group in groups.values()):
        return lambda *operands: exchange([operands])[0]

    def kernel(values: list[Any], run: Run) -> Any:
        device = this_device(run)
        operands = tuple(values)
        values.clear()
        return device.meet(instruction, groups[device.number], operands, exchange)

    return Calling(kernel)


def this_device(run: Run) -> Device:
    """The device that a run is on, where there are several."""
    if run.device is None:
        raise RuntimeError("a program for several devices runs without any")
    return run.device


def check_single_device(instruction: Instruction, lowering: Lowering) -> None:
    """Where one device is executed: accept a module that was compiled for one.

    Raises:
        Unsupported: naming the module attribute that asks for more.
    """
    several = _several_devices(lowering.module)
    if several and len(lowering.grid) == 1:
        raise lowering.unsupported(instruction, f"the module has {several}; one device is executed")


def _check_alone(instruction: Instruction, lowering: Lowering) -> None:
    """Accept a collective whose every group has one member."""
    size = max(map(len, expand_groups(instruction.replica_groups)), default=0)
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
