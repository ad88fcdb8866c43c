"""What a rule sees of an instruction, how it says what it does not understand, and where it is registered."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from hlotool.ir.attributes import AttributeValue
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.opcodes import by_opcode
from hlotool.ir.types import ArrayShape, ShapeIndex, leaves
from hlotool.scale.sizes import Sizes
from hlotool.scale.terms import Dims, Size

#: Gives the new number of a size.
Number = Callable[[Size], int]
#: Attributes of an instruction that speak of sizes, as they are when sizes are other numbers.
Restated = Callable[[Number], Mapping[str, AttributeValue]]


class Unseen(NamedTuple):
    """A number along a dimension that one program has alone and that follows nothing.

    Attributes:
        size: of the dimension.
        number: that lies behind the end once the size is no larger.
        text: what it is, in words.
    """

    size: Size
    number: int
    text: str


@dataclass
class Relations:
    """The sizes in programs, and what is known of them.

    Attributes:
        sizes: the terms.
        dims: of the array at an index of each instruction's result.
        restated: attributes that follow from sizes.
        unseen: numbers along sizes that one program has alone.
    """

    sizes: Sizes = field(default_factory=Sizes)
    dims: dict[Instruction, dict[ShapeIndex, Dims]] = field(default_factory=dict)
    restated: dict[Instruction, Restated] = field(default_factory=dict)
    unseen: list[Unseen] = field(default_factory=list)

    def add(self, instruction: Instruction) -> None:
        """Give every dimension of a result a size of its own."""
        self.dims[instruction] = {
            index: tuple(map(self.sizes.new, shape.dims))
            for index, shape in leaves(instruction.shape)
            if isinstance(shape, ArrayShape)
        }

    def of(self, instruction: Instruction) -> Dims:
        """The sizes of an array."""
        return self.dims[instruction][()]

    def leaves(self, instruction: Instruction) -> Sequence[Dims]:
        """The sizes of all arrays of a result, depth first."""
        return list(self.dims[instruction].values())

    def equal(self, one: Instruction, other: Instruction) -> None:
        """Two values have the same shape, leaf by leaf."""
        mine, others = self.dims[one], self.dims[other]
        if mine.keys() != others.keys():
            self.freeze(one, f"{one.opcode} hands on another tuple")
            self.freeze(other, f"{one.opcode} hands on another tuple")
            return
        for index, dims in mine.items():
            self.sizes.unify_all(dims, others[index])

    def divide(self, whole: Size, part: Size, why: str) -> None:
        """A dimension, and what one device has of it: all, or one of equal parts; else both stay."""
        if whole.value == part.value:
            self.sizes.unify(whole, part)
        elif part.value and whole.value % part.value == 0:
            devices = self.sizes.fixed(whole.value // part.value, "devices")
            self.sizes.same_product([whole], [devices, part], why)
        else:
            self.sizes.freeze_all((whole, part), why)

    def freeze(self, instruction: Instruction, why: str) -> None:
        """All dimensions of a result keep their sizes."""
        for dims in self.dims[instruction].values():
            self.sizes.freeze_all(dims, why)

    def freeze_around(self, instruction: Instruction, why: str) -> None:
        """All dimensions of a result, of the operands and of what is called keep their sizes."""
        for one in (instruction, *instruction.operands):
            self.freeze(one, why)
        for called in instruction.called:
            self.freeze_inside(called, why)

    def freeze_inside(self, computation: Computation, why: str) -> None:
        """What a computation takes and returns keeps its sizes."""
        for one in (*computation.parameters, computation.root):
            self.freeze(one, why)


Rule = Callable[[Relations, Instruction], Restated | None]
RULES: dict[str, Rule] = {}


def relates(*opcodes: str) -> Callable[[Rule], Rule]:
    """Register the rule that relates the sizes around instructions of `opcodes`."""
    return by_opcode(RULES, opcodes)


def place(instruction: Instruction) -> str:
    """An instruction in words, with its line."""
    line = f" (line {instruction.line})" if instruction.line else ""
    return f"{instruction.opcode} %{instruction.name}{line}"
