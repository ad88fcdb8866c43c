"""Numbers of a program that are positions along a dimension, and numbers that might be.

`compare(iota, 45)` states a position, and so do the start of a slice, the limits that an index is clamped
to and a row that a gather always takes. Where arithmetic is done with positions and a constant (a remainder,
a product) it is not worked out here which position that is.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from hlotool.facts.machine_range import of_integers
from hlotool.facts.machine_rules import outcome
from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import ArrayShape
from hlotool.rewrite.scale.per_device import HANDS_ON, SAME
from hlotool.rewrite.scale.places import Places
from hlotool.rewrite.scale.position_sources import Ruler, Rulers, elements, joined
from hlotool.rewrite.scale.terms import Size

#: What compares a position with another one, or limits it.
_COMPARES: Final = opcodes_with(Trait.COMPARES) - {"select"}
#: What makes other numbers of positions.
_COMPUTES: Final = frozenset(
    {"add", "subtract", "multiply", "divide", "remainder", "and", "or", "xor", "power",
     "shift-left", "shift-right-logical", "shift-right-arithmetic"}
)  # fmt: skip
#: Positions that one constant states at most; more are a table like any other.
_MOST: Final = 16


class Statement(Struct, frozen=True):
    """Positions along a dimension that a constant holds.

    Attributes:
        constant: that holds them.
        reader: what the operand of this number is read by, as positions.
        number: of the operand.
        size: of the dimension.
        positions: of each element of the constant; negative where it is none inside of the dimension.
        offset: what the elements are more than the positions.
        window: of the elements that are taken from there on.
        wraps: whether elements that are negative count from the end of the dimension.
        is_limit: whether an index is limited to it, or compared with it, which is not the constant itself.
        is_last: whether that is the end of what an index may be.
        drops: whether a window that would not fit is left out; else it is moved.
    """

    constant: Instruction
    reader: Instruction
    number: int
    size: Size
    positions: tuple[int, ...]
    offset: int
    window: Size | None = None
    wraps: bool = False
    is_limit: bool = False
    is_last: bool = False
    drops: bool = False

    @property
    def form(self) -> str:
        """What becomes of it behind the end of the dimension: the same where this is the same."""
        if self.window is None:
            return "compared"
        return "left out" if self.drops else "moved"

    @property
    def beyond(self) -> list[int]:
        """The positions that mean something else once the dimension ends before them: all but that of the
        last window, which is moved to where the last one is then."""
        last = self.size.value - self.window.value if self.window is not None and not self.drops else -1
        return [position for position in self.positions if position > 0 and position != last]


class Doubt(Struct, frozen=True):
    """A constant that may be a position along a dimension, in a way that is not understood.

    Attributes:
        constant: in question.
        reader: what reads it.
        size: of the dimension.
        signature: the same for the same doubt in another program.
        number: the largest that the constant holds.
    """

    constant: Instruction
    reader: Instruction
    size: Size
    signature: Hashable
    number: int


class Stated:
    """What one program says of positions.

    Attributes:
        places: in the program.
        statements: that are understood.
        shared: those whose constant cannot follow: it is something else, too.
        doubts: about other numbers.
        settled: reads of constants that decide nothing.
        untold: where windows begin that depend on constants in an unknown way.
        others: integers of other constants.
        compared: those of them that something is compared with, or limited to.
    """

    def __init__(self, places: Places) -> None:
        self.places = places
        self._rulers = Rulers(places)
        self.settled, self.untold = self._rulers.settled, self._rulers.untold
        found = [*self._bounds(), *self._limits()]
        self._moved = frozenset(self._rulers.moved)
        self.doubts = [*self._computed(found)]
        shared = self._read_elsewhere(found)
        stated = [one for one in found if max(one.positions) > 0]
        # In programs for several devices it is unknown which of them a place is on.
        is_spread = places.spread.count > 1
        staying = [one.constant in shared or (is_spread and one.window is not None) for one in stated]
        self.statements = [one for one, stays in zip(stated, staying) if not stays]
        self.shared = [one for one, stays in zip(stated, staying) if stays]
        self.others, self.compared = self._others({one.constant for one in found})

    def _bounds(self) -> Iterator[Statement]:
        """Constants that positions are compared with, or limited to."""
        for instruction in self.places.spread.calls.home:
            if instruction.opcode not in _COMPARES:
                continue
            for number, operand in enumerate(instruction.operands):
                constant = self.places.stripped(operand)
                values = None if constant is None else elements(constant)
                if constant is None or values is None:
                    continue
                others = [one for n, one in enumerate(instruction.operands) if n != number]
                if len(values) > 1:
                    # The last elements of shards follow in all programs already.
                    if (instruction, number) not in self.places.found.ends:
                        yield from self._vector(instruction, number, constant, others)
                    continue
                ruler = next(filter(None, map(self._rulers.of, others)), None)
                if ruler is not None and not _decides_nothing(instruction, number, ruler, values[0]):
                    yield _bound(constant, instruction, number, ruler, values, 0)

    def _vector(
        self, reader: Instruction, number: int, constant: Instruction, others: list[Instruction]
    ) -> Iterator[Statement]:
        """Limits of all dimensions at once: XLA's CPU compiler expands scatters so."""
        values = elements(constant) or ()
        for other in others:
            columns = [*joined(self.places, other)]
            if constant.dims[-1:] != (len(columns),) or len(values) != len(columns):
                continue
            for column, (value, _, count) in enumerate(columns):
                ruler = self._rulers.of(value) if count == 1 else None
                if ruler is not None and not _decides_nothing(reader, number, ruler, values[column]):
                    yield _bound(constant, reader, number, ruler, values, column)

    def _limits(self) -> Iterator[Statement]:
        """Constants that say where windows begin."""
        for start in self._rulers.limits:
            constant = self.places.stripped(start.value)
            values = None if constant is None else elements(constant)
            if constant is None or values is None or start.window is None:
                continue
            wrap = start.size.value if start.wraps else 0
            last = start.size.value - start.window.value
            moved = [value + wrap * (value < 0) for value in values]
            positions = tuple(
                one if 0 < one <= last and n % start.columns == start.column else -1
                for n, one in enumerate(moved)
            )
            if len({*positions}) <= _MOST and (start.window.value == 1 or len(positions) == start.columns):
                where = constant, start.reader, start.number, start.size
                yield Statement(*where, positions, 0, start.window, start.wraps, drops=start.drops)

    def _computed(self, found: list[Statement]) -> Iterator[Doubt]:
        """Constants that other numbers are made with of positions, and tables of too many positions."""
        understood = {(one.reader, one.number) for one in found} | self.settled | self.places.found.ends
        for instruction in self.places.spread.calls.home:
            if (
                instruction.opcode not in _COMPUTES
                or instruction in self._moved
                or len(instruction.operands) != 2
            ):
                continue
            for number, operand in enumerate(instruction.operands):
                constant = self.places.stripped(operand)
                values = None if constant is None else elements(constant)
                largest = max(map(abs, values or (0,)))
                if constant is None or values is None or largest < 2:
                    continue
                ruler = self._rulers.of(instruction.operands[1 - number])
                if ruler is not None and (instruction, number) not in understood:
                    signature = instruction.opcode, number, *sorted({*values})
                    yield Doubt(constant, instruction, ruler.size, signature, largest)
        for start in self._rulers.limits:
            constant = self.places.stripped(start.value)
            if constant is not None and (start.reader, start.number) not in understood:
                values, count = elements(constant), constant.array_shape.size
                if values is None or start.window is None or len({*values}) > 1:
                    yield Doubt(constant, start.reader, start.size, ("table", count), start.size.value)

    def _read_elsewhere(self, found: list[Statement]) -> set[Instruction]:
        """Constants that are not only positions."""
        ends = {(one.reader, one.number) for one in found} | self.settled
        constants = {one.constant for one in found if max(one.positions) > 0}
        others = set[Instruction]()
        root = self.places.spread.calls.module.entry.root
        for instruction in self.places.spread.calls.home if constants else ():
            if instruction is not root and (instruction.opcode in SAME or instruction.opcode in HANDS_ON):
                continue
            for number, operand in enumerate(instruction.operands):
                source = self.places.stripped(operand)
                if source in constants and (instruction, number) not in ends:
                    others.add(source)
        return others

    def _others(self, known: set[Instruction]) -> tuple[set[int], set[int]]:
        """Integers that are no positions as far as is known, and those of them that are compared."""
        others, compared = set[int](), set[int]()
        for instruction in self.places.spread.calls.home:
            if instruction.opcode == "constant" and instruction not in known:
                if isinstance(instruction.shape, ArrayShape) and instruction.shape.element_type.is_integer:
                    others.update(map(abs, elements(instruction) or ()))
            elif instruction.opcode in _COMPARES:
                for operand in instruction.operands:
                    constant = self.places.stripped(operand)
                    if constant is not None and constant not in known:
                        compared.update(map(abs, elements(constant) or ()))
        return others, compared


def _decides_nothing(reader: Instruction, number: int, ruler: Ruler, value: int) -> bool:
    """Whether a comparison with a constant, operand `number`, is the same for all positions of a dimension;
    it is so of any smaller one, too, with the constant as it is."""
    if reader.opcode != "compare" or not ruler.is_counted or ruler.offset:
        return False
    sides = of_integers(0, ruler.size.value - 1), of_integers(value, value)
    return outcome(reader.text("direction"), *(sides if number else reversed(sides))) is not None


def _bound(
    constant: Instruction,
    reader: Instruction,
    number: int,
    ruler: Ruler,
    values: Sequence[int],
    column: int,
) -> Statement:
    """What a constant says that a position is compared with; of one of its elements."""
    position = values[column] - ruler.offset
    positions = [-1] * len(values)
    positions[column] = position if 0 < position < ruler.size.value else -1
    return Statement(
        constant,
        reader,
        number,
        ruler.size,
        tuple(positions),
        ruler.offset,
        is_limit=not ruler.is_counted,
        is_last=position in (ruler.last, ruler.last + 1),
    )
