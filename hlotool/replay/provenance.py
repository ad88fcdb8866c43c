"""Which instruction makes a part of a result, and the line of the user's program that it stands for."""

from __future__ import annotations

from collections.abc import Sequence

from hlotool.ir.attributes import Metadata, StackFrameTables
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.types import ShapeIndex
from hlotool.replay.records import SourceRecord

#: Their result is their operand's: whoever made that is meant.
_PASS_THROUGH = frozenset({"bitcast", "copy", "reshape", "opt-barrier", "domain"})


def source_of_output(module: Module, index: ShapeIndex) -> SourceRecord:
    """What the module tells about the origin of the leaf `index` of its result.

    The position is that of the instruction, or else of the innermost call around it that has one.
    """
    return source_of(module, producers(module.entry, index))


def source_of(module: Module, chain: Sequence[Instruction]) -> SourceRecord:
    """What the module tells about the last instruction of `chain`; before it stand the calls that lead to it."""
    *calls, instruction = chain
    positions = (_position(_metadata(i), module.stack_frames) for i in (instruction, *reversed(calls)))
    file, line, function = next(filter(None, positions), ("", 0, ""))
    return SourceRecord(
        instruction=instruction.name,
        opcode=instruction.opcode,
        line=instruction.line,
        op_name=_metadata(instruction).op_name,
        file=file,
        file_line=line,
        function=function,
    )


def producers(computation: Computation, index: ShapeIndex) -> list[Instruction]:
    """The instruction that computes the leaf `index` of a result, after the calls that lead to it."""
    instruction = computation.root
    while True:
        if instruction.opcode == "tuple" and index:
            instruction, index = instruction.operands[index[0]], index[1:]
        elif instruction.opcode == "get-tuple-element":
            position = instruction.attributes.get("index")
            assert isinstance(position, int)
            instruction, index = instruction.operands[0], (position, *index)
        elif instruction.opcode in _PASS_THROUGH and not instruction.metadata:
            instruction = instruction.operands[0]
        elif instruction.opcode == "call":
            return [instruction, *producers(next(instruction.called), index)]
        else:
            return [instruction]


def _metadata(instruction: Instruction) -> Metadata:
    """Its own metadata, or that of what it calls, as fusions made by the compiler have none."""
    if instruction.metadata is not None:
        return instruction.metadata
    for computation in instruction.called:
        if computation.root.metadata is not None:
            return computation.root.metadata
    return Metadata()


def _position(metadata: Metadata, tables: StackFrameTables | None) -> tuple[str, int, str] | None:
    """File, line and function: written in the metadata, or in the module's tables."""
    if metadata.source_file:
        return metadata.source_file, metadata.source_line, ""
    frame = tables.stack_frames.get(metadata.stack_frame_id) if tables else None
    location = tables.file_locations.get(frame.file_location_id) if tables and frame else None
    if tables is None or location is None:
        return None
    file = tables.file_names.get(location.file_name_id, "")
    return file, location.line, tables.function_names.get(location.function_name_id, "")
