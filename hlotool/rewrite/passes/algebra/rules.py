"""The table of rules, and what a rule sees of an instruction.

A rule is a function of an instruction that says what may stand in its place:

    @rule("negate")
    def negate_negate(op: Op) -> Rewrite | None:
        '''-(-x) is x.'''
        inner = op.operands[0]
        return inner.operands[0] if inner.opcode == "negate" else None

Every rule is tested on random and corner values against the class that it claims.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from hlotool.ir.arrays import Literal, dtype_of
from hlotool.ir.attributes import AttributeValue
from hlotool.ir.builder import array
from hlotool.ir.edit import Editor
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, ElementType, Shape


class Exactness(enum.Enum):
    """What a rule preserves; NaN payloads never count."""

    #: The value of every element, and the sign of zeros.
    EXACT = "exact"
    #: All but the sign of zeros.
    ZERO_SIGN = "zero-sign"
    #: All but elements that are NaN before, or computed from NaN.
    UNLESS_NAN = "nan"
    #: All but a few units in the last place.
    ROUNDING = "rounding"

    @property
    def rank(self) -> int:
        """0 for the strictest."""
        return list(Exactness).index(self)


@dataclass(frozen=True, slots=True)
class Op:
    """An instruction with an array result, and questions about it."""

    instruction: Instruction

    @property
    def operands(self) -> tuple[Instruction, ...]:
        """The operands of the instruction, in order."""
        return self.instruction.operands

    @property
    def shape(self) -> ArrayShape:
        """The shape of the result, which is an array."""
        return self.instruction.array_shape

    @property
    def kind(self) -> ElementType:
        """Element type of the result."""
        return self.shape.element_type

    def either_order(self) -> Iterator[tuple[Instruction, Instruction]]:
        """Both operands of a commutative operation, in both orders."""
        left, right = self.operands
        yield left, right
        yield right, left


@dataclass(frozen=True, slots=True)
class Make:
    """Adds instructions in front of the one that is rewritten.

    Attributes:
        edit: of its computation.
        before: the instruction.
    """

    edit: Editor
    before: Instruction

    def op(
        self,
        opcode: str,
        *operands: Instruction,
        shape: Shape | None = None,
        **attributes: AttributeValue,
    ) -> Instruction:
        """An instruction; it has the result shape of the rewritten one unless another is given."""
        made = Instruction(
            self.before.name, opcode, shape or self.before.shape, operands, attributes, self.before.metadata
        )
        return self.edit.add(made, before=self.before)

    def filled(self, value: Any) -> Instruction:
        """An array in the result shape whose elements all are `value`."""
        shape = self.before.array_shape
        held = np.array(value).astype(dtype_of(shape.element_type))
        scalar = array(shape.element_type)
        constant = Instruction(self.before.name, "constant", scalar, literal=Literal(scalar, held))
        self.edit.add(constant, before=self.before)
        return self.op("broadcast", constant, dimensions=()) if shape.dims else constant


#: What stands in the place of an instruction: another one that exists, or one that is made.
Rewrite: TypeAlias = "Instruction | Callable[[Make], Instruction]"
Apply: TypeAlias = "Callable[[Op], Rewrite | None]"


@dataclass(frozen=True, slots=True)
class Rule:
    """A row of the table.

    Attributes:
        name: of the function, with hyphens.
        opcodes: of the instructions that it rewrites.
        exactness: what it preserves.
        about: the law and its precondition.
        apply: gives the rewrite, or None where the precondition does not hold.
    """

    name: str
    opcodes: tuple[str, ...]
    exactness: Exactness
    about: str
    apply: Apply


RULES: dict[str, Rule] = {}


def rule(*opcodes: str, exactness: Exactness = Exactness.EXACT) -> Callable[[Apply], Apply]:
    """Enter a function into the table."""

    def enter(apply: Apply) -> Apply:
        name = apply.__name__.replace("_", "-")
        assert name not in RULES, f"two rules {name}"
        RULES[name] = Rule(name, opcodes, exactness, " ".join((apply.__doc__ or "").split()), apply)
        return apply

    return enter


def is_real(kind: ElementType) -> bool:
    """Integer or real floating point."""
    return kind.is_integer or kind.is_floating
