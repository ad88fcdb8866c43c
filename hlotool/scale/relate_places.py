"""Constants that hold places, in all programs of a comparison, and what stays because of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hlotool.analysis.constants import integer_constant
from hlotool.ir.module import Instruction, Module
from hlotool.scale.cuts import NEAR, relate_stated
from hlotool.scale.indices import relate_indices
from hlotool.scale.loops import SizeConstant
from hlotool.scale.places import PlaceConstant, Places, TableConstant
from hlotool.scale.rules.base import Relations, place
from hlotool.scale.shards import relate_lasts, relate_shards
from hlotool.scale.spread import Spread
from hlotool.scale.terms import Size


def relate_places(
    known: Relations, modules: Sequence[Module], loops: Mapping[Instruction, SizeConstant]
) -> dict[Instruction, PlaceConstant | TableConstant]:
    """Find the constants that follow sizes as places of shards, as positions that are stated, or are added to
    negative indices.

    Args:
        known: sizes and relations; sizes of shards become related to those that they are cut from.
        modules: the programs.
        loops: constants that follow the length of a loop.
    """
    found: dict[Instruction, PlaceConstant] = {}
    from_the_end: set[Instruction] = set()
    doubtful: set[Instruction] = set()
    programs = [Places(known, Spread(module)) for module in modules]
    lasts = {table: held for places in programs for table, held in relate_shards(places).items()}
    relate_lasts(programs, lasts)
    relate_stated(programs)
    for places in programs:
        relate_indices(places)
        agreed, unsure = places.agreed()
        found |= agreed
        from_the_end |= places.from_the_end
        doubtful |= unsure
    for constant, held in list(found.items()):
        if constant in loops:
            _reconcile(known, constant, loops[constant], held)
            del found[constant]
        elif constant in doubtful and constant not in from_the_end:
            known.sizes.freeze(held.size, f"{place(constant)}: a place, and more than that")
    tables = {constant: table for places in programs for constant, table in places.tables.items()}
    return {**_on_both_sides(known, modules, {*loops}, found, from_the_end, doubtful), **tables}


def _reconcile(known: Relations, constant: Instruction, loop: SizeConstant, held: PlaceConstant) -> None:
    """A length of a loop that is a place, too."""
    if held.factors.item() == 1 and held.offsets.item() == loop.offset:
        known.sizes.unify(loop.size, held.size)
    else:
        known.sizes.freeze_all((loop.size, held.size), f"{place(constant)}: a length of a loop, and a place")


def _on_both_sides(
    known: Relations,
    modules: Sequence[Module],
    loops: set[Instruction],
    found: dict[Instruction, PlaceConstant],
    from_the_end: set[Instruction],
    doubtful: set[Instruction],
) -> dict[Instruction, PlaceConstant]:
    """Without what is added to negative indices where a program may have it in another form.

    A number that both programs have means the same in both if it changes nowhere, or everywhere. One that
    only one of them has may be hidden in a number that is a little larger or smaller.
    """
    ends = from_the_end & found.keys()
    left: set[Size] = set()
    for module in modules:
        others, mine = set[int](), set[Size]()
        for instruction in module.instructions():
            if instruction.opcode != "constant" or instruction in loops:
                continue
            if instruction in ends and instruction not in doubtful:
                mine.add(known.sizes.root(found[instruction].size))
            elif instruction not in found or instruction in doubtful:
                others.add(abs(integer_constant(instruction) or 0))
        for constant in ends:
            size, value = known.sizes.root(found[constant].size), integer_constant(constant) or 0
            near = range(value - NEAR, value + NEAR + 1) if size not in mine else (value,)
            if not others.isdisjoint(near):
                left.add(size)
    return {
        constant: held
        for constant, held in found.items()
        if constant not in ends or known.sizes.root(held.size) not in left
    }
