"""Integers that hold places along dimensions, as multiples of sizes: what their constants become.

A place is where something begins or ends along a dimension: a number of sizes, and a small number more or
less. Going back from where a program uses it one finds the constants that it is made of. A constant follows
a size where all that is made of it is understood, and says the same.

An index from the end is negative and has the size of the dimension added to it: what NumPy calls `x[-1]`
is, in HLO, `select(i < 0, i + size, i)`, of which a compiler makes one constant where something is added to
`i` before. The size follows the dimension that the index is for.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from msgspec import Struct

from hlotool.facts.recognition import integer_constant
from hlotool.ir.arrays import Array
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape
from hlotool.rewrite.scale.per_device import HANDS_ON, SAME, Numbers, Spread
from hlotool.rewrite.scale.sizes import Number, Relations, Sizes, place
from hlotool.rewrite.scale.terms import Size


class PlaceConstant(Struct, frozen=True):
    """A constant whose elements are places along a dimension.

    Attributes:
        size: that they are multiples of.
        factors: of each element how often the size.
        offsets: of each element what is added to that.
    """

    size: Size
    factors: Array
    offsets: Array

    @property
    def sizes(self) -> tuple[Size, ...]:
        """What it is made of."""
        return (self.size,)

    def value(self, number: Number) -> Array:
        """Its elements when sizes are other numbers."""
        return self.factors * number(self.size) + self.offsets

    def is_alike(self, other: PlaceConstant) -> bool:
        """Whether it is as many of a size that may be another."""
        return bool(
            np.array_equal(self.factors, other.factors) and np.array_equal(self.offsets, other.offsets)
        )


class TableConstant(Struct, frozen=True):
    """A constant whose elements are places along a dimension, each of its own.

    Attributes:
        sizes: what lies before each of the places, or behind it, in row-major order.
        factors: 1 where it lies before; -1 where it lies behind.
        offsets: what is added to that.
    """

    sizes: tuple[Size, ...]
    factors: Array
    offsets: Array

    def value(self, number: Number) -> Array:
        """Its elements when sizes are other numbers."""
        parts = np.array([number(size) for size in self.sizes], np.int64)
        return self.factors * parts.reshape(self.factors.shape) + self.offsets

    def with_more(self, other: TableConstant, sizes: Sizes) -> TableConstant:
        """With the elements that another one has places for; those that both have are the same places, or
        stay."""
        mine, others = (one.factors.reshape(-1) != 0 for one in (self, other))
        parts: list[Size] = []
        for number, (part, more) in enumerate(zip(self.sizes, other.sizes)):
            if mine[number] and others[number]:
                sizes.unify(part, more, "places in more than one dimension")
            parts.append(more if others[number] else part)
        has_more = others.reshape(self.factors.shape)
        factors = np.where(has_more, other.factors, self.factors)
        return TableConstant(tuple(parts), factors, np.where(has_more, other.offsets, self.offsets))


@dataclass
class Found:
    """What is known of one program so far.

    Attributes:
        held: what constants are, in each place where they are used.
        seen: instructions on the way from a constant to a place that is understood.
        ends: instructions, and the number of an operand, where a place is understood.
    """

    held: dict[Instruction, list[PlaceConstant]] = field(default_factory=dict)
    seen: set[Instruction] = field(default_factory=set)
    ends: set[tuple[Instruction, int]] = field(default_factory=set)

    def add(self, other: Found) -> None:
        """What was found elsewhere, too."""
        for constant, held in other.held.items():
            self.held.setdefault(constant, []).extend(held)
        self.seen |= other.seen
        self.ends |= other.ends

    def hold(self, constant: Instruction, size: Size, factor: int, offset: int) -> bool:
        """Say what a constant of one element is; false where it has more."""
        if integer_constant(constant) is None or constant.literal is None:
            return False
        array = np.zeros_like(constant.literal.array, dtype=np.int64)
        self.held.setdefault(constant, []).append(PlaceConstant(size, array + factor, array + offset))
        return True


class Places:
    """The places in one program.

    Attributes:
        known: sizes and relations.
        spread: what devices have of integers.
        found: constants, and where they are understood.
        from_the_end: those of them that are added to negative indices, and are nothing else.
        tables: constants of several elements that are places, each of its own.
    """

    def __init__(self, known: Relations, spread: Spread) -> None:
        self.known, self.spread = known, spread
        self.found = Found()
        self.from_the_end: set[Instruction] = set()
        self.tables: dict[Instruction, TableConstant] = {}
        self._stripped: dict[Instruction, Instruction | None] = {}

    def stripped(self, value: Instruction) -> Instruction | None:
        """What computes the elements of a value, which others arrange."""
        if value not in self._stripped:
            found = self.spread.origin(value)
            while found is not None and found.opcode in SAME:
                found = self.spread.origin(found.operands[0])
            self._stripped[value] = found
        return self._stripped[value]

    def is_multiple(self, value: Instruction, size: Size, end: tuple[Instruction, int]) -> bool:
        """Whether a place is a number of shards, or one less, with constants that say so."""
        numbers = self.spread.of(value)
        assert numbers is not None
        for offset in (0, -1):
            if any((number - offset) % size.value for number in numbers):
                continue
            found = Found(ends={end})
            factors = tuple((number - offset) // size.value for number in numbers)
            if self.made(value, size, factors, offset, found):
                self.found.add(found)
                return True
        return False

    def made(self, value: Instruction, size: Size, factors: Numbers, offset: int, found: Found) -> bool:
        """Go back from a place to the constants that it is made of."""
        source = self.spread.origin(value)
        if source is None:
            return False
        found.seen |= {value, source}
        if not any(factors) and source.opcode == "constant":
            return True
        if source.opcode in SAME:
            return self.made(source.operands[0], size, factors, offset, found)
        if source.opcode == "constant":
            return len({*factors}) == 1 and found.hold(source, size, factors[0], offset)
        if source.opcode == "dynamic-slice":
            return self._in_table(source, size, factors, offset, found)
        if source.opcode == "multiply" and offset == 0:
            return self._is_product(source, size, factors, found)
        if source.opcode in ("add", "subtract"):
            return self._is_sum(source, size, factors, offset, found)
        return False

    def _is_product(self, source: Instruction, size: Size, factors: Numbers, found: Found) -> bool:
        """A number of shards times their size, or more of them."""
        for one in source.operands:
            numbers = self.spread.of(one)
            if numbers is not None and not self.spread.is_spread(one) and numbers[0] % size.value == 0:
                return self.made(one, size, tuple(n // size.value for n in numbers), 0, found)
        return False

    def _is_sum(self, source: Instruction, size: Size, factors: Numbers, offset: int, found: Found) -> bool:
        """A multiple, and what is added to it or taken away."""
        sign = 1 if source.opcode == "add" else -1
        one, other = source.operands
        for a, b, first in ((one, other, 1), (other, one, sign)):
            second = sign if first == 1 and a is one else 1
            numbers, rest = self.spread.of(a), self.spread.of(b)
            if numbers is None or rest is None or any(number % size.value for number in numbers):
                continue
            mine = tuple(number // size.value for number in numbers)
            others = tuple(second * (f - first * n) for f, n in zip(factors, mine))
            if self.made(a, size, mine, 0, found):
                return self.made(b, size, others, second * offset, found)
        return False

    def _in_table(self, source: Instruction, size: Size, factors: Numbers, offset: int, found: Found) -> bool:
        """A place that a table has for each device."""
        read = self.spread.table(source)
        where = self.spread.of(read[1]) if read is not None else None
        literal = read[0].literal if read is not None else None
        if read is None or where is None or literal is None:
            return False
        table, values = read[0], literal.array.astype(np.int64)
        multiples, offsets = np.zeros_like(values), values.copy()
        last = values.size - 1
        for number, factor in zip(where, factors):
            position = min(max(number, 0), last)
            multiples.reshape(-1)[position] = factor
            offsets.reshape(-1)[position] = offset
        found.seen |= {table, source.operands[0]}
        self.known.freeze(table, f"{place(table)}: an element for each device")
        found.held.setdefault(table, []).append(PlaceConstant(size, multiples, offsets))
        return True

    def agreed(self) -> tuple[dict[Instruction, PlaceConstant], set[Instruction]]:
        """Constants that are the same in all places, and those of them that others count with, too."""
        readers = self._readers()
        agreed: dict[Instruction, PlaceConstant] = {}
        doubtful: set[Instruction] = set()
        for constant, held in self.found.held.items():
            agreed[constant] = held[0]
            for other in held[1:]:
                self.known.sizes.unify(held[0].size, other.size)
            if not all(held[0].is_alike(other) for other in held) or any(
                reader not in self.found.seen and not self._is_end(reader, constant)
                for reader in readers.get(constant, ())
            ):
                doubtful.add(constant)
        return agreed, doubtful

    def _is_end(self, reader: Instruction, constant: Instruction) -> bool:
        return any(
            end is reader and self.stripped(reader.operands[number]) is constant
            for end, number in self.found.ends
        )

    def _readers(self) -> dict[Instruction, list[Instruction]]:
        """What computes with constants that hold places."""
        found: dict[Instruction, list[Instruction]] = {}
        for instruction in self.spread.calls.home:
            if instruction.opcode in HANDS_ON:
                continue
            for operand in instruction.operands:
                if isinstance(operand.shape, ArrayShape) and operand.array_shape.size <= self.spread.count:
                    source = self.spread.origin(operand)
                    if source is not None and source in self.found.held:
                        found.setdefault(source, []).append(instruction)
        return found
