"""Ranges of array elements in the machine's arithmetic, and what operations make of them.

They are bounds, and what no bounds say (NaN, the sign of zeros). Other than `Interval`, which is about real
numbers and chooses inputs, this is made for proofs: integers wrap, floats are rounded, overflow, and
denormals may be flushed to zero; nothing of it breaks what is said here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import ml_dtypes
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from hlotool.ir.arrays import Array, dtype_of, integer_limits
from hlotool.ir.module import Instruction
from hlotool.ir.types import ElementType, Shape

_INF: Final = math.inf


class MachineRange(Struct, frozen=True):
    """What holds for all elements of an array.

    Attributes:
        low: no element that is a number is smaller. Exact for integers; an infinite element is possible where
            the bound is infinite.
        high: none is larger.
        nan: an element may be NaN.
        negative_zero: an element may be -0.
    """

    low: float = -_INF
    high: float = _INF
    nan: bool = True
    negative_zero: bool = True

    @property
    def is_point(self) -> bool:
        """All elements are one number, to the bit."""
        return self.low == self.high and not self.nan and not (self.low == 0 and self.negative_zero)

    @property
    def holds_zero(self) -> bool:
        """An element may be 0, of either sign."""
        return self.low <= 0 <= self.high

    @property
    def is_finite(self) -> bool:
        """No element is infinite; one may be NaN."""
        return self.low > -_INF and self.high < _INF

    @property
    def is_not_negative(self) -> bool:
        """No element has a sign."""
        return self.low >= 0 and not self.negative_zero

    def within(self, low: float, high: float) -> bool:
        """Every element that is a number lies between two others."""
        return low <= self.low and self.high <= high

    def union(self, other: MachineRange) -> MachineRange:
        """What holds for the elements of both."""
        return MachineRange(
            min(self.low, other.low),
            max(self.high, other.high),
            self.nan or other.nan,
            self.negative_zero or other.negative_zero,
        )

    def covers(self, other: MachineRange) -> bool:
        """Whether all that the other one allows is allowed."""
        special = (other.nan and not self.nan) or (other.negative_zero and not self.negative_zero)
        return other.within(self.low, self.high) and not special

    def intersection(self, other: MachineRange) -> MachineRange:
        """What holds if both hold."""
        return MachineRange(
            max(self.low, other.low),
            min(self.high, other.high),
            self.nan and other.nan,
            self.negative_zero and other.negative_zero,
        )


def of_integers(low: float, high: float) -> MachineRange:
    """Of integers or preds."""
    return MachineRange(low, high, nan=False, negative_zero=False)


def of_type(element_type: ElementType) -> MachineRange:
    """What the element type alone says."""
    if element_type.is_integer or element_type is ElementType.PRED:
        return of_integers(*integer_limits(element_type))
    return MachineRange()


def of_shape(shape: Shape) -> MachineRange:
    """What the type of an array says; nothing of tuples."""
    element_type = getattr(shape, "element_type", None)
    return MachineRange() if element_type is None else of_type(element_type)


def of_value(value: Array) -> MachineRange:
    """What is seen of a known value."""
    if value.size == 0 or np.iscomplexobj(value):
        return MachineRange()
    if not _is_float(value):
        # A scalar of numpy, which literals may hold, would become a Python number.
        whole = np.asarray(value).astype(object)
        return of_integers(int(whole.min()), int(whole.max()))
    numbers = value.astype(np.float64)
    is_nan = np.isnan(numbers)
    if is_nan.all():
        return MachineRange()
    kept = numbers[~is_nan]
    has_negative_zero = bool(np.any((kept == 0) & np.signbit(kept)))
    return MachineRange(float(kept.min()), float(kept.max()), bool(is_nan.any()), has_negative_zero)


def _is_float(value: Array) -> bool:
    if value.dtype.kind in "biu":
        return False
    try:
        ml_dtypes.finfo(value.dtype)  # type: ignore[no-untyped-call]
    except ValueError:
        return False
    return True


def rounded(low: float, high: float, element_type: ElementType, slack: float = 0.0) -> tuple[float, float]:
    """Bounds of what floats between two numbers become in a type, or stay where they are kept wider.

    Rounding is monotone: the ends say it all.

    Args:
        low: of the exact numbers.
        high: of them.
        element_type: that they are rounded to.
        slack: how many units in the last place an approximation may be off.
    """
    info: Any = ml_dtypes.finfo(dtype_of(element_type))  # type: ignore[no-untyped-call]
    reach = slack * float(info.eps)
    low = low - abs(low) * reach if math.isfinite(low) else low
    high = high + abs(high) * reach if math.isfinite(high) else high
    return min(low, _cast(low, element_type, info, -1)), max(high, _cast(high, element_type, info, 1))


def _cast(end: float, element_type: ElementType, info: Any, side: int) -> float:
    """A number in a type, where several are possible the lowest (side -1) or the highest one."""
    if not math.isfinite(end):
        return end
    if abs(end) < float(info.smallest_normal):
        return 0.0
    if abs(end) > float(info.max):
        # The largest number, or infinity.
        return end * _INF if end * side > 0 else math.copysign(float(info.max), end)
    return float(np.asarray(end, np.float64).astype(dtype_of(element_type)))


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


#: Floats whose order is that of their bits, as long as they have no sign.
_IEEE: Final = frozenset({ElementType.F16, ElementType.BF16, ElementType.F32, ElementType.F64})


def _is_pred(instruction: Instruction) -> bool:
    return instruction.element_type is ElementType.PRED


def bits_and(instruction: Instruction, operands: Operands) -> MachineRange | None:
    """A mask without the sign bit bounds what it lets through."""
    if _is_pred(instruction):
        return of_integers(min(o.low for o in operands), min(o.high for o in operands))
    bounds = [o.high for o in operands if o.low >= 0]
    return of_integers(0, min(bounds)) if bounds else None


def bits_or(instruction: Instruction, operands: Operands) -> MachineRange | None:
    """Bits are added to either side, none that neither may have."""
    if _is_pred(instruction):
        return of_integers(max(o.low for o in operands), max(o.high for o in operands))
    if any(o.low < 0 for o in operands):
        return None
    most = 0
    for operand in operands:
        most |= int(operand.low) if operand.is_point else _ones(operand)
    return of_integers(max(o.low for o in operands), most)


def bits_xor(_: Instruction, operands: Operands) -> MachineRange | None:
    """No bit that neither side may have."""
    if any(o.low < 0 for o in operands):
        return None
    return of_integers(0, max(_ones(o) for o in operands))


def _ones(operand: MachineRange) -> int:
    """All bits that numbers up to the largest one may have."""
    return (1 << int(operand.high).bit_length()) - 1


def bits_not(instruction: Instruction, operands: Operands) -> MachineRange:
    """Counted from the other end."""
    (a,) = operands
    if _is_pred(instruction):
        return of_integers(1 - a.high, 1 - a.low)
    ones = int(of_type(instruction.element_type).high) if instruction.element_type.is_unsigned else -1
    return of_integers(ones - a.high, ones - a.low)


def shift_right(instruction: Instruction, operands: Operands) -> MachineRange | None:
    """Nothing grows; what is shifted by all bits or more is 0."""
    value, amount = operands
    if value.low < 0:
        return None
    if not amount.is_point or amount.low < 0:
        return replace(value, low=0)
    step = min(int(amount.low), instruction.element_type.bits)
    return of_integers(int(value.low) >> step, int(value.high) >> step)


def bit_count(instruction: Instruction, _: Operands) -> MachineRange:
    """Of the bits of a type."""
    return of_integers(0, instruction.element_type.bits)


def bits_as_float(instruction: Instruction, operands: Operands) -> MachineRange | None:
    """Integers without a sign, taken for the bits of floats of as many: they keep their order."""
    (a,), source, target = operands, instruction.operands[0].element_type, instruction.element_type
    if target not in _IEEE or not source.is_integer or source.bits != target.bits or a.low < 0:
        return None
    info: Any = ml_dtypes.finfo(dtype_of(target))  # type: ignore[no-untyped-call]
    kind = np.dtype(f"u{target.bits // 8}")
    infinity = int(np.asarray(np.inf, dtype_of(target)).view(kind))
    if a.high > infinity:
        return None
    low, high = (
        float(np.asarray(int(end), kind).view(dtype_of(target)).astype(np.float64)) for end in (a.low, a.high)
    )
    # Denormals may become 0.
    return MachineRange(
        low if low >= float(info.smallest_normal) else 0, high, nan=False, negative_zero=False
    )
