"""Placement annotations: custom calls that say where a tensor shall live.

Frontends write `annotate_device_placement` with the frontend attribute `_xla_buffer_placement`; XLA turns it
into MoveToHost or MoveToDevice.
XLA: service/memory_annotations.h, convert_memory_placement_to_internal_annotations.cc.
"""

from __future__ import annotations

import enum

from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, Shape, ShapeIndex, leaves, subshape

#: Memory space of the host in layouts, `S(5)`.
HOST_MEMORY = 5

PLACEMENT_TARGET = "annotate_device_placement"
PLACEMENT_ATTRIBUTE = "_xla_buffer_placement"


class Placement(enum.Enum):
    """What an annotation asks for."""

    TO_HOST = "MoveToHost"
    TO_DEVICE = "MoveToDevice"
    #: Somewhere on the device: on-chip memory, pinned memory. Ends nothing, moves nothing to the host.
    PINNED = "pinned on the device"
    UNKNOWN = "unknown"


_EXTERNAL = {
    "pinned_host": Placement.TO_HOST,
    "unpinned_host": Placement.TO_HOST,
    "device": Placement.TO_DEVICE,
    "vmem": Placement.PINNED,
    "pinned_device": Placement.PINNED,
}


def placement(instruction: Instruction) -> Placement | None:
    """What `instruction` asks for; None when it is no annotation."""
    target = instruction.custom_call_target
    if target in ("MoveToHost", "MoveToDevice"):
        return Placement(target)
    if target in ("PinToDevice", "PinToDeviceSram"):
        return Placement.PINNED
    if target != PLACEMENT_TARGET:
        return None
    wanted = placement_name(instruction)
    return None if wanted is None else _EXTERNAL.get(wanted, Placement.UNKNOWN)


def placement_name(instruction: Instruction) -> str | None:
    """The memory that an external annotation names."""
    return instruction.frontend_attribute(PLACEMENT_ATTRIBUTE)


def is_host_compute(instruction: Instruction) -> bool:
    """It is marked to run on the host."""
    return instruction.frontend_attribute("_xla_compute_type") == "host"


def memory_space(shape: Shape, index: ShapeIndex = ()) -> int:
    """The memory space that the layout of the part `index` names; 0 where there is no layout."""
    part = subshape(shape, index)
    return part.layout.memory_space if isinstance(part, ArrayShape) and part.layout is not None else 0


def on_host(shape: Shape) -> bool:
    """Whether the layout of any part of `shape` names host memory."""
    return any(memory_space(part) == HOST_MEMORY for _, part in leaves(shape))
