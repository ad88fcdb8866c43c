"""Sizes that only the data knows; indices that are sure to lie outside, which XLA clamps and says nothing."""

from __future__ import annotations

from collections.abc import Iterator

from hlotool.check.findings import Severity
from hlotool.check.rules import Problem, module_rule
from hlotool.check.subject import Subject
from hlotool.ir.module import Computation, Instruction
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
