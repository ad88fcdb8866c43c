"""The two ways of a comparison where both sides are equal, as two programs.

A wrong tie shows at points that no random number meets. But where both sides are one number, either may stand
for the other: with one in place of the other, and the comparison decided, what the program returns at a tie
is a function of all numbers, and so is what the mutant returns. If these are the same function, so are the
programs, at ties; elsewhere the mutant decides as the program does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

import numpy as np

from hlotool.analysis.calls import CallGraph
from hlotool.analysis.value_numbers import ValueNumbers
from hlotool.faults.edit import Edit
from hlotool.faults.fits import array_of
from hlotool.faults.kind import FaultKind, Site, find
from hlotool.ir.dtypes import Array
from hlotool.ir.edit import editing
from hlotool.ir.edit_calls import inline
from hlotool.ir.edit_clone import clone_module
from hlotool.ir.edit_dead import remove_dead_code
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ArrayShape, Shape
from hlotool.ir.walk import post_order, reachable
from hlotool.search.mutation.both_ways import board
from hlotool.search.mutation.mutants import Mutant
from hlotool.values.flatten import Value, flatten

#: The comparison goes by this name, in copies of its computation, too.
_NAME: Final = "decided_at_ties"
#: A program with more instructions, once all calls are in place, is left alone.
_MOST_INSTRUCTIONS: Final = 5_000
#: What holds where both sides are equal.
_HOLD: Final = frozenset({"GE", "LE"})


def at_ties(mutant: Mutant) -> list[tuple[Module, Module]]:
    """The program and a mutant that decides ties the other way, where some elements are equal: each pair has
    other elements that are.

    Args:
        mutant: of the kind `tie decided the other way`.

    Returns:
        pairs with elements all equal, equal in turn, and one equal; none where the comparison does not run
        exactly once, outside of loops, branches and regions of other operations, or is not one of floats.
    """
    flat = _flat(mutant)
    if flat is None:
        return []
    module, site = flat
    _, target = find(module, site)
    number, other = target.operands
    shape = array_of(number)
    if not shape.element_type.is_floating or number.shape != other.shape:
        return []
    if number.opcode in ("broadcast", "constant"):
        number = other
    numbers = ValueNumbers(CallGraph(module))
    alike = frozenset(
        i.name for i in module.entry.instructions if i.shape == number.shape and numbers.same(i, number)
    )
    holds = target.attributes["direction"] in _HOLD
    return [
        (
            _decided(mask, alike, holds).plant(module, site),
            _decided(mask, alike, not holds).plant(module, site),
        )
        for mask in (_MASKS if shape.rank else _MASKS[:1])
    ]


def alike_but_for_rounding(result: Shape, one: Value, other: Value) -> bool:
    """Whether two values have the same infinities, NaN, integers and preds in the same places."""
    return all(
        _is_alike(np.asarray(x), np.asarray(y))
        for (_, shape, x), (_, _, y) in zip(flatten(result, one), flatten(result, other))
        if isinstance(shape, ArrayShape)
    )


def _is_alike(x: Array, y: Array) -> bool:
    if x.shape != y.shape or x.dtype != y.dtype:
        return False
    if x.dtype.kind in "biu":
        return np.array_equal(x, y)
    wide = np.complex128 if x.dtype.kind == "c" else np.float64
    numbers, others = x.astype(wide), y.astype(wide)
    both = np.isfinite(numbers) & np.isfinite(others)
    return np.array_equal(numbers[~both], others[~both], equal_nan=True)


def _flat(mutant: Mutant) -> tuple[Module, Site] | None:
    """The program without calls and fusions, and where the comparison is then."""
    module = clone_module(mutant.right).module
    _, target = find(module, mutant.site)
    target.name = _NAME
    entry = module.entry
    while calls := [i for i in entry.instructions if i.opcode in ("call", "fusion")]:
        with editing(entry) as editor:
            for call in calls:
                inline(module, editor, call)
        if len(entry.instructions) > _MOST_INSTRUCTIONS:
            return None
    remove_dead_code(module)
    found = [
        (computation, i)
        for computation in reachable(entry)
        for i in computation.instructions
        if i.name.startswith(_NAME)
    ]
    if len(found) != 1 or found[0][0] is not entry:
        return None
    return module, Site(entry.name, found[0][1].name)


_Mask = Callable[[Edit, ArrayShape], Instruction]

#: Where both sides are equal.
_MASKS: Final[tuple[_Mask, ...]] = (
    lambda edit, shape: edit.filled(True, shape),
    board,
    lambda edit, shape: edit.element(shape),
)


def _decided(mask: _Mask, alike: Collection[str], holds: bool) -> FaultKind:
    """The comparison decided where the mask holds; one side, which is `alike`, is the other one there."""

    def rewrite(edit: Edit, target: Instruction) -> None:
        number, other = sorted(target.operands, key=lambda operand: operand.name not in alike)
        where = mask(edit, array_of(target))
        equal = edit.where(where, other, number)
        # What both sides are made of reads the number itself, or they would be made of themselves.
        but = {target, *post_order([number, other])}
        for instruction in list(edit.computation.instructions):
            if instruction.name in alike:
                edit.substitute(instruction, equal, but)
        edit.after()
        edit.replace(edit.where(where, edit.filled(holds, array_of(target)), target))

    return FaultKind(_NAME, "both sides of a comparison equal", lambda place: True, rewrite)
