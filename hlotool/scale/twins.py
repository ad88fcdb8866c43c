"""Values that one program computes twice and the other once: both have the sizes of the one that is left.

A compiler computes what stands twice in a program once. Of the two one finds its partner in the other
program; the sizes of the other would have none, and stay, while those of its twin change.
"""

from __future__ import annotations

from hlotool.analysis.calls import CallGraph
from hlotool.analysis.value_numbers import ValueNumbers
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ArrayShape
from hlotool.scale.rules.base import Relations
from hlotool.scale.terms import Size


def unify_twins(known: Relations, module: Module, alone: set[Size]) -> None:
    """Unify the sizes of equal values of which some have no partner.

    Args:
        known: sizes and relations.
        module: one program.
        alone: atoms that are in no other program.
    """
    calls = CallGraph(module)
    # Only what is made of such sizes, and arrays of the same dimensions, is looked at.
    shapes = {
        instruction.dims
        for instruction in calls.home
        if isinstance(instruction.shape, ArrayShape) and _has(known, instruction, alone)
    }
    numbers, first = ValueNumbers(calls), dict[int, Instruction]()
    for instruction in calls.home:
        if isinstance(instruction.shape, ArrayShape) and instruction.dims in shapes:
            twin = first.setdefault(numbers.of(instruction), instruction)
            if twin.dims == instruction.dims:
                known.sizes.unify_all(known.of(twin), known.of(instruction))


def _has(known: Relations, instruction: Instruction, alone: set[Size]) -> bool:
    return any(atom in alone for size in known.of(instruction) for atom in known.sizes.atoms(size))
