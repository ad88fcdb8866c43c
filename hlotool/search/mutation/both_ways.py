"""Decisions that decide nothing: whichever way they go, the program computes the same real numbers.

At a tie, or on one side of a threshold that random numbers do not meet, a field sees nothing of a wrong
decision. But where all ways of a choice are the same function, as different formulas for one number are, it
does not matter how it decides.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from hlotool.faults.edit import Edit, of_type
from hlotool.faults.families import family_of
from hlotool.faults.fits import array_of
from hlotool.faults.kind import FaultKind, find
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ArrayShape, ElementType
from hlotool.ir.walk import reachable
from hlotool.search.mutation.mutants import Mutant

#: Faults of what a comparison or a select decides.
_FAMILIES: Final = frozenset({"tie", "branch"})


def is_decision(mutant: Mutant) -> bool:
    """Whether the fault is in how a comparison or a select decides."""
    _, target = find(mutant.right, mutant.site)
    return family_of(mutant.kind) in _FAMILIES and target.opcode in ("compare", "select")


def both_ways(mutant: Mutant) -> list[Module]:
    """The program with the decision of a mutant made one way, the other way, and now this way, now that.

    Returns:
        none where the program might not end then.
    """
    computation, _ = find(mutant.right, mutant.site)
    loops = [i for i in mutant.right.instructions() if i.opcode == "while"]
    if any(computation in reachable(loop.computation("condition")) for loop in loops):
        return []
    return [way.plant(mutant.right, mutant.site) for way in _WAYS]


def _always(holds: bool) -> Callable[[Edit, Instruction], None]:
    def rewrite(edit: Edit, target: Instruction) -> None:
        _decide(edit, target, edit.filled(holds, _mask_of(target)))

    return rewrite


def _in_turn(edit: Edit, target: Instruction) -> None:
    _decide(edit, target, board(edit, _mask_of(target)))


def board(edit: Edit, shape: ArrayShape) -> Instruction:
    """True where the sum of the indices is even, as on a board of squares; `shape` is one of preds."""
    mask = edit.filled(True, shape)
    for dimension in range(shape.rank):
        numbers = of_type(shape, ElementType.S32)
        last = edit.op("and", edit.index(shape, dimension), edit.filled(1, numbers), shape=numbers)
        is_odd = edit.op("compare", last, edit.filled(1, numbers), direction="EQ")
        mask = edit.op("xor", mask, is_odd, shape=shape)
    return mask


def _mask_of(target: Instruction) -> ArrayShape:
    return array_of(target if target.opcode == "compare" else target.operands[0])


def _decide(edit: Edit, target: Instruction, mask: Instruction) -> None:
    if target.opcode == "compare":
        edit.replace(mask)
    else:
        edit.set_operand(0, mask)


def _way(name: str, rewrite: Callable[[Edit, Instruction], None]) -> FaultKind:
    return FaultKind(name, "a decision that is none", lambda place: True, rewrite)


_WAYS: Final = (
    _way("always true", _always(True)),
    _way("always false", _always(False)),
    _way("true in turn", _in_turn),
)
