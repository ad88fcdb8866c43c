"""Custom calls at the borders of manual regions (JAX's shard_map).

A program that is not partitioned yet is written for global arrays, but what lies between these calls is
written for each device. It is executed on all devices: they hold copies of the global values outside a region
and their own parts inside.

XLA: spmd_partitioner.cc; Shardy: sdy/transforms/import and export, shardy/constants.h.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hlotool.backends.numpy.custom_calls import custom_call
from hlotool.backends.numpy.devices import this_device
from hlotool.backends.numpy.lockstep import Device
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.registry import Calling, Kernel
from hlotool.backends.numpy.run import Run
from hlotool.ir.attributes import Sharding
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, Shape, TupleShape
from hlotool.parse.region_borders import border_of
from hlotool.parse.sdy import module_meshes
from hlotool.values.manual import ManualParts, along_axes, manual_parts


@custom_call("SPMDFullToShardShape", "xla.sdy.GlobalToLocalShape")
def global_to_local(instruction: Instruction, lowering: Lowering) -> Kernel:
    """This device's part of each operand, along the manual axes.

    XLA: hlo_sharding_util.h, shardy/constants.h.
    """
    return _enter(instruction, lowering, _shardings(instruction, lowering))


@custom_call("SPMDShardToFullShape", "xla.sdy.LocalToGlobalShape")
def local_to_global(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The arrays of which each device holds a part, along the manual axes.

    XLA: hlo_sharding_util.h, shardy/constants.h.
    """
    return _leave(instruction, lowering, _shardings(instruction, lowering))


def _enter(instruction: Instruction, lowering: Lowering, shardings: Sequence[Sharding | None]) -> Kernel:
    parts = [
        _parts(instruction, lowering, sharding, operand.array_shape, result)
        for sharding, operand, result in zip(shardings, instruction.operands, _results(instruction, lowering))
    ]

    def kernel(values: list[Any], run: Run) -> Any:
        own = [
            value if p is None else p.part(value, this_device(run).partition)
            for p, value in zip(parts, values)
        ]
        return _as_result(instruction, own)

    return Calling(kernel)


def _leave(instruction: Instruction, lowering: Lowering, shardings: Sequence[Sharding | None]) -> Kernel:
    parts = [
        _parts(instruction, lowering, sharding, result, operand.array_shape)
        for sharding, operand, result in zip(shardings, instruction.operands, _results(instruction, lowering))
    ]

    def kernel(values: list[Any], run: Run) -> Any:
        whole = [
            value if p is None else _gather(this_device(run), instruction, p, value)
            for p, value in zip(parts, values)
        ]
        return _as_result(instruction, whole)

    return Calling(kernel)


def _gather(device: Device, instruction: Instruction, parts: ManualParts, value: Array) -> Array:
    members = tuple(
        device.world.grid.device(device.replica, partition) for partition in parts.members(device.partition)
    )
    whole: Array = device.meet(
        instruction, members, value, lambda values: [parts.whole(values)] * len(members)
    )
    return whole


def _parts(
    instruction: Instruction,
    lowering: Lowering,
    sharding: Sharding | None,
    whole: ArrayShape,
    part: ArrayShape,
) -> ManualParts | None:
    """How the devices hold one array; None when each holds all of it."""
    if whole.dims == part.dims:
        return None
    if lowering.grid.partitions == 1:
        raise lowering.unsupported(instruction, f"{part.logical_text()} is one of several shards")
    if sharding is None:
        raise lowering.unsupported(instruction, "a change of shape without a sharding")
    try:
        return manual_parts(sharding, whole.dims, part.dims, lowering.grid.partitions)
    except ValueError as error:
        raise lowering.unsupported(instruction, str(error)) from None


def _shardings(instruction: Instruction, lowering: Lowering) -> list[Sharding | None]:
    """The shardings of the global values, cut down to the manual axes where these have names."""
    try:
        border = border_of(instruction, module_meshes(lowering.module))
        if border.manual is None:
            return list(border.shardings)
        names = tuple(border.manual)
        return [None if one is None else along_axes(one, names) for one in border.shardings]
    except ValueError as error:
        raise lowering.unsupported(instruction, str(error)) from None


def _results(instruction: Instruction, lowering: Lowering) -> list[ArrayShape]:
    shapes: Sequence[Shape] = (
        instruction.shape.elements if isinstance(instruction.shape, TupleShape) else (instruction.shape,)
    )
    arrays = [shape for shape in shapes if isinstance(shape, ArrayShape)]
    if len(arrays) != len(instruction.operands):
        raise lowering.unsupported(
            instruction, f"{instruction.shape} from {len(instruction.operands)} operands"
        )
    return arrays


def _as_result(instruction: Instruction, values: list[Any]) -> Any:
    return tuple(values) if isinstance(instruction.shape, TupleShape) else values[0]
