"""Static types of instructions, with the typed errors that kernels owe."""

from __future__ import annotations

from hlotool.backends.numpy.lowering import Lowering
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, ElementType


def array_shape(instruction: Instruction, lowering: Lowering) -> ArrayShape:
    """The shape of an array-valued instruction; raises Unsupported for anything else."""
    if not isinstance(instruction.shape, ArrayShape):
        raise lowering.unsupported(instruction, f"a value of shape {instruction.shape} is not an array")
    return instruction.shape


def element_types(instructions: tuple[Instruction, ...], lowering: Lowering) -> tuple[ElementType, ...]:
    """The element types of array-valued instructions."""
    return tuple(array_shape(i, lowering).element_type for i in instructions)
