"""Indices from the end: a negative one has the size of the dimension added to it.

What NumPy calls `x[-1]` is, in HLO, `select(i < 0, i + size, i)`, of which a compiler makes one constant
where something is added to `i` before. The size follows the dimension that the index is for.
"""

from __future__ import annotations

from collections.abc import Iterator

from hlotool.analysis.constants import integer_constant
from hlotool.ir.module import Instruction
from hlotool.scale.places import Found, Places
from hlotool.scale.terms import Size


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
