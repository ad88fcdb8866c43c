"""What the values of an array are sure to be: bounds that hold whatever the parameters are, wrap-around
included.

Other than `analysis.ranges`, which serves to choose inputs, this is made for proofs: what may wrap around, or
be NaN, is known to be nothing but its type.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import ml_dtypes
import numpy as np

from hlotool.ir.dtypes import Array, integer_limits
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, ElementType

_INF: Final = float("inf")


@dataclass(frozen=True, slots=True)
class Facts:
    """Bounds of all elements of an array.

    Attributes:
        low: no element that is a number is smaller; exact for integers.
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
        """All elements are one number."""
        return self.low == self.high and not self.nan and not (self.low == 0 and self.negative_zero)

    def within(self, low: float, high: float) -> bool:
        """Every element that is a number lies between two others."""
        return low <= self.low and self.high <= high

    def union(self, other: Facts) -> Facts:
        """What holds for the elements of both."""
        return Facts(
            min(self.low, other.low),
            max(self.high, other.high),
            self.nan or other.nan,
            self.negative_zero or other.negative_zero,
        )


def of_type(element_type: ElementType) -> Facts:
    """What the element type alone says."""
    if element_type is ElementType.PRED:
        return Facts(0, 1, False, False)
    if element_type.is_integer:
        return Facts(*integer_limits(element_type), False, False)
    return Facts()


def of_value(value: Array) -> Facts:
    """What is seen of a known value."""
    if value.size == 0 or np.iscomplexobj(value):
        return Facts()
    if value.dtype.kind in "biu" or not _is_float(value):
        whole = value.astype(object)
        return Facts(int(whole.min()), int(whole.max()), False, False)
    numbers = value.astype(np.float64)
    nan = np.isnan(numbers)
    if nan.all():
        return Facts()
    kept = numbers[~nan]
    zero = bool(np.any((kept == 0) & np.signbit(kept)))
    return Facts(float(kept.min()), float(kept.max()), bool(nan.any()), zero)


def _is_float(value: Array) -> bool:
    try:
        ml_dtypes.finfo(value.dtype)  # type: ignore[no-untyped-call]
    except ValueError:
        return False
    return True


def facts_of(instruction: Instruction, operands: Sequence[Facts | None]) -> Facts:
    """Bounds of the result of an instruction, given those of its operands (None for tuples)."""
    shape = instruction.shape
    if not isinstance(shape, ArrayShape):
        return Facts()
    limits = of_type(shape.element_type)
    rule = _RULES.get(instruction.opcode)
    if rule is None or shape.element_type.is_complex or any(o is None for o in operands):
        return limits
    found = rule(instruction, [o for o in operands if o is not None])
    if found is None:
        return limits
    if not shape.element_type.is_floating:
        return found if found.within(limits.low, limits.high) else limits
    return found


_Rule: TypeAlias = Callable[[Instruction, list[Facts]], "Facts | None"]


def _integers_only(function: Callable[[Facts, Facts], tuple[float, float]]) -> _Rule:
    """Exact bounds of integers; sums and products of floats are rounded, and may be anything."""

    def rule(instruction: Instruction, operands: list[Facts]) -> Facts | None:
        if not instruction.element_type.is_integer:
            return None
        return Facts(*function(*operands), False, False)

    return rule


def _products(a: Facts, b: Facts) -> tuple[float, float]:
    found = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    return min(found), max(found)


def _extremum(pick: Callable[..., Any]) -> _Rule:
    def rule(_: Instruction, operands: list[Facts]) -> Facts:
        a, b = operands
        return Facts(
            pick(a.low, b.low), pick(a.high, b.high), a.nan or b.nan, a.negative_zero or b.negative_zero
        )

    return rule


def _clamp(_: Instruction, operands: list[Facts]) -> Facts:
    least, value, most = operands
    low = min(max(value.low, least.low), most.low)
    high = min(max(value.high, least.high), most.high)
    return Facts(low, max(low, high), any(o.nan for o in operands), any(o.negative_zero for o in operands))


