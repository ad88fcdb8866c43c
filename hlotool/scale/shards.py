"""Places that a partitioner counts out: where the shard of a device begins, as a multiple of its size.

A device takes its shard of a dimension at its number times the size of a shard, or at a place that a table
has for it; it looks up indices less the first one that it holds; it numbers its elements from there. The
constants in such places are sizes of shards, times what does not depend on sizes, and follow them. What a
device's number goes into and no rule here understands keeps the sizes that may stand in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from hlotool.analysis.constants import integer_constant
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ArrayShape
from hlotool.scale.rules.base import Number, Relations, place
from hlotool.scale.sizes import Size
from hlotool.scale.spread import HANDS_ON, SAME, Numbers, Spread

#: Smaller numbers count devices, neighbours and sizes that stay as they are.
_LEAST: Final = 9


@dataclass(frozen=True, slots=True)
class ShardConstant:
    """A constant that holds places where shards begin or end.

    Attributes:
        size: of a shard.
        factors: of each element the number of shards.
        offsets: of each element what is added to them.
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


@dataclass
class _Found:
    """What is known of one program so far.

    Attributes:
        held: what constants are, in each place where they are used.
        seen: instructions on the way from a constant to a place that is understood.
        ends: instructions, and the number of an operand, where a place is understood.
    """

    held: dict[Instruction, list[ShardConstant]] = field(default_factory=dict)
    seen: set[Instruction] = field(default_factory=set)
    ends: set[tuple[Instruction, int]] = field(default_factory=set)

    def add(self, other: _Found) -> None:
        """What was found elsewhere, too."""
        for constant, held in other.held.items():
            self.held.setdefault(constant, []).extend(held)
        self.seen |= other.seen
        self.ends |= other.ends


def relate_shards(known: Relations, module: Module) -> dict[Instruction, ShardConstant]:
    """Relate sizes of shards to those that they are cut from; returns constants that follow them."""
    if module.num_partitions * module.replica_count < 2:
        return {}
    return _Shards(known, Spread(module)).relate()


