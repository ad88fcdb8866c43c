"""Loops that run too often or not often enough, and carried values that get lost."""

from __future__ import annotations

from hlotool.faults.edit import Edit
from hlotool.faults.fits import INTEGERS, both, is_opcode
from hlotool.faults.kind import FaultKind, Place
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape

_INCLUSIVE = {"LT": "LE", "LE": "LT", "GT": "GE", "GE": "GT"}


def _bound(edit: Edit, target: Instruction) -> None:
    edit.set_attributes(direction=_INCLUSIVE[str(target.attributes["direction"])])


def _is_loop_condition(place: Place) -> bool:
    operand = place.instruction.operands[0].shape
    is_counter = isinstance(operand, ArrayShape) and operand.element_type in INTEGERS
    return "while" in place.callers and is_counter and place.instruction.attributes["direction"] in _INCLUSIVE


def _carried(edit: Edit, target: Instruction) -> None:
    """One value of the next step is that of this one."""
    number, old = edit.choose(_updated(target))
    edit.set_operand(number, old)


def _updated(target: Instruction) -> list[tuple[int, Instruction]]:
    """Elements of a body's result with what they were, floats and arrays: counters end the loop."""
    found = []
    for number, new in enumerate(target.operands):
        shape = new.shape
        if not isinstance(shape, ArrayShape) or (shape.rank == 0 and not shape.element_type.is_floating):
            continue
        for before in _elements_of_parameter(target, number):
            if before is not new and before.shape == shape:
                found.append((number, before))
    return found


def _elements_of_parameter(target: Instruction, number: int) -> list[Instruction]:
    """Reads of element `number` of a parameter, among what leads to the target."""
    seen: dict[Instruction, None] = {}
    pending = list(target.operands)
    while pending:
        one = pending.pop()
        if one not in seen:
            seen[one] = None
            pending.extend(one.operands)
    return [
        i
        for i in seen
        if i.opcode == "get-tuple-element"
        and i.operands[0].opcode == "parameter"
        and i.attributes["index"] == number
    ]


def _is_body_result(place: Place) -> bool:
    return (
        "while" in place.callers
        and place.instruction is place.computation.root
        and bool(_updated(place.instruction))
    )


def _swap(edit: Edit, target: Instruction) -> None:
    first, second = edit.choose(_alike(target))
    operands = list(target.operands)
    operands[first], operands[second] = operands[second], operands[first]
    edit.set_operands(operands)


def _alike(target: Instruction) -> list[tuple[int, int]]:
    """Pairs of different elements of the same shape; no scalar integers, which may count."""
    parts = [
        (number, o)
        for number, o in enumerate(target.operands)
        if isinstance(o.shape, ArrayShape) and (o.shape.rank or o.shape.element_type.is_floating)
    ]
    return [
        (i, j)
        for n, (i, a) in enumerate(parts)
        for j, b in parts[n + 1 :]
        if a is not b and a.shape == b.shape
    ]


KINDS = (
    FaultKind(
        "loop bound off by one",
        "a trip count that is one too high or too low",
        both(is_opcode("compare"), _is_loop_condition),
        _bound,
    ),
    FaultKind(
        "lost carried value",
        "a loop body whose update of a carried value is hoisted as invariant",
        both(is_opcode("tuple"), _is_body_result),
        _carried,
    ),
    FaultKind(
        "swapped tuple elements",
        "two buffers of the same size assigned to each other's result",
        lambda p: p.instruction.opcode == "tuple" and bool(_alike(p.instruction)),
        _swap,
        "swap",
    ),
)
