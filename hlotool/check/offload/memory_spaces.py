"""Memory spaces in layouts: who may change them. XLA: hlo_verifier.cc, layout-sensitive rules."""

from __future__ import annotations

from collections.abc import Iterator

from hlotool.analysis.sizes import has_tiles
from hlotool.check.findings import Severity
from hlotool.check.offload.annotations import HOST_MEMORY, is_host_compute, memory_space, on_host, placement
from hlotool.check.rules import Problem
from hlotool.check.subject import Subject
from hlotool.ir.attributes import ParameterAlias
from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import Class
from hlotool.ir.types import ArrayShape, Shape, leaves, subshape
from hlotool.ir.walk import Context, contexts

#: On-chip memory of the device, `S(1)`.
FAST_MEMORY = 1

#: Compute whose operands should be in one memory; XLA's verifier does not look at these.
_COMPUTES = frozenset({"dot", "convolution", "reduce", "fft", "sort", "reduce-window"})


def changed_spaces(subject: Subject) -> Iterator[Problem]:
    """Instructions that change the memory space of what they are given; nothing is final while there are
    annotations.
    """
    if any(placement(instruction) is not None for instruction in subject.instructions):
        return
    if not any(_spaces(instruction.shape) for instruction in subject.instructions):
        return
    found = contexts(subject.module)
    for computation in subject.computations:
        if found[computation] - {Context.CONTROL_FLOW}:
            continue  # within a fusion memory spaces mean nothing
        for instruction in computation.instructions:
            yield from _instruction(instruction)
    yield from _aliases(subject)


def _spaces(shape: Shape) -> bool:
    return any(memory_space(part) for _, part in leaves(shape))


def _instruction(instruction: Instruction) -> Iterator[Problem]:
    if not instruction.operands or not isinstance(instruction.shape, ArrayShape):
        return
    first = instruction.operands[0].shape
    before = memory_space(first) if isinstance(first, ArrayShape) else 0
    after = memory_space(instruction.shape)
    match instruction.opcode:
        case "dynamic-slice" | "dynamic-update-slice":
            # The TPU's compiler lets slices leave fast memory once it has assigned memory: libtpu 0.0.11 to
            # 0.0.52, in texts that it ends with. XLA's verifier has run by then.
            if before != FAST_MEMORY or not has_tiles(first):
                yield from _slice(instruction, before, after)
        case "copy":
            yield from _copy(instruction, before, after)
        case _ if instruction.row.opcode_class is Class.ELEMENTWISE or instruction.opcode in _COMPUTES:
            yield from _compute(instruction)


def _slice(instruction: Instruction, before: int, after: int) -> Iterator[Problem]:
    if before == FAST_MEMORY != after:
        broken = (
            "Instruction shouldn't change layout memory space between generic fast memory space and others "
            "for instruction"
        )
    elif instruction.opcode == "dynamic-slice" and (before, after) == (0, HOST_MEMORY):
        broken = "DynamicSlice instruction shouldn't change layout memory space from device to host"
    elif instruction.opcode == "dynamic-update-slice" and (before, after) == (HOST_MEMORY, 0):
        broken = "DynamicUpdateSlice instruction shouldn't change layout memory space from host to device"
    else:
        return
    yield Problem(f"{broken}: {instruction.name}", instruction)


def _copy(instruction: Instruction, before: int, after: int) -> Iterator[Problem]:
    """Copies between host and device move bytes: only one into the host may also change the layout."""
    operand, result = instruction.operands[0].array_shape, instruction.array_shape
    if before == after or HOST_MEMORY not in (before, after):
        return
    same_order = _order(operand) == _order(result)
    if operand.element_type is not result.element_type or (after != HOST_MEMORY and not same_order):
        yield Problem(
            f"Expected instruction to have shape equal to {operand}, actual shape is {result}: a copy "
            "between host and device memory cannot convert or transpose",
            instruction,
        )


def _order(shape: ArrayShape) -> tuple[int, ...] | None:
    return shape.layout.minor_to_major if shape.layout is not None else None


def _compute(instruction: Instruction) -> Iterator[Problem]:
    """Device compute on host memory: XLA's verifier lets it pass, the result is a slow program or a crash."""
    host = [o for o in instruction.operands if isinstance(o.shape, ArrayShape) and on_host(o.shape)]
    if host and not is_host_compute(instruction):
        yield Problem(
            f"%{host[0].name} is in host memory and %{instruction.name} computes with it on the device",
            instruction,
            severity=Severity.WARNING,
        )


def _aliases(subject: Subject) -> Iterator[Problem]:
    """A result shares its memory with a parameter only within one memory space."""
    module = subject.module
    layout = module.entry_layout
    for entry in module.listed("input_output_alias", ParameterAlias, ()):
        result = subshape(layout.result, entry.output_index)
        parameter = subshape(layout.parameters[entry.parameter], entry.parameter_index)
        if memory_space(result) != memory_space(parameter):
            yield Problem(
                f"Shape and memory space of the result at index {set(entry.output_index) or '{}'} ({result}) "
                f"must be the same as those of the aliased parameter {entry.parameter} ({parameter})"
            )
