"""f64 where f32 was meant."""

from __future__ import annotations

from collections.abc import Iterator

from hlotool.check.findings import Severity
from hlotool.check.rules import Problem, module_rule
from hlotool.check.subject import Subject
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, ElementType, Shape, array_shapes

_WIDE = frozenset({ElementType.F64, ElementType.C128})


@module_rule(
    "accidental-f64",
    Severity.WARNING,
    "f64 arithmetic in a program whose arguments are all narrower",
    remedy="a float64 NumPy scalar or array, or a Python float under x64, widens all it meets: cast it",
)
def accidental_f64(subject: Subject) -> Iterator[Problem]:
    """The first conversion of an array to f64 when no argument is f64."""
    parameters = subject.module.entry.parameters
    if any(_is_wide(parameter.shape) for parameter in parameters) or not parameters:
        return
    for instruction in subject.instructions:
        if instruction.opcode == "convert" and _is_wide(instruction.shape) and _was_float(instruction):
            amount = sum(_is_wide(i.shape) and i.opcode != "constant" for i in subject.instructions)
            yield Problem(
                f"{instruction.operands[0].shape} is widened to {instruction.shape}; "
                f"{amount} instructions compute in f64",
                instruction,
            )
            return


def _is_wide(shape: Shape) -> bool:
    return any(part.element_type in _WIDE for part in array_shapes(shape))


def _was_float(convert: Instruction) -> bool:
    shape = convert.operands[0].shape
    return isinstance(shape, ArrayShape) and shape.element_type.is_floating and shape.rank > 0
