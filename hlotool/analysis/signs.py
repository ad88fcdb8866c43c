"""What signs and ranges the values of a program have as real numbers, and by which laws.

`abs(x) → x` and `max(x, 0) → x` are the same function where x is known not to be negative, and only there.
The ranges are those of `ranges`, carried through tuples, calls, fusions and loops, and narrowed by
`inequalities`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from hlotool.analysis.calls import CallGraph
from hlotool.analysis.flow import computed_by, handed_on
from hlotool.analysis.functions import ABOVE_ZERO
from hlotool.analysis.inequalities import Inequalities, Law
from hlotool.analysis.interval import ANY, Interval
from hlotool.analysis.ranges import range_of, type_limits
from hlotool.analysis.value_numbers import ValueNumbers, reducing_opcode
from hlotool.ir.dtypes import integer_limits
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ArrayShape

NO_LAWS: frozenset[Law] = frozenset()


@dataclass(frozen=True, slots=True)
class Fact:
    """Where the elements of a value lie.

    Attributes:
        interval: from low to high, both included.
        laws: by which that is known; empty where nothing is.
    """

    interval: Interval = ANY
    laws: frozenset[Law] = NO_LAWS


class Order(Enum):
    """How two values are known to compare, in every element."""

    AT_MOST = "≤"
    AT_LEAST = "≥"


class Signs:
    """Facts about the values that a module's entry reaches, for real numbers.

    The module must not change meanwhile. Integers are left out where they may wrap around.

    Args:
        module: the program.
    """

    def __init__(self, module: Module) -> None:
        self._calls = CallGraph(module)
        self._numbers = ValueNumbers(self._calls)
        self._inequalities = Inequalities(self._numbers)
        self._facts: dict[Instruction, Fact] = {}
        for instruction in self._calls.in_order_of_execution():
            if next(handed_on((instruction, ()), self._calls), None) is None:
                self._facts[instruction] = self._computed(instruction)

    def of(self, instruction: Instruction) -> Fact:
        """Where the values of an instruction lie; nothing is known inside reducers and of tuples."""
        fact = self._facts.get(instruction)
        if fact is not None:
            return fact
        if instruction not in self._calls.home:
            return Fact()
        return _union(self._facts.get(source, Fact()) for source, _ in computed_by(instruction, self._calls))

    def order(self, a: Instruction, b: Instruction) -> tuple[Order, frozenset[Law]] | None:
        """How all elements of `a` compare with those of `b`; None where it depends on the arguments."""
        x, y = self.of(a), self.of(b)
        for order, lower, upper, low, high in ((Order.AT_MOST, x, y, a, b), (Order.AT_LEAST, y, x, b, a)):
            if lower.interval.high <= upper.interval.low:
                return order, lower.laws | upper.laws
            if low in self._calls.home and high in self._calls.home:
                law = self._inequalities.at_most(low, high)
                if law is not None:
                    return order, frozenset({law})
        return None

    def _computed(self, instruction: Instruction) -> Fact:
        """The fact about a value, given those about its operands."""
        shape = instruction.shape
        if not isinstance(shape, ArrayShape) or shape.element_type.is_complex:
            return Fact()
        limits = type_limits(shape)
        operands = [self.of(operand) for operand in instruction.operands]
        found, laws = limits, NO_LAWS
        if _is_understood(instruction):
            found = _closed(range_of(instruction, [fact.interval for fact in operands]))
            laws = _LAWS[instruction.opcode]
            if found != _closed(range_of(instruction, [ANY] * len(operands))):
                laws = laws.union(*(fact.laws for fact in operands))
        found, laws = self._narrowed(instruction, operands, found, laws)
        if shape.element_type.is_integer and not _fits(found, shape):
            found = limits
        return Fact(found, laws) if found != limits else Fact(limits)

    def _narrowed(
        self, instruction: Instruction, operands: list[Fact], found: Interval, laws: frozenset[Law]
    ) -> tuple[Interval, frozenset[Law]]:
        """What an inequality between the operands adds."""
        opcode = instruction.opcode
        if opcode == "subtract" and instruction.array_shape.element_type.is_floating:
            a, b = instruction.operands
            return self._difference(a, b, found, laws)
        if opcode == "multiply" and found.low <= 0 and self._numbers.same(*instruction.operands):
            return Interval(0, found.high), frozenset({Law.SQUARE})
        is_large_part = opcode == "divide" and operands[0].interval.low >= 0 and found.high > 1
        if is_large_part and self._inequalities.is_share(*instruction.operands):
            return Interval(0, 1), operands[0].laws | {Law.SHARE}
        return found, laws

    def _difference(
        self, a: Instruction, b: Instruction, found: Interval, laws: frozenset[Law]
    ) -> tuple[Interval, frozenset[Law]]:
        """The same of a - b."""
        if found.high > 0 and (law := self._inequalities.at_most(a, b)) is not None:
            return found.intersect(Interval(high=0)), frozenset({law})
        if found.low < 0 and (law := self._inequalities.at_most(b, a)) is not None:
            return found.intersect(Interval(0)), frozenset({law})
        return found, laws


def _union(facts: Iterable[Fact]) -> Fact:
    """What holds for values of which each has one of `facts`."""
    interval, laws = None, NO_LAWS
    for fact in facts:
        interval = fact.interval if interval is None else interval.union(fact.interval)
        laws |= fact.laws
    return Fact() if interval is None or interval == ANY else Fact(interval, laws)


def _closed(interval: Interval) -> Interval:
    """With 0 itself where the range only stays above 0: how far above is not known."""
    return Interval(0.0 if 0 < interval.low <= ABOVE_ZERO else interval.low, interval.high)


def _fits(interval: Interval, shape: ArrayShape) -> bool:
    low, high = integer_limits(shape.element_type)
    return low <= interval.low and interval.high <= high


def _is_understood(instruction: Instruction) -> bool:
    """Whether the range follows from those of the operands, for real numbers."""
    if instruction.opcode == "reduce":
        return reducing_opcode(instruction.computation("to_apply")) is not None
    if instruction.opcode == "convert":  # to integers: rounded
        source = instruction.operands[0].array_shape.element_type
        return not source.is_inexact or instruction.element_type.is_floating
    return instruction.opcode in _LAWS


def _table(opcodes: Mapping[Law, str]) -> dict[str, frozenset[Law]]:
    return {opcode: frozenset({law}) for law, names in opcodes.items() for opcode in names.split()}


#: By which law the range of each opcode follows from its operands'.
_LAWS: Final = _table(
    {
        Law.CONSTANT: "constant iota",
        Law.MOVED: "broadcast concatenate convert copy dynamic-slice dynamic-update-slice gather pad "
        "reduce-precision reshape reverse select slice transpose",
        Law.SUM: "add dot negate reduce subtract",
        Law.PRODUCT: "multiply divide",
        Law.SQUARE: "power",
        Law.ABSOLUTE: "abs",
        Law.EXPONENTIAL: "cosh exponential",
        Law.ROOT: "rsqrt sqrt",
        Law.BOUNDED: "cosine erf logistic sine tanh",
        Law.CHOSEN: "clamp maximum minimum",
        Law.MONOTONE: "log",
    }
)
