"""Arithmetic that is written as in Python, as instructions of HLO."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, ElementType
from hlotool.parser.mlir.elementwise import broadcasting, filled
from hlotool.parser.mlir.frames import Context, Results, operation

Other: TypeAlias = "Value | float"


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """An array. Numbers beside it are filled into its shape; comparisons give an array of pred.

    Attributes:
        context: of the operation that it is a part of.
        made: the instruction.
    """

    context: Context
    made: Instruction

    @property
    def kind(self) -> ElementType:
        """The type of its elements."""
        return self.made.element_type

    def like(self, number: float) -> Value:
        """This number in every element."""
        return Value(self.context, filled(self.context, number, ArrayShape(self.kind, self.made.dims)))

    def of(self, opcode: str, *others: Other, kind: ElementType | None = None, direction: str = "") -> Value:
        """An elementwise instruction on this value and others; its type is this one's, or `kind`."""
        operands = [one if isinstance(one, Value) else self.like(one) for one in others]
        shape = ArrayShape(kind or self.kind, self.made.dims)
        named = {"direction": direction} if direction else {}
        listed = (self.made, *(one.made for one in operands))
        return Value(self.context, self.context.emit(opcode, *listed, shape=shape, **named))

    def converted(self, kind: ElementType) -> Value:
        """Of another type."""
        return self if kind is self.kind else self.of("convert", kind=kind)

    def __add__(self, other: Other) -> Value:
        return self.of("add", other)

    __radd__ = __add__

    def __mul__(self, other: Other) -> Value:
        return self.of("multiply", other)

    __rmul__ = __mul__

    def __sub__(self, other: Other) -> Value:
        return self.of("subtract", other)

    def __rsub__(self, other: float) -> Value:
        return self.like(other) - self

    def __truediv__(self, other: Other) -> Value:
        return self.of("divide", other)

    def __rtruediv__(self, other: float) -> Value:
        return self.like(other) / self

    def __mod__(self, other: Other) -> Value:
        return self.of("remainder", other)

    def __pow__(self, other: Other) -> Value:
        return self.of("power", other)

    def __and__(self, other: Other) -> Value:
        return self.of("and", other)

    def __or__(self, other: Other) -> Value:
        return self.of("or", other)

    def __neg__(self) -> Value:
        return self.of("negate")

    def __abs__(self) -> Value:
        return self.of("abs", kind=self.kind.real_part)

    def __lt__(self, other: Other) -> Value:
        return self.compared("LT", other)

    def __le__(self, other: Other) -> Value:
        return self.compared("LE", other)

    def __gt__(self, other: Other) -> Value:
        return self.compared("GT", other)

    def compared(self, direction: str, other: Other) -> Value:
        """Whether it is so, element by element."""
        return self.of("compare", other, kind=ElementType.PRED, direction=direction)

    def select(self, one: Value, other: Other) -> Value:
        """Of pred: the elements of `one` where it is true, of `other` elsewhere."""
        other = other if isinstance(other, Value) else one.like(other)
        return self.of("select", one, other, kind=one.kind)

    def is_whole(self) -> Value:
        """Whether it is an integer."""
        return self.compared("EQ", self.of("floor"))


def polynomial(at: Value, coefficients: tuple[float, ...]) -> Value:
    """By Horner's rule, the coefficient of the highest power first."""
    made = at.like(coefficients[0])
    for coefficient in coefficients[1:]:
        made = made * at + coefficient
    return made


Function: TypeAlias = "Callable[..., Value]"


def function(name: str, count: int = 1, narrowest: int = 32) -> Callable[[Function], Function]:
    """Register a function of CHLO on real numbers, and the one that broadcasts where there are several.

    Args:
        name: without the dialect.
        count: of operands.
        narrowest: bits of the type that it computes in, where the operands' is narrower.
    """

    def register(compute: Function) -> Function:
        def rule(context: Context) -> Results:
            if len(context.operands) != count:
                raise context.error(f"takes {count} operands, not {len(context.operands)}")
            given = [Value(context, context.operand(number)) for number in range(count)]
            kind = given[0].kind
            if not all(one.kind is kind and kind.is_floating for one in given):
                raise context.error(f"is no function of {kind}")
            wide = kind if kind.bits >= narrowest else ElementType.F32
            return compute(*(one.converted(wide) for one in given)).converted(kind).made

        operation(name)(rule)
        if count > 1:
            operation(f"broadcast_{name}")(broadcasting(name))
        return compute

    return register
