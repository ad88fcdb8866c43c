"""Constants that hold places, in all programs of a comparison, and what stays because of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hlotool.analysis.constants import integer_constant
from hlotool.ir.module import Instruction, Module
from hlotool.scale.cuts import NEAR, relate_stated
from hlotool.scale.loops import SizeConstant
from hlotool.scale.places import Found, PlaceConstant, Places, TableConstant
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


# Indices from the end: a negative one has the size of the dimension added to it.
#
# What NumPy calls `x[-1]` is, in HLO, `select(i < 0, i + size, i)`, of which a compiler makes one constant
# where something is added to `i` before. The size follows the dimension that the index is for.


def relate_indices(places: Places) -> None:
    """Find the sizes that are added to negative indices in one program."""
    for instruction in places.spread.calls.home:
        for index, size in _indices(places, instruction):
            _from_the_end(places, index, size)


def _indices(places: Places, instruction: Instruction) -> Iterator[tuple[Instruction, Size]]:
    """What says where a window begins, and the size of the dimension that it is in."""
    operands = instruction.operands
    if instruction.opcode in ("dynamic-slice", "dynamic-update-slice"):
        first = 1 if instruction.opcode == "dynamic-slice" else 2
        if len(operands) == first + len(places.known.of(operands[0])):
            yield from zip(operands[first:], places.known.of(operands[0]))
    elif instruction.opcode in ("gather", "scatter"):
        is_gather = instruction.opcode == "gather"
        name = "start_index_map" if is_gather else "scatter_dims_to_operand_dims"
        sizes = [places.known.of(operands[0])[d] for d in instruction.integers(name)]
        indices = places.stripped(operands[1 if is_gather else len(operands) // 2])
        columns = [] if indices is None else [indices]
        if indices is not None and indices.opcode == "concatenate":
            columns = [*indices.operands]
        if len(columns) == len(sizes):
            yield from zip(columns, sizes)


def _from_the_end(places: Places, index: Instruction, size: Size) -> None:
    chosen = places.stripped(index)
    if chosen is not None and chosen.opcode == "clamp":
        chosen = places.stripped(chosen.operands[1])
    if chosen is None or chosen.opcode != "select":
        return
    wrapped, plain = places.stripped(chosen.operands[1]), places.stripped(chosen.operands[2])
    if wrapped is None or plain is None or wrapped.opcode != "add":
        return
    for number, operand in enumerate(wrapped.operands):
        added, start = places.stripped(operand), places.stripped(wrapped.operands[1 - number])
        value = None if added is None else integer_constant(added)
        if value is None or start is None:
            continue
        offset = 0 if start is plain else _offset(places, plain, start)
        if offset is not None and value - offset == size.value > 1:
            found = Found(ends={(wrapped, number)})
            if places.made(operand, size, (1,) * places.spread.count, offset, found):
                places.from_the_end |= found.held.keys() - (places.found.held.keys() - places.from_the_end)
                places.found.add(found)


def _offset(places: Places, plain: Instruction, start: Instruction) -> int | None:
    """What is added to `start` to give `plain`."""
    if plain.opcode != "add":
        return None
    for number, operand in enumerate(plain.operands):
        added = places.stripped(operand)
        if added is not None and places.stripped(plain.operands[1 - number]) is start:
            return integer_constant(added)
    return None
