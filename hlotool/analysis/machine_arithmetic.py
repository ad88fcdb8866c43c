"""What arithmetic makes of ranges of its operands' values, in the arithmetic of the machine."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from hlotool.analysis.machine_range import MachineRange, of_integers, rounded
from hlotool.ir.module import Instruction
from hlotool.ir.types import ElementType

INFINITY: Final = math.inf

Operands: TypeAlias = Sequence[MachineRange]
Rule: TypeAlias = Callable[[Instruction, Operands], "MachineRange | None"]


def bounds_of_sum(a: MachineRange, b: MachineRange) -> tuple[float, float]:
    """Infinities of both signs make NaN: the ends that they would have are those of the other terms."""
    low, high = a.low + b.low, a.high + b.high
    return (-INFINITY if math.isnan(low) else low), (INFINITY if math.isnan(high) else high)


def opposed(a: MachineRange, b: MachineRange) -> bool:
    """Whether infinities of opposite signs may meet."""
    return (a.high == INFINITY and b.low == -INFINITY) or (a.low == -INFINITY and b.high == INFINITY)


def negated(a: MachineRange) -> MachineRange:
    """The ends change places and signs."""
    return MachineRange(-a.high, -a.low, a.nan, a.holds_zero)


def add(instruction: Instruction, operands: Operands) -> MachineRange:
    """x + y: what overflows an integer is for the caller."""
    a, b = operands
    if not instruction.element_type.is_floating:
        return of_integers(*bounds_of_sum(a, b))
    low, high = rounded(*bounds_of_sum(a, b), instruction.element_type)
    # x + y is -0 only for two of them.
    nan = a.nan or b.nan or opposed(a, b)
    return MachineRange(low, high, nan, a.negative_zero and b.negative_zero)


def subtract(instruction: Instruction, operands: Operands) -> MachineRange:
    """x - y, as x + -y."""
    return add(instruction, (operands[0], negated(operands[1])))


def negate(instruction: Instruction, operands: Operands) -> MachineRange:
    """-x."""
    found = negated(operands[0])
    return found if instruction.element_type.is_floating else of_integers(found.low, found.high)


def bounds_of_product(a: MachineRange, b: MachineRange) -> tuple[float, float]:
    """Of the exact products; zero and infinity have none."""
    found = [x * y if x and y else 0 for x in (a.low, a.high) for y in (b.low, b.high)]
    return min(found), max(found)


def multiply(instruction: Instruction, operands: Operands) -> MachineRange:
    """x * y; a square is not negative."""
    if instruction.operands[0] is instruction.operands[1]:
        return square(instruction, operands[0])
    return product(instruction.element_type, *operands)


def square(instruction: Instruction, a: MachineRange) -> MachineRange:
    """Of one number with itself: neither negative, nor NaN of zero and infinity."""
    ends = a.low * a.low, a.high * a.high
    low, high = 0 if a.holds_zero else min(ends), max(ends)
    if not instruction.element_type.is_floating:
        return of_integers(low, high)
    return MachineRange(*rounded(low, high, instruction.element_type), a.nan, False)


def product(element_type: ElementType, a: MachineRange, b: MachineRange) -> MachineRange:
    """Of two ranges in a type."""
    low, high = bounds_of_product(a, b)
    if not element_type.is_floating:
        return of_integers(low, high)
    low, high = rounded(low, high, element_type)
    nan = a.nan or b.nan or (a.holds_zero and not b.is_finite) or (b.holds_zero and not a.is_finite)
    return MachineRange(low, high, nan, not same_sign(a, b))


def same_sign(a: MachineRange, b: MachineRange) -> bool:
    """Whether no product or quotient has a sign, tiny ones that become zero included."""
    return (a.is_not_negative and b.is_not_negative) or (a.high < 0 and b.high < 0)


def divide(instruction: Instruction, operands: Operands) -> MachineRange | None:
    """x / y: of integers only where no divisor may be zero or negative."""
    a, b = operands
    if not instruction.element_type.is_floating:
        return of_integers(min(a.low, 0), max(a.high, 0)) if b.low > 0 else None
    nan = a.nan or b.nan or (a.holds_zero and b.holds_zero) or (not a.is_finite and not b.is_finite)
    if b.holds_zero:
        is_positive = a.is_not_negative and b.is_not_negative
        return MachineRange(0 if is_positive else -INFINITY, INFINITY, nan, not is_positive)
    ends = [x / y if x else 0.0 for x in (a.low, a.high) for y in (b.low, b.high)]
    ends = [0.0 if math.isnan(end) else end for end in ends]
    if not (a.is_finite and b.is_finite):
        ends += [0.0]
    low, high = rounded(min(ends), max(ends), instruction.element_type)
    return MachineRange(low, high, nan, not same_sign(a, b))


def remainder(instruction: Instruction, operands: Operands) -> MachineRange | None:
    """The sign is that of the dividend, and it is nearer to 0 than the divisor."""
    a, b = operands
    if b.low <= 0 or not instruction.element_type.is_integer:
        return None
    most = b.high - 1
    return of_integers(max(-most, min(a.low, 0)), min(most, max(a.high, 0)))


def absolute(instruction: Instruction, operands: Operands) -> MachineRange | None:
    """The lowest integer is its own absolute value."""
    (a,) = operands
    low = 0 if a.holds_zero else min(abs(a.low), abs(a.high))
    return MachineRange(low, max(abs(a.low), abs(a.high)), a.nan, False)


def sign(_: Instruction, operands: Operands) -> MachineRange:
    """-1, 0 or 1, with the sign of zero."""
    (a,) = operands
    low = -1 if a.low < 0 else 0 if a.low <= 0 else 1
    return MachineRange(low, 1 if a.high > 0 else 0 if a.high >= 0 else -1, a.nan, a.negative_zero)
