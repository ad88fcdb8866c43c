"""Dimensions whose size only the data knows."""

from __future__ import annotations

from collections.abc import Iterator

from hlotool.check.findings import Severity
from hlotool.check.rules import Problem, module_rule
from hlotool.check.subject import Subject
from hlotool.ir.module import Instruction
from hlotool.ir.types import UNBOUNDED, array_shapes


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
