"""What the elements of an array are sure to be in the arithmetic of the machine: bounds, and what no bounds
say (NaN, the sign of zeros).

Other than `Interval`, which is about real numbers and chooses inputs, this is made for proofs: integers wrap,
floats are rounded, overflow, and denormals may be flushed to zero; nothing of it breaks what is said here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import ml_dtypes
import numpy as np

from hlotool.ir.dtypes import Array, dtype_of, integer_limits
from hlotool.ir.types import ElementType, Shape

_INF: Final = math.inf


@dataclass(frozen=True, slots=True)
class MachineRange:
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
