"""Access to the static types of instructions, with the typed errors that kernels owe."""

from __future__ import annotations

from typing import Any, TypeVar

from hlotool.backends.numpy.lowering import Lowering
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, ElementType

_T = TypeVar("_T")


def array_shape(instruction: Instruction, lowering: Lowering) -> ArrayShape:
    """The shape of an array-valued instruction; raises Unsupported for anything else."""
    if not isinstance(instruction.shape, ArrayShape):
        raise lowering.unsupported(instruction, f"a value of shape {instruction.shape} is not an array")
    return instruction.shape


def element_types(instructions: tuple[Instruction, ...], lowering: Lowering) -> tuple[ElementType, ...]:
    """The element types of array-valued instructions."""
    return tuple(array_shape(i, lowering).element_type for i in instructions)


def attribute(
    instruction: Instruction, name: str, kind: type[_T], lowering: Lowering, default: Any = None
) -> _T:
    """The attribute `name`, which must be a `kind`, or `default` when it is absent and that is not None."""
    value = instruction.attributes.get(name, default)
    if not isinstance(value, kind):
        raise lowering.unsupported(instruction, f"attribute {name} is missing or malformed: {value!r}")
    return value
