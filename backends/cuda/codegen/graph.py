"""Instructions made where one operation is written in simpler ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from hlotool.backends.cuda.codegen.elements import array_shape, element_type
from hlotool.ir.attributes import AttributeValue
from hlotool.ir.dtypes import dtype_of
from hlotool.ir.literal import Literal
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.types import ArrayShape, ElementType


@dataclass(frozen=True, slots=True)
class Graph:
    """Makes instructions.

    Attributes:
        origin: that they stand for; gives them its name and line.
    """

    origin: Instruction

    def apply(self, opcode: str, *operands: Instruction) -> Instruction:
        """An elementwise operation; the result is like the first operand."""
        return self._made(opcode, array_shape(operands[0]).without_layout(), operands)

    def constant(self, value: float, kind: ElementType) -> Instruction:
        """A scalar."""
        shape = ArrayShape(kind, ())
        name, line = f"{self.origin.name}.constant", self.origin.line
        return Instruction(
            name, "constant", shape, literal=Literal(shape, np.array(value, dtype_of(kind))), line=line
        )

    def convert(self, value: Instruction, kind: ElementType) -> Instruction:
        """`value` in an element type."""
        if element_type(value) is kind:
            return value
        return self._made("convert", ArrayShape(kind, array_shape(value).dims), (value,))

    def broadcast(self, value: Instruction, dimensions: Iterable[int], dims: Sequence[int]) -> Instruction:
        """`value`, whose dimensions become the given ones of `dims`."""
        shape = ArrayShape(element_type(value), tuple(dims))
        return self._made("broadcast", shape, (value,), dimensions=tuple(dimensions))

    def sum(self, value: Instruction, dimensions: Iterable[int]) -> Instruction:
        """Over some dimensions."""
        kind, reduced = element_type(value), tuple(dimensions)
        kept = tuple(size for d, size in enumerate(array_shape(value).dims) if d not in reduced)
        operands = (value, self.constant(0, kind))
        return self._made(
            "reduce", ArrayShape(kind, kept), operands, dimensions=reduced, to_apply=_addition(kind)
        )

    def _made(
        self, opcode: str, shape: ArrayShape, operands: Sequence[Instruction], **attributes: AttributeValue
    ) -> Instruction:
        name = f"{self.origin.name}.{opcode}"
        return Instruction(name, opcode, shape, tuple(operands), attributes, line=self.origin.line)


def _addition(kind: ElementType) -> Computation:
    scalar = ArrayShape(kind, ())
    a, b = (Instruction(name, "parameter", scalar, parameter_number=n) for n, name in enumerate("ab"))
    root = Instruction("sum", "add", scalar, (a, b))
    return Computation(f"add.{kind}", [a, b, root], root)
