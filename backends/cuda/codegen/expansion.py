"""A computation in the form that rules know: no calls, no tuples inside, libraries spelt out.

Instructions that stay as they are stay the same objects; the inputs are never looked behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from hlotool.backends.cuda.codegen.elements import NotGenerated, array_shape, element_type
from hlotool.ir.attributes import AttributeValue
from hlotool.ir.dtypes import dtype_of
from hlotool.ir.literal import Literal
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.opcodes import by_opcode
from hlotool.ir.types import ArrayShape, ElementType, Shape, TupleShape
from hlotool.ir.walk import post_order

#: What an instruction is worth: an array, or as many as a tuple has.
Value: TypeAlias = "Instruction | tuple[Value, ...]"

#: Writes an instruction in simpler ones, given its operands; None where it is left as it is.
Spelling: TypeAlias = Callable[[Instruction, Sequence[Instruction]], "Value | None"]

SPELLINGS: dict[str, Spelling] = {}


def spells(*opcodes: str) -> Callable[[Spelling], Spelling]:
    """Register what writes `opcodes` in simpler instructions."""
    return by_opcode(SPELLINGS, opcodes)


def expanded(computation: Computation, arguments: Sequence[Value]) -> dict[Instruction, Value]:
    """What every instruction of a computation is worth, given its parameters' values.

    Raises:
        NotGenerated: a called computation is not simply to be executed.
    """
    values: dict[Instruction, Value] = {}
    for instruction in post_order([computation.root, *computation.instructions]):
        if instruction.opcode == "parameter":
            values[instruction] = arguments[instruction.parameter_number or 0]
        else:
            values[instruction] = simplified(instruction, [values[o] for o in instruction.operands])
    return values


def simplified(instruction: Instruction, operands: Sequence[Value]) -> Value:
    """What one instruction is worth, given its operands' values."""
    match instruction.opcode:
        case "call" | "fusion":
            (called,) = instruction.called
            return expanded(called, operands)[called.root]
        case "tuple":
            return tuple(operands)
        case "get-tuple-element" if isinstance(operands[0], tuple):
            return operands[0][instruction.integer("index")]
        case "opt-barrier" | "add-dependency" | "domain":
            return operands[0]
        case "get-dimension-size":
            return _size(instruction, operands[0])
    arrays = [_array(operand, instruction) for operand in operands]
    spelling = SPELLINGS.get(instruction.opcode)
    spelt = spelling(instruction, arrays) if spelling is not None else None
    if spelt is not None:
        return spelt
    if all(new is old for new, old in zip(arrays, instruction.operands)):
        return instruction
    return replace(instruction, operands=tuple(arrays))


def leaves_of(value: Value) -> tuple[Instruction, ...]:
    """The arrays of a value, those of tuples that single instructions make included."""
    if isinstance(value, tuple):
        return tuple(leaf for part in value for leaf in leaves_of(part))
    return parts_of(value)


def parts_of(
    instruction: Instruction, known: Mapping[int, Instruction] | None = None
) -> tuple[Instruction, ...]:
    """The results of an instruction, each as what takes it out.

    Args:
        instruction: whatever its shape.
        known: instructions that take results out, by number; others are made up.
    """
    if not isinstance(instruction.shape, TupleShape):
        return (instruction,)
    takers = known or {}
    shapes = enumerate(instruction.shape.elements)
    return tuple(takers.get(number) or _part(instruction, number, shape) for number, shape in shapes)


def _part(instruction: Instruction, number: int, shape: Shape) -> Instruction:
    name = f"{instruction.name}.{number}"
    return Instruction(
        name, "get-tuple-element", shape, (instruction,), {"index": number}, line=instruction.line
    )


def _array(value: Value, user: Instruction) -> Instruction:
    if isinstance(value, tuple):
        raise NotGenerated("an operand is a tuple", user)
    return value


def _size(instruction: Instruction, operand: Value) -> Value:
    """The size of a dimension that does not change."""
    (dimension,) = instruction.integers("dimensions")
    size = array_shape(_array(operand, instruction)).dims[dimension]
    literal = Literal(instruction.shape, np.array(size, np.int32))
    return replace(instruction, opcode="constant", operands=(), attributes={}, literal=literal)


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
