"""Integers that depend on the number of the device: what each device has of them.

A partitioner counts with the number of a device: where its shard begins, whose neighbour it is, whether it is
the last one. Such numbers are made of partition-id, constants and tables alone, so they are known without
running the program.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from hlotool.facts.flow import CallGraph, computed_by
from hlotool.facts.recognition import uniform
from hlotool.ir.module import Instruction, Module
from hlotool.ir.opcodes import Class, Trait, opcodes_with
from hlotool.ir.types import ArrayShape, ElementType

#: What each device has, by its number: replicas of the first partition are apart by the number of partitions.
Numbers = tuple[int, ...]

#: What hands on elements as they are.
SAME: Final = opcodes_with(Trait.REGROUPS) | {"convert"}
_COMPARISONS: Final[Mapping[str, Callable[[int, int], bool]]] = {
    "EQ": operator.eq, "NE": operator.ne, "LT": operator.lt, "LE": operator.le, "GT": operator.gt,
    "GE": operator.ge,
}  # fmt: skip
_ARITHMETIC: Final[Mapping[str, Callable[[int, int], int]]] = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "minimum": min, "maximum": max,
    "and": operator.and_, "or": operator.or_, "xor": operator.xor, "shift-left": operator.lshift,
    "shift-right-logical": operator.rshift,
}  # fmt: skip
#: What calls computations, and what takes values to them and back.
HANDS_ON: Final = opcodes_with(Trait.CONTROL_FLOW, Trait.INLINED, Class.TUPLE)
_CHOICES: Final = opcodes_with(Trait.COMPARES) - opcodes_with(Trait.EXTREMUM)
#: Values are not followed further than this.
_DEEPEST: Final = 60


class Spread:
    """What the devices have of integers in one program, which must not change meanwhile.

    Attributes:
        count: the number of devices.
        calls: of the program.
    """

    def __init__(self, module: Module) -> None:
        self.count = module.num_partitions * module.replica_count
        self.calls = CallGraph(module)
        self._partitions = module.num_partitions
        self._known: dict[Instruction, Numbers | None] = {}
        self._spread: dict[Instruction, bool] = {}

    def of(self, instruction: Instruction) -> Numbers | None:
        """The number that all elements of an integer array have on each device; None where something else
        decides it too."""
        return self._of(instruction, 0)

    def is_spread(self, instruction: Instruction) -> bool:
        """Whether a number that `of` gives follows from that of the device."""
        return self.of(instruction) is not None and self._spread[instruction]

    def origin(self, instruction: Instruction) -> Instruction | None:
        """What computes an array, through calls and the states of loops; None where that may be several."""
        if instruction not in self.calls.home:
            return None
        found = computed_by(instruction, self.calls)
        if len(found) != 1:
            return None
        ((source, index),) = found
        return None if index else source

    def _of(self, instruction: Instruction, depth: int) -> Numbers | None:
        if instruction in self._known:
            return self._known[instruction]
        found: Numbers | None = None
        self._spread[instruction] = False
        shape = instruction.shape
        if isinstance(shape, ArrayShape) and depth < _DEEPEST and _counts(shape.element_type):
            source = self.origin(instruction)
            if source is instruction:
                found = self._computed(instruction, depth + 1)
            elif source is not None:
                found = self._of(source, depth + 1)
                self._spread[instruction] = self._spread[source]
        self._known[instruction] = found
        return found

    def _computed(self, instruction: Instruction, depth: int) -> Numbers | None:
        opcode = instruction.opcode
        if opcode == "constant":
            value = uniform(instruction)
            return (
                (int(value),) * self.count if value is not None and float(value.real).is_integer() else None
            )
        if opcode in ("partition-id", "replica-id"):
            self._spread[instruction] = True
            return tuple(
                n % self._partitions if opcode == "partition-id" else n // self._partitions
                for n in range(self.count)
            )
        if opcode == "dynamic-slice":
            return self._looked_up(instruction, depth)
        if opcode not in SAME and opcode not in _ARITHMETIC and opcode not in _CHOICES:
            return None
        operands = []
        for operand in instruction.operands:
            numbers = self._of(operand, depth)
            if numbers is None:
                return None
            operands.append(numbers)
            self._spread[instruction] |= self._spread[operand]
        if opcode in SAME:
            return operands[0]
        if opcode == "compare":
            compared = _COMPARISONS[str(instruction.attributes["direction"])]
            return tuple(int(compared(a, b)) for a, b in zip(*operands))
        if opcode == "select":
            return tuple(b if a else c for a, b, c in zip(*operands))
        if opcode == "clamp":
            return tuple(min(max(a, b), c) for a, b, c in zip(*operands))
        return tuple(_ARITHMETIC[opcode](a, b) for a, b in zip(*operands))

    def _looked_up(self, instruction: Instruction, depth: int) -> Numbers | None:
        """An element of a table, by the number of the device."""
        found = self.table(instruction)
        if found is None:
            return None
        table, where = found
        numbers = self._of(where, depth)
        if numbers is None:
            return None
        self._spread[instruction] = self._spread[where]
        elements = [int(element) for element in table.literal.array.reshape(-1)] if table.literal else []
        return tuple(elements[min(max(n, 0), len(elements) - 1)] for n in numbers)

    def table(self, instruction: Instruction) -> tuple[Instruction, Instruction] | None:
        """The constant that one element is taken from, and what says which; None for another slice."""
        if instruction.opcode != "dynamic-slice" or instruction.array_shape.size != 1:
            return None
        table = self.origin(instruction.operands[0])
        if table is None or table.literal is None or table.literal.elided:
            return None
        shape = table.shape
        if not isinstance(shape, ArrayShape) or not shape.element_type.is_integer:
            return None
        long = [n for n, size in enumerate(instruction.operands[0].dims) if size > 1]
        if len(long) != 1 or len(instruction.operands) <= 1 + long[0]:
            return None
        return table, instruction.operands[1 + long[0]]

    def readers(self) -> Iterator[tuple[Instruction, int]]:
        """Where such numbers meet other values: instructions, and which operand it is."""
        for instruction in self.calls.home:
            is_result = instruction is self.calls.module.entry.root
            if instruction.opcode in HANDS_ON and not is_result:
                continue
            if self.of(instruction) is not None:
                continue
            for number, operand in enumerate(instruction.operands):
                if self.is_spread(operand):
                    yield instruction, number


def _counts(kind: ElementType) -> bool:
    """Whether places are counted in it: positions become floats where a program computes with them."""
    return kind.is_integer or kind.is_floating or kind is ElementType.PRED
