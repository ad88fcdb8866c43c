"""Which integers are positions along a dimension: numbered elements, and what says where a window begins.

An iota counts the positions of its dimension. The indices of a gather, and the starts of slices, are
positions in the dimension that they are for, and so is what they are chosen and limited from. What is
added to a position, or taken away, moves it by a number that stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape
from hlotool.scale.places import Places
from hlotool.scale.sizes import Size

#: Positions are not followed further than this.
_DEEPEST: Final = 60
#: Constants with more elements are tables, and no list of places.
_MOST: Final = 64
#: Integers from here on are not exact in f64, and no positions.
_EXACT: Final = 2.0**53


class Ruler(NamedTuple):
    """What an integer counts: a position along a dimension, plus a number.

    Attributes:
        size: of the dimension.
        offset: what the integer is more than the position.
        is_counted: whether it is made of an iota; else it is an index, which a program may compute again
            elsewhere, so that only some of its forms are known to be one.
    """

    size: Size
    offset: int
    is_counted: bool


class Start(NamedTuple):
    """Where windows begin along one dimension.

    Attributes:
        reader: that takes the windows, or chooses where they begin.
        number: of the operand that says where.
        value: what says it: the operand, or a column of it.
        size: of the dimension.
        window: of the elements of it that are taken; None where they are several that are not told.
        is_from_end: whether the size is added to what is said.
    """

    reader: Instruction
    number: int
    value: Instruction
    size: Size
    window: Size | None
    is_from_end: bool = False


def starts(places: Places, instruction: Instruction) -> Iterator[Start]:
    """What says where the windows of a slice, an update, a gather or a scatter begin in dimensions that
    they do not take as a whole."""
    operands, known = instruction.operands, places.known
    if instruction.opcode in ("dynamic-slice", "dynamic-update-slice"):
        is_slice = instruction.opcode == "dynamic-slice"
        first, part = (1, instruction) if is_slice else (2, operands[1])
        if len(operands) == first + len(known.of(operands[0])):
            for number, (size, window) in enumerate(zip(known.of(operands[0]), known.of(part))):
                if window.value < size.value:
                    yield Start(instruction, first + number, operands[first + number], size, window)
    elif instruction.opcode in ("gather", "scatter"):
        yield from _columns(places, instruction)


def _columns(places: Places, instruction: Instruction) -> Iterator[Start]:
    """The numbers for each dimension: all indices where there is one, else operands that are joined."""
    known, operands = places.known, instruction.operands
    is_gather = instruction.opcode == "gather"
    number = 1 if is_gather else len(operands) // 2
    mapped = instruction.integers("start_index_map" if is_gather else "scatter_dims_to_operand_dims")
    whole = known.of(operands[0])
    columns: list[Instruction] = [operands[number]]
    joined = places.stripped(operands[number])
    if len(mapped) > 1 and joined is not None and joined.opcode == "concatenate":
        last = len(joined.dims) - 1
        is_last = instruction.integer("index_vector_dim") == len(operands[number].dims) - 1
        if is_last and joined.integers("dimensions") == (last,) and joined.dims[last] == len(joined.operands):
            columns = [*joined.operands]
    if len(columns) != len(mapped):
        return
    for value, dimension in zip(columns, mapped):
        size = whole[dimension]
        if is_gather:
            count = instruction.integers("slice_sizes")[dimension]
        else:
            count = 1 if dimension in instruction.integers("inserted_window_dims") else size.value
        if count < size.value:
            window = known.sizes.fixed(1, "one element") if count == 1 else None
            yield Start(instruction, number, value, size, window)


class Rulers:
    """What the integers of one program count.

    Attributes:
        limits: constants that say where windows begin, as `Start` of whoever reads them.
        settled: reads of constants that decide nothing, such as the test whether one is negative.
        moved: sums that `of` was told the number of that a position is moved by.
    """

    def __init__(self, places: Places) -> None:
        self._places = places
        self._indices: dict[Instruction, Size | None] = {}
        self.limits: list[Start] = []
        self.settled: set[tuple[Instruction, int]] = set()
        self.moved: set[Instruction] = set()
        self._known: dict[Instruction, Ruler | None] = {}
        for instruction in places.spread.calls.home:
            # What a device takes of its shard is told with shards.
            for start in starts(places, instruction) if places.spread.count == 1 else ():
                self._follow(start)

    def of(self, value: Instruction, depth: int = 0) -> Ruler | None:
        """What an integer, or a float that stands for one, counts; None where nobody knows."""
        source = self._places.stripped(value)
        if source is None or depth > _DEEPEST:
            return None
        if source not in self._known:
            self._known[source] = self._of(source, depth)
        return self._known[source]

    def _of(self, source: Instruction, depth: int) -> Ruler | None:
        if source.opcode == "iota":
            return Ruler(self._places.known.of(source)[source.integer("iota_dimension")], 0, True)
        size = self._indices.get(source)
        if size is not None:
            return Ruler(size, 0, False)
        if source.opcode in ("add", "subtract"):
            return self._moved(source, depth)
        if source.opcode in ("minimum", "maximum", "clamp", "select"):
            choices = source.operands[1:] if source.opcode == "select" else source.operands
            found = [ruler for operand in choices if (ruler := self.of(operand, depth + 1)) is not None]
            # Of an index that has the size added to it where it is negative the one that is plain.
            return min(found, key=lambda ruler: abs(ruler.offset), default=None)
        return None

    def _moved(self, source: Instruction, depth: int) -> Ruler | None:
        one, other = source.operands
        pairs = ((one, other, 1), (other, one, 1)) if source.opcode == "add" else ((one, other, -1),)
        for position, added, sign in pairs:
            constant = self._places.stripped(added)
            number = None if constant is None else whole_number(constant)
            ruler = None if number is None else self.of(position, depth + 1)
            if number is not None and ruler is not None:
                self.moved.add(source)
                return ruler._replace(offset=ruler.offset + sign * number)
        return None

    def _follow(self, start: Start) -> None:
        """Go back from an index to what it is made of."""
        pending, seen = [start], set[Instruction]()
        while pending:
            one = pending.pop()
            source = self._places.stripped(one.value)
            if source is None or source in seen:
                continue
            if source.opcode == "constant":
                self.limits.append(one)
                continue
            seen.add(source)
            if source.opcode == "select" and (constant := self._wrapped(one, source)) is not None:
                self.limits.append(constant)
                continue
            sizes = self._places.known.sizes
            before = self._indices.get(source, one.size)
            is_same = before is not None and sizes.root(before) is sizes.root(one.size)
            self._indices[source] = one.size if is_same else None
            for number in self._handed_on(source):
                value = source.operands[number]
                pending.append(one._replace(reader=source, number=number, value=value))

    def _handed_on(self, source: Instruction) -> list[int]:
        """The operands that an index may be."""
        if source.opcode == "clamp":
            return [1]
        if source.opcode in ("minimum", "maximum"):
            operands = map(self._places.stripped, source.operands)
            return [n for n, one in enumerate(operands) if one is None or one.opcode != "constant"]
        if source.opcode != "select":
            return []
        return [1, 2]

    def _wrapped(self, start: Start, select: Instruction) -> Start | None:
        """The constant that an index is where those that are negative count from the end: what NumPy calls
        `x[[-1]]` is `select(c < 0, c + size, c)`."""
        compare, moved = map(self._places.stripped, select.operands[:2])
        plain = self._places.stripped(select.operands[2])
        values = None if plain is None else elements(plain)
        if values is None or compare is None or moved is None or plain is None:
            return None
        if (compare.opcode, compare.attributes.get("direction"), moved.opcode) != ("compare", "LT", "add"):
            return None
        tested, zero = map(self._places.stripped, compare.operands)
        if tested is not plain or zero is None or whole_number(zero) != 0:
            return None
        sources = [*map(self._places.stripped, moved.operands)]
        number = sources.index(plain) if plain in sources else None
        if number is None or len({value < 0 for value in values}) != 1:
            return None
        added = sources[1 - number]
        if added is None or whole_number(added) != start.size.value:
            return None
        self.settled |= {(compare, 0), (moved, number), (select, 2)}
        if values[0] < 0:
            return start._replace(reader=moved, number=number, value=plain, is_from_end=True)
        return start._replace(reader=select, number=2, value=plain)


def whole_number(constant: Instruction) -> int | None:
    """The value of a constant of one element that is a whole number, of whatever type."""
    values = elements(constant)
    return values[0] if values is not None and len(values) == 1 else None


def elements(constant: Instruction) -> list[int] | None:
    """The elements of a constant in row-major order; None where they are not whole numbers, or too many."""
    literal, shape = constant.literal, constant.shape
    if (
        constant.opcode != "constant"
        or literal is None
        or literal.elided
        or not isinstance(shape, ArrayShape)
    ):
        return None
    kind = shape.element_type
    if not 0 < shape.size <= _MOST or not (kind.is_integer or kind.is_floating):
        return None
    array = literal.array.astype(np.float64).reshape(-1)
    is_whole = bool(np.all((np.abs(array) < _EXACT) & (array == np.rint(array))))
    return [int(value) for value in array] if is_whole else None
