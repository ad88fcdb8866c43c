"""One element or one lane of a value is wrong."""

from __future__ import annotations

from hlotool.faults.edit import Edit
from hlotool.faults.fits import array_of, both, is_array, is_float
from hlotool.faults.kind import FaultKind, Place
from hlotool.faults.values import scaled, shifted_by
from hlotool.ir.module import Instruction

#: Vector lanes of the machine that "one lane" speaks of.
_LANES = 4


def _one_element(edit: Edit, target: Instruction) -> None:
    edit.after()
    shape = array_of(target)
    edit.replace(edit.where(edit.element(shape), scaled(edit, target, 1.001), target))


def _dropped(edit: Edit, target: Instruction) -> None:
    edit.after()
    shape = array_of(target)
    edit.replace(edit.where(edit.element(shape), edit.filled(0, shape), target))


def _duplicated(edit: Edit, target: Instruction) -> None:
    edit.after()
    shape = array_of(target)
    dimension = max(range(shape.rank), key=lambda d: shape.dims[d])
    neighbour = shifted_by(edit, target, dimension, 1)
    edit.replace(edit.where(edit.element(shape), neighbour, target))


def _lane(edit: Edit, target: Instruction) -> None:
    edit.after()
    shape = array_of(target)
    index = edit.index(shape, shape.rank - 1)
    s32 = array_of(index)
    lanes = edit.op("and", index, edit.filled(_LANES - 1, s32))
    lane = edit.filled(int(edit.rng.integers(_LANES)), s32)
    mask = edit.op("compare", lanes, lane, direction="EQ")
    edit.replace(edit.where(mask, scaled(edit, target, 1.01), target))


def _has_lanes(place: Place) -> bool:
    return place.array is not None and place.array.rank > 0 and place.array.dims[-1] > _LANES


KINDS = (
    FaultKind(
        "one element × 1.001", "a race on one element", both(is_float, is_array), _one_element, "one element"
    ),
    FaultKind("dropped element", "a store that a mask leaves out", is_array, _dropped, "one element"),
    FaultKind(
        "duplicated element",
        "a vector load that reads one element twice",
        is_array,
        _duplicated,
        "one element",
    ),
    FaultKind(
        "one lane × 1.01",
        "a wrong shuffle in the code of one vector lane",
        both(is_array, _has_lanes),
        _lane,
        "one lane",
    ),
)
