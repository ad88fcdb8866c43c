"""Indices that are sure to lie outside: XLA clamps them and says nothing."""

from __future__ import annotations

from collections.abc import Iterator

from hlotool.check.findings import Severity
from hlotool.check.lints.tensor_arrays import is_list_write
from hlotool.check.rules import Problem, module_rule
from hlotool.check.subject import Subject


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
        if dimension is not None and not is_list_write(instruction):
            yield Problem(f"the start index of dimension {dimension} is always out of range", instruction)
