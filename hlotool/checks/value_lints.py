"""Indices that are sure to lie outside, floats that become NaN or infinity or are wider than meant.

XLA clamps such an index and says nothing; sizes that only the data knows are named, too. Nothing is
executed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from hlotool.checks.records import Severity
from hlotool.checks.rules import Problem, Subject, module_rule
from hlotool.facts.ranges import Interval
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.types import UNBOUNDED, ArrayShape, ElementType, Shape, array_shapes


@module_rule(
    "dynamic-shape",
    Severity.NOTE,
    "bounded dynamic shapes: every operation pads to the bound and masks",
    remedy="pad to a fixed size yourself where speed matters; many devices reject dynamic shapes",
)
def dynamic_shape(subject: Subject) -> Iterator[Problem]:
    """The first instruction that makes a dynamic dimension."""
    for instruction in subject.instructions:
        if _is_dynamic(instruction) and not any(_is_dynamic(o) for o in instruction.operands):
            yield Problem(f"the size of {instruction.shape} depends on the data", instruction)
            return


@module_rule(
    "unbounded-shape",
    Severity.WARNING,
    "a dimension without any bound: the program must be refined before it can be compiled",
    remedy="export with concrete shapes, or give the dimension a bound",
)
def unbounded_shape(subject: Subject) -> Iterator[Problem]:
    """The first `?` dimension."""
    for instruction in subject.instructions:
        if any(UNBOUNDED in shape.dims for shape in array_shapes(instruction.shape)):
            yield Problem(f"{instruction.shape} has a dimension of unknown size", instruction)
            return


def _is_dynamic(instruction: Instruction) -> bool:
    return any(shape.is_dynamic for shape in array_shapes(instruction.shape))


@module_rule(
    "truncated-tensor-array",
    Severity.WARNING,
    "writes beyond the end of a TensorArray: under XLA it keeps its first size",
    remedy="create the TensorArray with its final size instead of dynamic_size=True",
)
def truncated_tensor_array(subject: Subject) -> Iterator[Problem]:
    """Writes that were dropped, of which only the address is left, and writes that are clamped to the last
    element.
    """
    for computation in subject.computations:
        groups = list(_writes(computation).values())
        dropped = [group[-1] for group in groups if not any(map(_is_update, group))]
        clamped = [i for group in groups for i in group if subject.clamped_dimension(i) is not None]
        if dropped:
            yield Problem(f"{_count(dropped)} to a TensorArray had no room and left nothing", dropped[0])
        if clamped:
            yield Problem(f"{_count(clamped)} to a TensorArray overwrote its last element", clamped[0])


@module_rule(
    "clamped-index",
    Severity.WARNING,
    "a start index that is out of range whatever the data: it is clamped, and other elements are meant",
    remedy="check the index; where clamping is meant, write it out (clip)",
)
def clamped_index(subject: Subject) -> Iterator[Problem]:
    """Dynamic slices and updates whose start is known to be out of range in some dimension."""
    for instruction in subject.instructions:
        dimension = subject.clamped_dimension(instruction)
        if dimension is not None and not _is_list_write(instruction):
            yield Problem(f"the start index of dimension {dimension} is always out of range", instruction)


def _is_list_write(instruction: Instruction) -> bool:
    """It belongs to a write to a TensorArray."""
    return instruction.metadata is not None and instruction.metadata.op_type == "TensorListSetItem"


def _writes(computation: Computation) -> dict[str, list[Instruction]]:
    """What each write of the user's program became."""
    found: dict[str, list[Instruction]] = {}
    for instruction in filter(_is_list_write, computation.instructions):
        assert instruction.metadata is not None
        found.setdefault(instruction.metadata.op_name, []).append(instruction)
    return found


def _is_update(instruction: Instruction) -> bool:
    """A write that is kept updates the list by a slice."""
    return instruction.opcode == "dynamic-update-slice"


def _count(writes: list[Instruction]) -> str:
    return "a write" if len(writes) == 1 else f"{len(writes)} writes"


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
