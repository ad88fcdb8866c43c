"""Comparisons, selects and branches that decide wrongly."""

from __future__ import annotations

from hlotool.faults.edit import Edit
from hlotool.faults.fits import both, is_opcode
from hlotool.faults.kind import FaultKind, Place
from hlotool.ir.module import Instruction
from hlotool.ir.walk import branches

_OPPOSITE = {"LT": "GE", "GE": "LT", "GT": "LE", "LE": "GT", "EQ": "NE", "NE": "EQ"}
_MIRRORED = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE"}


def _negated(edit: Edit, target: Instruction) -> None:
    edit.set_attributes(direction=_OPPOSITE[str(target.attributes["direction"])])


def _mirrored(edit: Edit, target: Instruction) -> None:
    edit.set_attributes(direction=_MIRRORED[str(target.attributes["direction"])])


def _is_mirrorable(place: Place) -> bool:
    return place.instruction.attributes["direction"] in _MIRRORED


def _outside_loop_condition(place: Place) -> bool:
    """A loop that starts where it should end may never end."""
    return not ("while" in place.callers and place.computation.root is place.instruction)


def _select(edit: Edit, target: Instruction) -> None:
    condition, chosen, otherwise = target.operands
    edit.set_operands((condition, otherwise, chosen))


def _masked(edit: Edit, target: Instruction) -> None:
    """Everything is taken from one side."""
    edit.replace(target.operands[int(edit.rng.integers(1, 3))])


def _different_sides(place: Place) -> bool:
    return place.instruction.operands[1] is not place.instruction.operands[2]


def _branch(edit: Edit, target: Instruction) -> None:
    """The branches change places; their operands must have the same shape."""
    first, second = branches(target)[:2]
    if "branch_computations" in target.attributes:
        edit.set_attributes(branch_computations=(second, first, *branches(target)[2:]))
    else:
        edit.set_attributes(true_computation=second, false_computation=first)


def _exchangeable(place: Place) -> bool:
    operands = place.instruction.operands
    return len(branches(place.instruction)) > 1 and operands[1].shape == operands[2].shape


KINDS = (
    FaultKind(
        "negated comparison",
        "a predicate inverted and its users not",
        both(is_opcode("compare"), _outside_loop_condition),
        _negated,
    ),
    FaultKind(
        "mirrored comparison",
        "operands of a comparison commuted, its direction not",
        both(is_opcode("compare"), _is_mirrorable, _outside_loop_condition),
        _mirrored,
    ),
    FaultKind(
        "swapped sides of a select",
        "a select whose predicate was inverted",
        both(is_opcode("select"), _different_sides),
        _select,
    ),
    FaultKind(
        "select without its mask",
        "a mask taken for all true or all false",
        both(is_opcode("select"), _different_sides),
        _masked,
    ),
    FaultKind(
        "wrong branch",
        "a conditional whose predicate was turned into an index",
        lambda p: p.instruction.opcode == "conditional" and _exchangeable(p),
        _branch,
    ),
)
