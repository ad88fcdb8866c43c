"""Which integers are positions along a dimension: numbered elements, and the starts of windows.

An iota counts the positions of its dimension. The indices of a gather, and the starts of slices, updates
and scatters, are positions in the dimension that they are for, and so is what they are chosen and limited
from. What is added to a position, or taken away, moves it by a number that stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from hlotool.facts.flow import computed_by, handed_on
from hlotool.facts.recognition import ANNOTATIONS
from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import ArrayShape
from hlotool.rewrite.scale.per_device import SAME
from hlotool.rewrite.scale.places import Places
from hlotool.rewrite.scale.terms import Size

#: Constants with more elements are tables, and no list of places.
_MOST: Final = 64
#: Integers from here on are not exact in f64, and no positions.
_EXACT: Final = 2.0**53
#: Values are not followed further than this.
_DEEPEST: Final = 60
#: What has the same value in every run.
_SOURCES: Final = frozenset({"constant", "iota"})


class Start(NamedTuple):
    """Where windows begin along one dimension.

    Attributes:
        reader: that takes the windows, or chooses where they begin.
        number: of the operand that says where.
        value: what says it.
        size: of the dimension.
        window: of the elements of it that are taken; None where there are several of unknown sizes.
        column: of each vector of indices the element that is for the dimension, where `value` holds vectors
            of `columns` of them.
        columns: see `column`; 0 where it is unknown which of the numbers in `value` is for the dimension.
        wraps: whether a negative number has the size added to it.
        drops: whether a window that does not fit is left out; else it is moved to where it does.
    """

    reader: Instruction
    number: int
    value: Instruction
    size: Size
    window: Size | None
    column: int = 0
    columns: int = 1
    wraps: bool = False
    drops: bool = False


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
        yield from _looked_up(places, instruction)


def _looked_up(places: Places, instruction: Instruction) -> Iterator[Start]:
    is_gather = instruction.opcode == "gather"
    number = 1 if is_gather else len(instruction.operands) // 2
    mapped = instruction.integers("start_index_map" if is_gather else "scatter_dims_to_operand_dims")
    indices = instruction.operands[number]
    is_last = instruction.integer("index_vector_dim") == len(indices.dims) - 1
    columns = [(indices, 0, 1)]
    if len(mapped) > 1:
        columns = [*joined(places, indices)] if is_last else []
    if len(columns) != len(mapped):
        columns = [(indices, 0, 0)] * len(mapped)
    wholes, windows = places.known.of(instruction.operands[0]), _windows(places, instruction, number)
    is_single = indices.array_shape.size == len(mapped)
    for (value, column, count), dimension in zip(columns, mapped):
        window = windows.get(dimension, places.known.sizes.fixed(1, "one element"))
        if window.value < wholes[dimension].value:
            told = window if is_single or window.value == 1 else None
            where = instruction, number, value, wholes[dimension], told
            yield Start(*where, column, count, drops=not is_gather)


def _windows(places: Places, instruction: Instruction, number: int) -> dict[int, Size]:
    """The sizes of windows by the dimension of the operand; of those without one element is taken."""
    is_gather = instruction.opcode == "gather"
    gone = instruction.integers("collapsed_slice_dims" if is_gather else "inserted_window_dims")
    gone += instruction.integers("operand_batching_dims" if is_gather else "input_batching_dims", ())
    part = instruction if is_gather else instruction.operands[number + 1]
    where = instruction.integers("offset_dims" if is_gather else "update_window_dims")
    kept = [d for d in range(len(instruction.operands[0].dims)) if d not in gone]
    return {d: places.known.of(part)[one] for d, one in zip(kept, where)}


def joined(places: Places, value: Instruction) -> Iterator[tuple[Instruction, int, int]]:
    """The elements of vectors along the last dimension: each with the value that has it, which one it is in
    there, and of how many; nothing where that cannot be told."""
    source, count = places.stripped(value), value.dims[-1] if value.dims else 0
    if source is None or not isinstance(source.shape, ArrayShape) or not source.dims:
        return
    if source.opcode == "concatenate":
        last = len(source.dims) - 1
        if source.integers("dimensions") == (last,) and source.dims[last] == len(source.operands) == count:
            yield from ((operand, 0, 1) for operand in source.operands)
    elif (
        source.opcode == "constant"
        and source.array_shape.size == value.array_shape.size
        and source.dims[-1] == count
        and _is_in_order(places, value, source)
    ):
        yield from ((value, column, count) for column in range(count))


def _is_in_order(places: Places, value: Instruction, source: Instruction) -> bool:
    """Whether nothing on the way from a source changes the order of elements."""
    found = places.spread.origin(value)
    while found is not None and found is not source:
        if found.opcode == "transpose":
            return False
        found = places.spread.origin(found.operands[0])
    return found is not None


def is_computed(places: Places, value: Instruction) -> bool:
    """Whether a compiler can know where windows begin, from constants other than 0: what is made of them
    alone, or of several numbers one. The positions of an iota are all there are, and follow its size; and
    very many positions are a table, for which there is no other form."""
    source = places.stripped(value)
    if source is not None and source.opcode == "concatenate":
        return any(is_computed(places, operand) for operand in source.operands)
    if source is not None and source.attributes.get("custom_call_target") in ANNOTATIONS:
        return is_computed(places, source.operands[0])
    if value.array_shape.size > _MOST or (source is not None and source.opcode == "iota"):
        return False
    numbers = places.spread.of(value)
    return (numbers is None or any(numbers)) and _is_of_constants(places, value, {})


def _is_of_constants(
    places: Places, value: Instruction, known: dict[Instruction, bool], depth: int = 0
) -> bool:
    """Whether nothing but constants decides a value, as far as it is followed; what a loop counts is none."""
    if value not in known:
        known[value] = False
        if value in places.spread.calls.home and depth < _DEEPEST:
            found = computed_by(value, places.spread.calls)
            known[value] = bool(found) and all(
                not index and _is_made_of_constants(places, source, known, depth) for source, index in found
            )
    return known[value]


def _is_made_of_constants(
    places: Places, source: Instruction, known: dict[Instruction, bool], depth: int
) -> bool:
    """The same of what computes a value."""
    if source.opcode in _SOURCES:
        return True
    is_plain = bool(source.operands) and not list(source.called)
    return is_plain and all(_is_of_constants(places, one, known, depth + 1) for one in source.operands)


def whole_number(constant: Instruction) -> int | None:
    """The value of a constant of one element that is a whole number, of whatever type."""
    values = elements(constant)
    return values[0] if values is not None and len(values) == 1 else None


def elements(constant: Instruction) -> Sequence[int] | None:
    """The elements of a constant in row-major order; None where they are no whole numbers, or too many."""
    literal, shape = constant.literal, constant.shape
    if literal is None or literal.elided or not isinstance(shape, ArrayShape):
        return None
    kind = shape.element_type
    if not 0 < shape.size <= _MOST or not (kind.is_integer or kind.is_floating):
        return None
    array = literal.array.astype(np.float64).reshape(-1)
    is_whole = bool(np.all((np.abs(array) < _EXACT) & (array == np.rint(array))))
    return [int(value) for value in array] if is_whole else None


class Ruler(NamedTuple):
    """What an integer counts: a position along a dimension, plus a number.

    Attributes:
        size: of the dimension.
        offset: what the integer is more than the position.
        last: the position at which the last window begins.
        is_counted: whether it is made of an iota; else it is an index, which a program may compute again
            elsewhere, so that only some of its forms are known to be one.
    """

    size: Size
    offset: int
    last: int
    is_counted: bool


class Rulers:
    """What the integers of one program count.

    Attributes:
        limits: constants that say where windows begin, as `Start` of their readers.
        settled: reads of constants that decide nothing, such as the test whether one is negative.
        moved: sums whose number `of` was given and that a position is moved by.
        untold: what says where windows begin, made of constants in a way that is not understood.
    """

    def __init__(self, places: Places) -> None:
        self._places = places
        self._indices: dict[Instruction, Ruler | None] = {}
        self.limits: list[Start] = []
        self.settled: set[tuple[Instruction, int]] = set()
        self.moved: set[Instruction] = set()
        self.untold: list[Start] = []
        self._known: dict[Instruction, Ruler | None] = {}
        for instruction in places.spread.calls.home:
            for start in starts(places, instruction):
                # What a device takes of its shard is worked out with shards; here is what all take alike.
                if places.spread.is_spread(start.value):
                    continue
                if start.columns > 0:
                    self._follow(start)
                elif is_computed(places, start.value):
                    self.untold.append(start)

    def of(self, value: Instruction, depth: int = 0) -> Ruler | None:
        """What an integer, or a float that stands for one, counts; None where that is unknown."""
        if depth > _DEEPEST:
            return None
        if value not in self._known:
            self._known[value] = self._of(value, depth)
        return self._known[value]

    def _of(self, value: Instruction, depth: int) -> Ruler | None:
        for step in self._way(value):
            if (index := self._indices.get(step)) is not None:
                return index
        source = self._places.stripped(value)
        if source is None:
            return None
        if source.opcode == "iota":
            size = self._places.known.of(source)[source.integer("iota_dimension")]
            return Ruler(size, 0, size.value - 1, True)
        if source.opcode in ("add", "subtract"):
            return self._moved(source, depth)
        if source.opcode in opcodes_with(Trait.COMPARES) - {"compare"}:
            choices = source.operands[1:] if source.opcode == "select" else source.operands
            found = [ruler for operand in choices if (ruler := self.of(operand, depth + 1)) is not None]
            # Of an index that has the size added to it where it is negative the one that is plain.
            return min(found, key=lambda ruler: abs(ruler.offset), default=None)
        return None

    def _way(self, value: Instruction) -> Iterator[Instruction]:
        """A value and what hands it on, as far as that is one: calls before what they call, which others may
        call, too."""
        found: Instruction | None = value
        while found is not None:
            yield found
            if found.opcode in SAME:
                found = found.operands[0]
                continue
            before = [*handed_on((found, ()), self._places.spread.calls)]
            found = before[0][0] if len(before) == 1 and not before[0][1] else None

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
        last = start.size.value - (1 if start.window is None else start.window.value)
        ruler = Ruler(start.size, 0, last, False)
        pending, seen = [start], set[Instruction]()
        while pending:
            one = pending.pop()
            way = [*self._way(one.value)]
            source = self._places.stripped(one.value) or way[-1]
            if source in seen:
                continue
            if source.opcode == "constant":
                self.limits.append(one)
                continue
            seen.add(source)
            if one.columns > 1:
                continue
            if source.opcode == "select" and (constant := self._wrapped(one, source)) is not None:
                self.limits.append(constant)
                continue
            if self._places.spread.count == 1:
                self._count(ruler, (*way, source))
            calls = [step for step in way if step.opcode in ("call", "fusion")]
            choices = [*self._made_of(one, source, calls)]
            pending += choices
            has_more = choices or self._is_from_the_end(one, source)
            if not has_more and is_computed(self._places, one.value):
                self.untold.append(one)

    def _count(self, ruler: Ruler, steps: Sequence[Instruction]) -> None:
        """Say that integers are positions; those that are so in two dimensions are none."""
        sizes = self._places.known.sizes
        for step in steps:
            before = self._indices.get(step, ruler)
            is_same = before is not None and sizes.root(before.size) is sizes.root(ruler.size)
            self._indices[step] = ruler if is_same else None

    def _is_from_the_end(self, start: Start, source: Instruction) -> bool:
        """Whether an index is what another one, which stands beside it, is where it is negative."""
        if start.reader.opcode not in opcodes_with(Trait.INLINED) | {"select"} or source.opcode != "add":
            return False
        added = filter(None, map(self._places.stripped, source.operands))
        return any(whole_number(one) == start.size.value for one in added)

    def _made_of(self, start: Start, source: Instruction, calls: list[Instruction]) -> Iterator[Start]:
        """What an index may be: operands of a choice; of a function that several call, those of the call."""
        for number in self._handed_on(source):
            reader, value = source, source.operands[number]
            if value.opcode == "parameter" and calls and source is next(calls[-1].called).root:
                reader, number = calls[-1], value.parameter_number or 0
                value = reader.operands[number]
            yield start._replace(reader=reader, number=number, value=value)

    def _handed_on(self, source: Instruction) -> list[int]:
        """The operands that an index may be."""
        if source.opcode == "clamp":
            return [1]
        if source.opcode in ("minimum", "maximum"):
            operands = map(self._places.stripped, source.operands)
            return [n for n, one in enumerate(operands) if one is None or one.opcode != "constant"]
        return [1, 2] if source.opcode == "select" else []

    def _wrapped(self, start: Start, select: Instruction) -> Start | None:
        """The constant that an index is where those that are negative count from the end: what NumPy calls
        `x[[-1]]` is `select(c < 0, c + size, c)`."""
        compare, moved = map(self._places.stripped, select.operands[:2])
        plain = self._places.stripped(select.operands[2])
        if plain is None or elements(plain) is None or compare is None or moved is None:
            return None
        if (compare.opcode, compare.attributes.get("direction"), moved.opcode) != ("compare", "LT", "add"):
            return None
        tested, zero = map(self._places.stripped, compare.operands)
        if tested is not plain or zero is None or whole_number(zero) != 0:
            return None
        sources = [*map(self._places.stripped, moved.operands)]
        number = sources.index(plain) if plain in sources else None
        if number is None:
            return None
        added = sources[1 - number]
        if added is None or whole_number(added) != start.size.value:
            return None
        self.settled |= {(compare, 0), (moved, number), (select, 2)}
        return start._replace(reader=select, number=2, value=plain, wraps=True)
