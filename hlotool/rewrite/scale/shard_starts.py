"""Places that a partitioner counts out: where the shard of a device begins, as a multiple of its size.

A device takes its shard of a dimension at its number times the size of a shard, or at a place that a table
has for it; it looks up indices less the first one that it holds; it numbers its elements from there. The
constants in such places are sizes of shards, times what does not depend on sizes, and follow them. What a
device's number goes into and no rule here understands keeps the sizes that may stand in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape
from hlotool.rewrite.scale.per_device import HANDS_ON, SAME
from hlotool.rewrite.scale.places import Found, PlaceConstant, Places
from hlotool.rewrite.scale.sizes import place
from hlotool.rewrite.scale.terms import Size

#: Sizes below this stay as they are, whatever is chosen; such numbers count devices and neighbours.
_LEAST: Final = 5


def relate_shards(places: Places) -> Mapping[Instruction, PlaceConstant]:
    """Relate sizes of shards in one program to those that they are cut from, and find what places are
    made of.

    Returns:
        tables of the last elements of several dimensions, of which one is in parts.
    """
    shards = _Shards(places)
    if places.spread.count > 1:
        shards.relate()
    return shards.lasts


def relate_lasts(programs: Sequence[Places], lasts: Mapping[Instruction, PlaceConstant]) -> None:
    """Tables of last elements that programs compare indices with on their own, too, follow in all programs.

    Args:
        programs: the places in each.
        lasts: what `relate_shards` returned for all of them.
    """
    for table, held in lasts.items():
        elements = _elements(table)
        for places in programs:
            for instruction in places.spread.calls.home:
                is_alike = instruction.opcode == "constant" and _elements(instruction) == elements
                if is_alike and not _follows(places, instruction, held):
                    why = f"{place(instruction)}: the last elements, and more than that"
                    places.known.sizes.freeze(held.size, why)


def _follows(places: Places, table: Instruction, held: PlaceConstant) -> bool:
    """Say that a table is of last elements, where it is compared with, or limits, something; else false."""
    literal = table.literal
    assert literal is not None
    shape = literal.array.shape
    own = PlaceConstant(held.size, held.factors.reshape(shape), held.offsets.reshape(shape))
    found = Found({table: [own]}, {table})
    for user in places.spread.calls.home:
        for number, operand in enumerate(user.operands):
            if places.stripped(operand) is not table or user.opcode in HANDS_ON:
                continue
            if user.opcode in SAME:
                found.seen.add(user)
            elif user.opcode in ("clamp", "compare"):
                found.ends.add((user, number))
            else:
                return False
    places.known.freeze(table, f"{place(table)}: a column for each dimension")
    places.found.add(found)
    return True


class _Shards:
    """The shards in one program.

    Attributes:
        lasts: see `relate_shards`.
    """

    def __init__(self, places: Places) -> None:
        self._places, self._known, self._spread = places, places.known, places.spread
        self.lasts: dict[Instruction, PlaceConstant] = {}

    def relate(self) -> None:
        """See `relate_shards`."""
        for instruction in self._spread.calls.home:
            if instruction.opcode in ("dynamic-slice", "dynamic-update-slice"):
                self._window(instruction)
            elif instruction.opcode in ("gather", "scatter"):
                self._lookup(instruction)
            elif instruction.opcode == "add":
                self._numbered(instruction)
        for instruction, number in self._spread.readers():
            if (instruction, number) not in self._places.found.ends:
                self._freeze_made(instruction, instruction.operands[number])

    def _window(self, instruction: Instruction) -> None:
        """A shard is cut out, or put back, at a place that follows from the number of the device."""
        is_slice = instruction.opcode == "dynamic-slice"
        first = 1 if is_slice else 2
        part = instruction if is_slice else instruction.operands[1]
        places = instruction.operands[first:]
        wholes, parts = self._known.of(instruction.operands[0]), self._known.of(part)
        if len(places) != len(wholes):
            return
        for number, (whole, size, where) in enumerate(zip(wholes, parts, places)):
            if not self._spread.is_spread(where):
                continue
            end = instruction, first + number
            if size.value == 1:
                self._known.sizes.freeze(whole, f"{place(instruction)}: an element for each device")
                self._places.found.ends.add(end)
            elif whole.value % size.value == 0 and self._places.is_multiple(where, size, end):
                self._known.divide(whole, size, _untold(instruction))
            else:
                self._known.sizes.freeze_all((whole, size), _untold(instruction))

    def _lookup(self, instruction: Instruction) -> None:
        """Indices less the first ones that the device holds, one for each dimension that is indexed."""
        is_gather = instruction.opcode == "gather"
        name = "start_index_map" if is_gather else "scatter_dims_to_operand_dims"
        dims = self._known.of(instruction.operands[0])
        sizes = [dims[d] for d in instruction.integers(name)]
        count = len(instruction.operands) // 2
        moved = self._places.stripped(instruction.operands[1 if is_gather else count])
        if moved is None or moved.opcode != "subtract":
            return
        index, first = moved.operands
        for number, end, value in self._columns((moved, 1), first, len(sizes)):
            if not self._places.is_multiple(value, sizes[number], end):
                self._known.sizes.freeze(sizes[number], _untold(instruction))
                return
            self._bounds(index, number, sizes)

    def _columns(
        self, end: tuple[Instruction, int], value: Instruction, count: int
    ) -> Iterator[tuple[int, tuple[Instruction, int], Instruction]]:
        """Of what stands beside indices for so many dimensions the columns that follow from the number of the
        device: which one, where it is read, and what it is."""
        columns = self._places.stripped(value)
        if count == 1 and self._spread.is_spread(value):
            yield 0, end, value
        elif columns is not None and columns.opcode == "concatenate" and len(columns.operands) == count:
            for number, column in enumerate(columns.operands):
                if self._spread.is_spread(column):
                    yield number, (columns, number), column

    def _bounds(self, index: Instruction, number: int, sizes: Sequence[Size]) -> None:
        """What else is said of a column of indices: whether they are the device's own, and that they are some
        at all."""
        source = self._places.stripped(index)
        if source is None:
            return
        for user in self._spread.calls.home:
            if user.opcode != "compare":
                continue
            for side, operand in enumerate(user.operands):
                if self._places.stripped(user.operands[1 - side]) is source:
                    for column, end, value in self._columns((user, side), operand, len(sizes)):
                        if column == number:
                            self._places.is_multiple(value, sizes[number], end)
        if source.opcode != "clamp":
            return
        if len(sizes) > 1:
            self._last_of_many(source, number, sizes)
            return
        last = self._spread.of(source.operands[2])
        if last is not None and (last[0] + 1) % sizes[0].value == 0:
            self._places.is_multiple(source.operands[2], sizes[0], (source, 2))

    def _last_of_many(self, clamp: Instruction, number: int, sizes: Sequence[Size]) -> None:
        """The last element of each dimension, in a table with a column for each: that of the dimension in
        parts follows it. Otherwise an index beyond the end would be another one on the two sides."""
        size, table = sizes[number], self._places.stripped(clamp.operands[2])
        literal = None if table is None else table.literal
        elements = [] if table is None else _elements(table)
        is_told = len(elements) == len(sizes) and (elements[number] + 1) % size.value == 0
        if table is None or literal is None or not is_told:
            self._known.sizes.freeze(size, _untold(clamp))
        else:
            factors, offsets = np.zeros_like(literal.array, np.int64), literal.array.astype(np.int64)
            factors.reshape(-1)[number] = (elements[number] + 1) // size.value
            offsets.reshape(-1)[number] = -1
            held = PlaceConstant(size, factors, offsets)
            if self.lasts.setdefault(table, held).is_alike(held):
                self._known.sizes.unify(self.lasts[table].size, size)
            else:
                self._known.sizes.freeze_all((self.lasts[table].size, size), _untold(clamp))

    def _numbered(self, instruction: Instruction) -> None:
        """Elements are numbered from the first one that the device has."""
        for number, operand in enumerate(instruction.operands):
            source = self._places.stripped(instruction.operands[1 - number])
            if source is None or source.opcode != "iota" or not self._spread.is_spread(operand):
                continue
            size = self._known.of(source)[source.integer("iota_dimension")]
            if size.value == 1 or not self._places.is_multiple(operand, size, (instruction, number)):
                self._known.sizes.freeze(size, _untold(instruction))

    def _freeze_made(self, reader: Instruction, value: Instruction) -> None:
        """What is made of the number of a device in an unknown way keeps the sizes that are in it."""
        numbers = {n for constant in self._constants(value) for n in _elements(constant)}
        doubtful = {n + d for n in map(abs, numbers) for d in (0, 1) if n + d >= _LEAST}
        if len(numbers) > 1:
            doubtful |= {g for g in (int(np.gcd.reduce([*numbers])),) if g > 1}
        if not doubtful:
            return
        why = f"{place(reader)}: of the number of a device, in a way that is not understood"
        for instruction in self._spread.calls.home:
            for dims in self._known.dims[instruction].values():
                for size in dims:
                    if size.value in doubtful and not self._known.sizes.root(size).why:
                        self._known.sizes.freeze(size, why)

    def _constants(self, value: Instruction) -> Iterator[Instruction]:
        pending, seen = [value], {value}
        while pending:
            source = self._spread.origin(pending.pop())
            if source is None:
                continue
            if source.opcode == "constant":
                yield source
            for operand in source.operands:
                if operand not in seen:
                    seen.add(operand)
                    pending.append(operand)


def _elements(constant: Instruction) -> Sequence[int]:
    literal = constant.literal
    if literal is None or literal.elided or not isinstance(constant.shape, ArrayShape):
        return ()
    if constant.shape.element_type.is_complex:
        return ()
    return [int(element) for element in literal.array.reshape(-1) if float(element).is_integer()]


def _untold(instruction: Instruction) -> str:
    return f"{place(instruction)}: a place that follows from the number of a device cannot be derived"
