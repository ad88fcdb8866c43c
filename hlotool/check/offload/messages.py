"""What is said of each problem with host memory: XLA's own words where it has some.

XLA: host_offloader.cc, host_offload_utils.cc, convert_memory_placement_to_internal_annotations.cc.
"""

from __future__ import annotations

from hlotool.check.findings import Severity
from hlotool.check.offload.annotations import placement_name
from hlotool.check.rules import Problem
from hlotool.ir.module import Instruction

_HALVES = (
    "64-bit type on device is decomposed into 32-bit types very early on so host offloader only sees 32-bit "
    "types. Thus the current handling of 64-bit type host offloading might be sub-optimal"
)


def device_compute(instruction: Instruction, path: list[Instruction]) -> Problem:
    """Device compute reads the tensor."""
    return Problem(
        f'Found an instruction ("{instruction.name}") which does device compute in host memory space. '
        "Converting into host compute.",
        instruction,
        path=path,
        remedy=f"move the tensor to the device before %{instruction.name}: on the host it is very slow",
    )


def slice_stays(instruction: Instruction, path: list[Instruction]) -> Problem:
    """A slice that is not moved to the device."""
    name = instruction.name
    return Problem(
        f"Encountered {instruction.opcode} on tensor which is in host memory. {name} does not move the "
        f"tensor back to device. {name} will be converted into host compute.",
        instruction,
        path=path,
        remedy=f"move the result of %{name} to the device directly after it",
    )


def used_in_condition(instruction: Instruction) -> Problem:
    """The condition of a loop computes with the tensor.

    libtpu 0.0.42 dies of it (`Check failed: !tmp_shape_index.empty()`), 0.0.52 gives E1200.
    """
    return Problem(
        f'Tensor which is moved to host is used by an invalid instruction ("{instruction.name}") '
        "during while condition body.",
        instruction,
        remedy="carry what the condition needs as a value of its own that stays on the device",
    )


def unknown_place(instruction: Instruction) -> Problem:
    """An annotation names no memory."""
    return Problem(
        f"Invalid external annotation: {placement_name(instruction)}",
        instruction,
        details=["allowed: pinned_host, unpinned_host, device, vmem, pinned_device"],
    )


def operand_count(instruction: Instruction) -> Problem:
    """An annotation of several tensors, or of none."""
    return Problem(
        f"Custom calls with target {instruction.custom_call_target} must have exactly one operand. "
        f"{instruction.name} has {len(instruction.operands)}.",
        instruction,
    )


def changes_shape(instruction: Instruction) -> Problem:
    """An annotation that XLA cannot replace by its operand."""
    operand = instruction.operands[0]
    return Problem(
        f"the annotation %{instruction.name} changes the shape from {operand.shape} to {instruction.shape}",
        instruction,
        path=[operand, instruction],
        remedy="annotate the update before it is written, not the buffer after it",
    )


def unexpected_in_host_computation(instruction: Instruction) -> Problem:
    """A host computation with more than a call."""
    return Problem(
        f"Unexpected instruction found in async computation: {instruction.name}",
        instruction,
        remedy="a host computation that is started asynchronously holds parameters and one call",
    )


def moved_twice(instruction: Instruction) -> Problem:
    """A second move to the host on the way."""
    return Problem("the tensor is in host memory already", instruction, severity=Severity.NOTE)


def not_on_host(instruction: Instruction) -> Problem:
    """A move to the device of what never left it."""
    return Problem(
        "the tensor is moved to the device, but it is there already",
        instruction,
        severity=Severity.NOTE,
    )


def halves(instruction: Instruction) -> Problem:
    """Half of a 64-bit value is taken from the host."""
    return Problem(_HALVES, instruction)