class _Shards:
    """The places in one program."""

    def __init__(self, known: Relations, spread: Spread) -> None:
        self._known, self._spread = known, spread
        self._found = _Found()

    def relate(self) -> dict[Instruction, ShardConstant]:
        """See `relate_shards`."""
        for instruction in self._spread.calls.home:
            if instruction.opcode in ("dynamic-slice", "dynamic-update-slice"):
                self._window(instruction)
            elif instruction.opcode in ("gather", "scatter"):
                self._lookup(instruction)
            elif instruction.opcode == "add":
                self._numbered(instruction)
        for instruction, number in self._spread.readers():
            if (instruction, number) not in self._found.ends:
                self._freeze_made(instruction, instruction.operands[number])
        return self._agreed()

    # Places

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
                self._found.ends.add(end)
            elif whole.value % size.value == 0 and self._is(where, size, end):
                self._divide(whole, size, instruction)
            else:
                self._known.sizes.freeze_all((whole, size), _untold(instruction))

    def _lookup(self, instruction: Instruction) -> None:
        """Indices less the first one that the device holds."""
        is_gather = instruction.opcode == "gather"
        name = "start_index_map" if is_gather else "scatter_dims_to_operand_dims"
        mapped = instruction.integers(name)
        count = len(instruction.operands) // 2
        indices = instruction.operands[1 if is_gather else count]
        moved = self._stripped(indices)
        if len(mapped) != 1 or moved is None or moved.opcode != "subtract":
            return
        index, first = moved.operands
        if not self._spread.is_spread(first):
            return
        size = self._known.of(instruction.operands[0])[mapped[0]]
        if not self._is(first, size, (moved, 1)):
            self._known.sizes.freeze(size, _untold(instruction))
            return
        self._bounds(index, size)

    def _bounds(self, index: Instruction, size: Size) -> None:
        """What else is said of an index that devices share: whether it is theirs, and that it is one at all."""
        source = self._stripped(index)
        for user in self._spread.calls.home:
            if user.opcode != "compare":
                continue
            for number, operand in enumerate(user.operands):
                if self._spread.is_spread(operand) and self._stripped(user.operands[1 - number]) is source:
                    self._is(operand, size, (user, number))
        if source is not None and source.opcode == "clamp":
            last = self._spread.of(source.operands[2])
            if last is not None and (last[0] + 1) % size.value == 0:
                self._is(source.operands[2], size, (source, 2))

    def _numbered(self, instruction: Instruction) -> None:
        """Elements are numbered from the first one that the device has."""
        for number, operand in enumerate(instruction.operands):
            source = self._stripped(instruction.operands[1 - number])
            if source is None or source.opcode != "iota" or not self._spread.is_spread(operand):
                continue
            size = self._known.of(source)[source.integer("iota_dimension")]
            if size.value == 1 or not self._is(operand, size, (instruction, number)):
                self._known.sizes.freeze(size, _untold(instruction))

    def _divide(self, whole: Size, part: Size, instruction: Instruction) -> None:
        count = self._known.sizes.fixed(whole.value // part.value, "devices")
        self._known.sizes.same_product([whole], [count, part], _untold(instruction))

    def _stripped(self, value: Instruction) -> Instruction | None:
        """What computes the elements of a value, which others arrange."""
        found = self._spread.origin(value)
        while found is not None and found.opcode in SAME:
            found = self._spread.origin(found.operands[0])
        return found

    # What constants are

    def _is(self, value: Instruction, size: Size, end: tuple[Instruction, int]) -> bool:
        """Whether a place is a number of shards, or one less, with constants that say so."""
        numbers = self._spread.of(value)
        assert numbers is not None
        for offset in (0, -1):
            if any((number - offset) % size.value for number in numbers):
                continue
            found = _Found(ends={end})
            factors = tuple((number - offset) // size.value for number in numbers)
            if self._made(value, size, factors, offset, found):
                self._found.add(found)
                return True
        return False

    def _made(self, value: Instruction, size: Size, factors: Numbers, offset: int, found: _Found) -> bool:
        """Go back from a place to the constants that it is made of."""
        source = self._spread.origin(value)
        if source is None:
            return False
        found.seen |= {value, source}
        if not any(factors) and source.opcode == "constant":
            return True
        if source.opcode in SAME:
            return self._made(source.operands[0], size, factors, offset, found)
        if source.opcode == "constant":
            return len({*factors}) == 1 and _hold(found, source, size, factors[0], offset)
        if source.opcode == "dynamic-slice":
            return self._in_table(source, size, factors, offset, found)
        if source.opcode == "multiply" and offset == 0:
            return self._is_product(source, size, factors, found)
        if source.opcode in ("add", "subtract"):
            return self._is_sum(source, size, factors, offset, found)
        return False

    def _is_product(self, source: Instruction, size: Size, factors: Numbers, found: _Found) -> bool:
        """A number of shards times their size, or more of them."""
        for one in source.operands:
            numbers = self._spread.of(one)
            if numbers is not None and not self._spread.is_spread(one) and numbers[0] % size.value == 0:
                return self._made(one, size, tuple(n // size.value for n in numbers), 0, found)
        return False

    def _is_sum(
        self, source: Instruction, size: Size, factors: Numbers, offset: int, found: _Found
    ) -> bool:
        """A multiple, and what is added to it or taken away."""
        sign = 1 if source.opcode == "add" else -1
        one, other = source.operands
        for a, b, first in ((one, other, 1), (other, one, sign)):
            second = sign if first == 1 and a is one else 1
            numbers, rest = self._spread.of(a), self._spread.of(b)
            if numbers is None or rest is None or any(number % size.value for number in numbers):
                continue
            mine = tuple(number // size.value for number in numbers)
            others = tuple(second * (f - first * n) for f, n in zip(factors, mine))
            if self._made(a, size, mine, 0, found):
                return self._made(b, size, others, second * offset, found)
        return False

    def _in_table(
        self, source: Instruction, size: Size, factors: Numbers, offset: int, found: _Found
    ) -> bool:
        """A place that a table has for each device."""
        read = self._spread.table(source)
        where = self._spread.of(read[1]) if read is not None else None
        if read is None or where is None or read[0].literal is None:
            return False
        table = read[0]
        values = table.literal.array.astype(np.int64)
        multiples, offsets = np.zeros_like(values), values.copy()
        last = values.size - 1
        for number, factor in zip(where, factors):
            position = min(max(number, 0), last)
            multiples.reshape(-1)[position] = factor
            offsets.reshape(-1)[position] = offset
        found.seen |= {table, source.operands[0]}
        self._known.freeze(table, f"{place(table)}: an element for each device")
        found.held.setdefault(table, []).append(ShardConstant(size, multiples, offsets))
        return True

    # What remains

    def _agreed(self) -> dict[Instruction, ShardConstant]:
        """Constants that are the same in all places; sizes stay where they are not."""
        readers = self._readers()
        agreed: dict[Instruction, ShardConstant] = {}
        for constant, held in self._found.held.items():
            first = held[0]
            stranger = next((r for r in readers.get(constant, ()) if r not in self._found.seen), None)
            if any(not _alike(first, other) for other in held):
                stranger = constant
            for other in held[1:]:
                self._known.sizes.unify(first.size, other.size)
            agreed[constant] = first
            if stranger is not None and not self._is_end(stranger, constant):
                why = f"{place(constant)}: a place of shards, and more than that"
                self._known.sizes.freeze(first.size, why)
        return agreed

    def _is_end(self, reader: Instruction, constant: Instruction) -> bool:
        return any(
            end is reader and self._stripped(reader.operands[number]) is constant
            for end, number in self._found.ends
        )

    def _readers(self) -> dict[Instruction, list[Instruction]]:
        """What computes with constants that hold places."""
        found: dict[Instruction, list[Instruction]] = {}
        for instruction in self._spread.calls.home:
            if instruction.opcode in HANDS_ON:
                continue
            for operand in instruction.operands:
                if isinstance(operand.shape, ArrayShape) and operand.array_shape.size <= self._spread.count:
                    source = self._spread.origin(operand)
                    if source is not None and source in self._found.held:
                        found.setdefault(source, []).append(instruction)
        return found

    def _freeze_made(self, reader: Instruction, value: Instruction) -> None:
        """What is made of the number of a device and nobody understands keeps the sizes that are in it."""
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
    array: Any = literal.array
    return [int(element) for element in array.reshape(-1) if float(element).is_integer()]


def _hold(found: _Found, constant: Instruction, size: Size, factor: int, offset: int) -> bool:
    if integer_constant(constant) is None:
        return False
    array = np.zeros_like(constant.literal.array, dtype=np.int64) if constant.literal else np.zeros(())
    found.held.setdefault(constant, []).append(ShardConstant(size, array + factor, array + offset))
    return True


def _alike(one: ShardConstant, other: ShardConstant) -> bool:
    return bool(np.array_equal(one.factors, other.factors) and np.array_equal(one.offsets, other.offsets))


def _untold(instruction: Instruction) -> str:
    return f"{place(instruction)}: a place that follows from the number of a device cannot be told"
