"""Floats: wider than they were meant; operands that are sure to become NaN or infinity, without running."""

from __future__ import annotations

import math
from collections.abc import Iterator

from hlotool.analysis.interval import Interval
from hlotool.check.findings import Severity
from hlotool.check.rules import Problem, module_rule
from hlotool.check.subject import Subject
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, ElementType, Shape, array_shapes


@module_rule(
    "nan-source",
    Severity.NOTE,
    "log, division or square root whose operand is known to reach the value where it breaks",
    remedy="keep the operand away from there: add an epsilon, clamp it, or select before the operation",
)
def nan_source(subject: Subject) -> Iterator[Problem]:
    """Operands with a known bound at or beyond the bad value; what may be anything is left alone."""
    groups: dict[object, list[tuple[Instruction, str, bool]]] = {}
    for instruction in subject.instructions:
        if not isinstance(instruction.shape, ArrayShape) or not instruction.shape.element_type.is_floating:
            continue
        operands = [subject.ranges.of(operand) for operand in instruction.operands]
        if found := _problem(instruction, operands):
            groups.setdefault(_line(instruction), []).append((instruction, *found))
    for group in groups.values():
        instruction, message, _ = group[0]
        others = f", and {len(group) - 1} more from this line" if len(group) > 1 else ""
        is_certain = any(certain for _, _, certain in group)
        yield Problem(message + others, instruction, severity=Severity.WARNING if is_certain else None)


def _line(instruction: Instruction) -> object:
    """The line of the user's program; an instruction without one stands for itself."""
    metadata = instruction.metadata
    if metadata is None:
        return instruction
    return metadata.stack_frame_id or (metadata.source_file, metadata.source_line, metadata.op_name)


def _problem(instruction: Instruction, operands: list[Interval]) -> tuple[str, bool] | None:
    """What goes wrong, and whether it does for every value."""
    match instruction.opcode:
        case "log" if operands[0].high < 0:
            return "the logarithm of a negative number is NaN", True
        case "log" if operands[0].low == 0:
            return "the operand reaches 0, where the logarithm is -infinity", False
        case "sqrt" if operands[0].high < 0:
            return "the square root of a negative number is NaN", True
        case "rsqrt" if operands[0].low == 0:
            return "the operand reaches 0, where rsqrt is infinite", False
        case "divide":
            return _divide(instruction, operands[1])
    return None


def _divide(instruction: Instruction, divisor: Interval) -> tuple[str, bool] | None:
    if divisor.low == divisor.high == 0:
        return "the divisor is always 0", True
    touches = (divisor.low == 0 and math.isfinite(divisor.low)) or divisor.high == 0
    if touches and divisor.avoid != 0:
        numerator, denominator = instruction.operands
        both = " (0/0 is NaN)" if numerator is denominator else ""
        return f"the divisor reaches 0{both}", False
    return None


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