def _remainder(instruction: Instruction, operands: list[Facts]) -> Facts | None:
    value, divisor = operands
    if not instruction.element_type.is_integer or divisor.low <= 0:
        return None
    most = divisor.high - 1
    low = 0 if value.low >= 0 else max(-most, value.low)
    return Facts(low, min(most, value.high) if value.high >= 0 else 0, False, False)


def _divide(instruction: Instruction, operands: list[Facts]) -> Facts | None:
    value, divisor = operands
    if not instruction.element_type.is_integer or divisor.low <= 0:
        return None
    return Facts(min(0, value.low), max(0, value.high), False, False)


def _and(_: Instruction, operands: list[Facts]) -> Facts | None:
    known = [o.high for o in operands if o.low >= 0]
    return Facts(0, min(known), False, False) if known else None


def _or(_: Instruction, operands: list[Facts]) -> Facts | None:
    if any(o.low < 0 for o in operands):
        return None
    bits = max(int(o.high).bit_length() for o in operands)
    return Facts(0, (1 << bits) - 1, False, False)


def _convert(instruction: Instruction, operands: list[Facts]) -> Facts | None:
    (value,) = operands
    source, target = instruction.operands[0].element_type, instruction.element_type
    if source.is_complex:
        return None
    if target.is_floating:
        # Rounding is monotone; beyond the type it is infinite.
        unit = 2.0 ** -(target.bits // 4)
        low, high = (end * (1 + unit) if abs(end) < _INF else end for end in (value.low, value.high))
        if max(abs(low), abs(high)) > 240:
            low, high = (low, high) if target in (ElementType.F32, ElementType.F64) else (-_INF, _INF)
        if value.low >= 0:
            low = 0
        return Facts(min(low, value.low), max(high, value.high), value.nan, value.negative_zero)
    if source.is_floating:
        return None
    return value


def _abs(_: Instruction, operands: list[Facts]) -> Facts:
    (value,) = operands
    low = 0 if value.low <= 0 <= value.high else min(abs(value.low), abs(value.high))
    return Facts(low, max(abs(value.low), abs(value.high)), value.nan, False)


def _negate(_: Instruction, operands: list[Facts]) -> Facts:
    (value,) = operands
    return Facts(-value.high, -value.low, value.nan, value.low <= 0 <= value.high)


def _same(_: Instruction, operands: list[Facts]) -> Facts:
    return operands[0]


def _all(_: Instruction, operands: list[Facts]) -> Facts:
    result = operands[0]
    for other in operands[1:]:
        result = result.union(other)
    return result


def _between(low: float, high: float) -> _Rule:
    def rule(_: Instruction, operands: list[Facts]) -> Facts:
        return Facts(low, high, operands[0].nan, low < 0)

    return rule


def _shift_right(instruction: Instruction, operands: list[Facts]) -> Facts | None:
    value = operands[0]
    return replace(value, low=0) if value.low >= 0 else None


_RULES: dict[str, _Rule] = {
    "add": _integers_only(lambda a, b: (a.low + b.low, a.high + b.high)),
    "subtract": _integers_only(lambda a, b: (a.low - b.high, a.high - b.low)),
    "multiply": _integers_only(_products),
    "divide": _divide,
    "remainder": _remainder,
    "maximum": _extremum(max),
    "minimum": _extremum(min),
    "clamp": _clamp,
    "and": _and,
    "or": _or,
    "xor": _or,
    "convert": _convert,
    "abs": _abs,
    "negate": _negate,
    "select": lambda i, operands: _all(i, operands[1:]),
    "exponential": _between(0, _INF),
    "logistic": _between(0, 1),
    "tanh": _between(-1, 1),
    "shift-right-logical": _shift_right,
    "shift-right-arithmetic": _shift_right,
    "sign": lambda _, operands: Facts(-1 if operands[0].low < 0 else 0, 1, operands[0].nan),
    **dict.fromkeys(("concatenate", "pad"), _all),
    "dynamic-update-slice": lambda i, operands: _all(i, operands[:2]),
    "bitcast": lambda i, operands: operands[0] if i.operands[0].element_type is i.element_type else None,
    **dict.fromkeys(
        ("broadcast", "copy", "dynamic-slice", "gather", "reshape", "reverse", "slice", "transpose"), _same
    ),
}
