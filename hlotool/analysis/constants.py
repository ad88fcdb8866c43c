"""Values of constants, where all elements have the same."""

from __future__ import annotations

from typing import Any

import numpy as np

from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import ArrayShape, ElementType

#: They keep what all elements have; a bitcast may be one to another type.
_REGROUPING = opcodes_with(Trait.REGROUPS) - {"bitcast"}


def uniform(instruction: Instruction) -> np.generic[Any] | None:
    """The value that all elements of a constant, or of a broadcast one, have; None for anything else."""
    while instruction.opcode in _REGROUPING and instruction.operands:
        instruction = instruction.operands[0]
    literal = instruction.literal
    if (
        literal is None
        or literal.elided
        or not isinstance(literal.value, np.ndarray)
        or not literal.value.size
    ):
        return None
    first: np.generic[Any] = literal.array.flat[0]
    same = literal.array.tobytes() == np.full_like(literal.array, first).tobytes()
    return first if same else None


def is_uniform(instruction: Instruction, value: float) -> bool:
    """Whether all its elements are `value`, zeros with the same sign; complex numbers never are."""
    found = uniform(instruction)
    if found is None or np.iscomplexobj(found):
        return False
    number = float(found)
    return number == value and bool(np.signbit(number)) == bool(np.signbit(value))


def is_zero(instruction: Instruction) -> bool:
    """Whether all its elements are zero of any sign."""
    return is_uniform(instruction, 0.0) or is_uniform(instruction, -0.0)


def integer_constant(value: Instruction) -> int | None:
    """The value of an integer scalar constant."""
    shape, literal = value.shape, value.literal
    if value.opcode != "constant" or literal is None or literal.elided or not isinstance(shape, ArrayShape):
        return None
    if shape.size != 1 or not (shape.element_type.is_integer or shape.element_type is ElementType.PRED):
        return None
    return int(literal.array.item())
