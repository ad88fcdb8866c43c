"""Which integers are positions along a dimension: numbered elements, and what says where a window begins.

An iota counts the positions of its dimension. The indices of a gather, and the starts of slices, are
positions in the dimension that they are for, and so is what they are chosen and limited from. What is
added to a position, or taken away, moves it by a number that stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from hlotool.analysis.flow import handed_on
from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.scale.places import Places
from hlotool.scale.spread import SAME
from hlotool.scale.starts import Start, elements, is_computed, starts, whole_number
from hlotool.scale.terms import Size

#: Positions are not followed further than this.
_DEEPEST: Final = 60


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
        limits: constants that say where windows begin, as `Start` of whoever reads them.
        settled: reads of constants that decide nothing, such as the test whether one is negative.
        moved: sums that `of` was told the number of that a position is moved by.
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
                # What a device takes of its shard is told with shards; here is what all take alike.
                if places.spread.is_spread(start.value):
                    continue
                if start.columns > 0:
                    self._follow(start)
                elif is_computed(places, start.value):
                    self.untold.append(start)

    def of(self, value: Instruction, depth: int = 0) -> Ruler | None:
        """What an integer, or a float that stands for one, counts; None where nobody knows."""
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
