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
from hlotool.ir.attributes import FrontendAttributes, Sharding
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, Shape, TupleShape
from hlotool.parse.sdy import module_meshes, parse_manual_axes, parse_shardings
from hlotool.values.manual import ManualParts, along_axes, manual_axes, manual_parts, sharding_of
from hlotool.values.sharding import leaf_shardings


@custom_call("SPMDFullToShardShape")
def full_to_shard(instruction: Instruction, lowering: Lowering) -> Kernel:
    """This device's part of the operand, whose own sharding says which. XLA: hlo_sharding_util.h."""
    sharding = instruction.operands[0].sharding
    return _enter(instruction, lowering, [sharding])


@custom_call("SPMDShardToFullShape")
def shard_to_full(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The array of which each device holds a part, as its sharding says. XLA: hlo_sharding_util.h."""
    return _leave(instruction, lowering, [instruction.sharding])


@custom_call("xla.sdy.GlobalToLocalShape")
def global_to_local(instruction: Instruction, lowering: Lowering) -> Kernel:
    """This device's part of each operand, along the manual axes. XLA: shardy/constants.h.

    jaxlib 0.12 states them in shardings of HLO: operands say how they lie, results which axes are manual.
    """
    if not _is_in_attributes(instruction):
        return _enter(instruction, lowering, _stated_shardings(instruction, lowering, enters=True))
    return _enter(instruction, lowering, _named_shardings(instruction, lowering, "xla.sdy.in_shardings"))


@custom_call("xla.sdy.LocalToGlobalShape")
def local_to_global(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The arrays of which each device holds a part, along manual axes. XLA: shardy/constants.h.

    jaxlib 0.12: results say how they lie, operands which axes are manual.
    """
    if not _is_in_attributes(instruction):
        return _leave(instruction, lowering, _stated_shardings(instruction, lowering, enters=False))
    return _leave(instruction, lowering, _named_shardings(instruction, lowering, "xla.sdy.out_shardings"))


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


def _named_shardings(instruction: Instruction, lowering: Lowering, key: str) -> list[Sharding]:
    """The shardings of an attribute, cut down to the manual axes."""
    own = instruction.attribute("frontend_attributes", FrontendAttributes)
    try:
        shardings = parse_shardings(own.get(key) or "", module_meshes(lowering.module))
        manual = parse_manual_axes(own.get("xla.sdy.manual_axes") or "")
        return [along_axes(sharding, manual) for sharding in shardings]
    except ValueError as error:
        raise lowering.unsupported(instruction, f"{key}: {error}") from None


def _is_in_attributes(instruction: Instruction) -> bool:
    """Whether a border says as text, as Shardy does up to jaxlib 0.11, what it does."""
    return instruction.frontend_attribute("xla.sdy.manual_axes") is not None


def _stated_shardings(instruction: Instruction, lowering: Lowering, enters: bool) -> list[Sharding | None]:
    """How global values lie on the manual axes, which the shardings on the inside of the border name."""
    try:
        results = leaf_shardings(instruction.shape, instruction.sharding)
        operands = list(map(sharding_of, instruction.operands))
        outside, inside = (operands, results) if enters else (results, operands)
        return [own and along_axes(own, manual_axes(other)) for own, other in zip(outside, inside)]
    except ValueError as error:
        raise lowering.unsupported(instruction, f"shardings at its border: {error}") from None


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
