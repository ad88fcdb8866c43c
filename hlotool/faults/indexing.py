"""Gathers, scatters and dynamic slices at the wrong place."""

from __future__ import annotations

from hlotool.faults.edit import Edit
from hlotool.faults.kind import FaultKind, Place
from hlotool.faults.parts import INTEGERS, array_of, both, ints, is_opcode
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape


def _next_index(number: int, edit: Edit, target: Instruction) -> None:
    """All indices plus one; where that is beyond the end, XLA clamps or skips."""
    old = target.operands[number]
    shape = array_of(old)
    edit.set_operand(number, edit.op("add", old, edit.filled(1, shape), shape=shape))


def _gather(edit: Edit, target: Instruction) -> None:
    _next_index(1, edit, target)


def _start(edit: Edit, target: Instruction) -> None:
    first = 1 if target.opcode == "dynamic-slice" else 2
    _next_index(edit.choose(range(first, len(target.operands))), edit, target)


def _has_integer_indices(place: Place) -> bool:
    first = 2 if place.instruction.opcode == "dynamic-update-slice" else 1
    shapes = [o.shape for o in place.instruction.operands[first:]]
    return bool(shapes) and all(isinstance(s, ArrayShape) and s.element_type in INTEGERS for s in shapes)


def _has_gather_indices(place: Place) -> bool:
    shape = array_of(place.instruction.operands[1])
    return shape.size > 0 and shape.element_type in INTEGERS


def _lost_update(edit: Edit, target: Instruction) -> None:
    """One update goes nowhere: its index is out of bounds."""
    old = target.operands[1]
    shape = array_of(old)
    nowhere = edit.filled(_beyond(target), shape)
    mask = edit.element(shape)
    edit.set_operand(1, edit.where(mask, nowhere, old))


def _beyond(target: Instruction) -> int:
    return min(127, 1 + max(array_of(target.operands[0]).dims, default=0))


def _has_updates(place: Place) -> bool:
    shape = array_of(place.instruction.operands[1])
    largest = max(array_of(place.instruction.operands[0]).dims, default=0)
    return len(place.instruction.operands) == 3 and shape.rank > 0 and shape.size > 0 and largest < 126


def _overwrite(edit: Edit, target: Instruction) -> None:
    """The last of several updates of one element wins."""
    parameters = edit.computation.parameters
    edit.set_root(parameters[1])


def _combines(place: Place) -> bool:
    parameters = place.computation.parameters
    return (
        place.callers == {"scatter"} and place.computation.root is place.instruction and len(parameters) == 2
    )


def _dropped(edit: Edit, target: Instruction) -> None:
    edit.replace(target.operands[0])


def _unclamped(edit: Edit, target: Instruction) -> None:
    edit.replace(target.operands[1])


def _same_shape(place: Place) -> bool:
    return place.instruction.operands[1].shape == place.instruction.shape


def _wrapped(edit: Edit, target: Instruction) -> None:
    """An index beyond the end goes round instead of stopping at the end."""
    number = 1 if target.opcode == "dynamic-slice" else 2
    old = target.operands[number]
    shape = array_of(old)
    size = array_of(target.operands[0]).dims[0]
    read = ints(target, "dynamic_slice_sizes") or array_of(target.operands[1]).dims
    places = size - read[0] + 1
    beyond = edit.op("add", old, edit.filled(places, shape), shape=shape)
    edit.set_operand(number, edit.op("remainder", beyond, edit.filled(places, shape), shape=shape))


def _has_scalar_indices(place: Place) -> bool:
    """One scalar operand per dimension, and a first dimension whose size a small integer holds."""
    dims = array_of(place.instruction.operands[0]).dims
    number = 1 if place.instruction.opcode == "dynamic-slice" else 2
    indices = place.instruction.operands[number:]
    return bool(indices) and array_of(indices[0]).rank == 0 and 0 < dims[0] < 60


INDEXING = (
    FaultKind(
        "gather index off by one",
        "an index that counts from one",
        both(is_opcode("gather"), _has_gather_indices),
        _gather,
    ),
    FaultKind(
        "dynamic slice off by one",
        "an index read before it is incremented",
        both(is_opcode("dynamic-slice", "dynamic-update-slice"), _has_integer_indices),
        _start,
    ),
    FaultKind(
        "lost update of a scatter",
        "two threads that update without an atomic",
        both(is_opcode("scatter"), _has_updates),
        _lost_update,
    ),
    FaultKind("scatter overwrites", "a combining scatter turned into stores", _combines, _overwrite),
    FaultKind(
        "update dropped",
        "an in-place update of a copy that nobody reads",
        is_opcode("dynamic-update-slice"),
        _dropped,
    ),
    FaultKind(
        "clamp dropped",
        "a clamp removed by a wrong range analysis",
        both(is_opcode("clamp"), _same_shape),
        _unclamped,
    ),
    FaultKind(
        "index wraps instead of clamping",
        "a negative or large index taken modulo the size",
        both(is_opcode("dynamic-slice", "dynamic-update-slice"), _has_integer_indices, _has_scalar_indices),
        _wrapped,
        poison=97,
    ),
)
