"""Which instruction makes a part of a result, and the line of the user's program that it stands for."""

from __future__ import annotations

from collections.abc import Sequence

from hlotool.ir.attributes import Metadata
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.printed_annotations import SourcePosition, source_position, user_position
from hlotool.ir.types import ShapeIndex
from hlotool.ir.walk import through_tuple
from hlotool.system.records import SourceRecord

#: Their result is their operand's value: the instruction that made that is meant.
_PASS_THROUGH = opcodes_with(Trait.SAME_ORDER) | {"opt-barrier", "domain"}

_NOWHERE = SourcePosition("")


def source_of_output(module: Module, index: ShapeIndex) -> SourceRecord:
    """What the module says about the origin of the leaf `index` of its result.

    The position is that of the instruction, or else of the innermost call around it that has one. Frames of
    installed packages are passed over for those that called them.
    """
    return source_of(module, producers(module.entry, index))


def source_of(module: Module, chain: Sequence[Instruction]) -> SourceRecord:
    """What the module says about the last instruction of `chain`; before it stand the calls to it."""
    *calls, instruction = chain
    innermost, position = _positions(module, (instruction, *reversed(calls)))
    return SourceRecord(
        instruction=instruction.name,
        opcode=instruction.opcode,
        line=instruction.line,
        op_name=_metadata(instruction).op_name,
        file=position.file,
        file_line=position.line,
        function=position.function,
        library=str(innermost) if innermost.is_installed else "",
    )


def _positions(module: Module, around: Sequence[Instruction]) -> tuple[SourcePosition, SourcePosition]:
    """The innermost frame of the first instruction that has one, and its innermost one of the user's code.

    A line of the user's that belongs to a call around it says less than the instruction's own operation: a
    fusion bears the line of its root.
    """
    tables = module.stack_frames
    for instruction in around:
        metadata = _metadata(instruction)
        if (innermost := source_position(metadata, tables)) is not None:
            return innermost, user_position(metadata, tables) or _NOWHERE
    return _NOWHERE, _NOWHERE


def producers(computation: Computation, index: ShapeIndex) -> list[Instruction]:
    """The instruction that computes the leaf `index` of a result, after the calls that lead to it."""
    instruction = computation.root
    while True:
        if (source := through_tuple(instruction, index)) is not None:
            instruction, index = source
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
