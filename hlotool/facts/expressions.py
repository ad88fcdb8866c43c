"""When two instructions compute the same: same operation, operands, attributes and layouts."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from hlotool.ir.attributes import AttributeValue
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import BufferShape, leaves
from hlotool.ir.walk import has_side_effect

#: Opcodes whose instances are not interchangeable: they stand for a place, a pair, or a barrier.
_UNIQUE = opcodes_with(Trait.FORWARDS, Trait.ORDERS, Trait.ASYNC) | {"copy-done", "copy-start", "parameter"}


def is_interchangeable(instruction: Instruction, scheduled: bool) -> bool:
    """Copies of a scheduled program keep buffers apart and must stay."""
    return (
        instruction.opcode not in _UNIQUE
        and not (scheduled and instruction.opcode == "copy")
        and not instruction.control_predecessors
        and "output_to_operand_aliasing" not in instruction.attributes
        and not any(isinstance(leaf, BufferShape) for _, leaf in leaves(instruction.shape))
        and not has_side_effect(instruction)
    )


class ExpressionKeys:
    """Keys that are equal only for what computes the same."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._computations: dict[Computation, int] = {}

    def instruction(self, instruction: Instruction, operand: Callable[[Instruction], int]) -> Hashable:
        """A key of the operation, its operands as `operand` numbers them."""
        literal = instruction.literal
        attributes = sorted(instruction.attributes.items(), key=lambda item: item[0])
        return (
            instruction.opcode,
            instruction.shape,
            tuple(map(operand, instruction.operands)),
            tuple((name, self._value(value)) for name, value in attributes),
            # A value that is not known equals nothing but itself.
            literal if literal is None or literal.has_elided else literal.key,
            instruction.parameter_number,
        )

    def _computation(self, computation: Computation) -> int:
        """The same number for computations that do the same."""
        if computation not in self._computations:
            places = {i: n for n, i in enumerate(computation.instructions)}
            body = tuple(self.instruction(i, places.__getitem__) for i in computation.instructions)
            key = (body, places[computation.root], computation.execution_thread)
            self._computations[computation] = self._numbers.setdefault(key, len(self._numbers))
        return self._computations[computation]

    def _value(self, value: AttributeValue) -> Hashable:
        if isinstance(value, Computation):
            return self._computation(value)
        if isinstance(value, tuple):
            return tuple(self._computation(v) if isinstance(v, Computation) else v for v in value)
        return value
