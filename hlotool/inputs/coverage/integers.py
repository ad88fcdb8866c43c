"""Outcomes of integer arithmetic: signs of divisions, and results that do not fit their type."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from hlotool.backends.numpy.integers import multiply_high
from hlotool.ir.arrays import Array, integer_limits
from hlotool.ir.types import ElementType

_Test = Callable[[Sequence[Any]], bool]


def _carried(values: Sequence[Any]) -> tuple[Array, Array]:
    """Both operands in dtypes that NumPy can calculate in: one byte holds what is narrower."""
    a, b = map(_carrier, values[:2])
    return a, b


def _carrier(value: Any) -> Array:
    array = np.asarray(value)
    return array if array.dtype.kind in "iu" else array.astype(np.int8)


def _zero_free(values: Sequence[Any]) -> tuple[Array, Array]:
    """Dividends and divisors where these are not 0."""
    a, b = np.broadcast_arrays(*_carried(values))
    return a[b != 0], b[b != 0]


def _is_exact(values: Sequence[Any]) -> bool:
    a, b = _zero_free(values)
    return bool((np.fmod(a, b) == 0).any())


def _is_inexact(values: Sequence[Any]) -> bool:
    a, b = _zero_free(values)
    return bool((np.fmod(a, b) != 0).any())


def _by_zero(values: Sequence[Any]) -> bool:
    return not bool(_carried(values)[1].all())


def _signs(is_negative: bool, by_negative: bool) -> _Test:
    """A quotient of numbers of these signs that is rounded."""

    def test(values: Sequence[Any]) -> bool:
        a, b = _zero_free(values)
        mask = ((a < 0) == is_negative) & ((b < 0) == by_negative)
        return bool(mask.any()) and bool((np.fmod(a[mask], b[mask]) != 0).any())

    return test


UNSIGNED_DIVISION: Final[Mapping[str, _Test]] = {
    "exact": _is_exact,
    "inexact": _is_inexact,
    "by zero": _by_zero,
}


def signed_division(kind: ElementType) -> Mapping[str, _Test]:
    """Tests of quotients and remainders: signs of dividend / divisor where the quotient is rounded."""
    lowest, _ = integer_limits(kind)

    def overflows(values: Sequence[Any]) -> bool:
        a, b = _carried(values)
        return bool(((a == lowest) & (b == -1)).any())

    return {
        "exact": _is_exact,
        "+/+": _signs(False, False),
        "-/+": _signs(True, False),
        "+/-": _signs(False, True),
        "-/-": _signs(True, True),
        "by zero": _by_zero,
        "overflow": overflows,
    }


def wraps(opcode: str, kind: ElementType) -> _Test:
    """Whether some sum, difference or product does not fit its type.

    The extremes show that most do; only where they do not, every element is looked at.
    """
    low, high = integer_limits(kind)
    exact = _EXACT[opcode]

    def test(values: Sequence[Any]) -> bool:
        a, b = _carried(values)
        if not a.size or not b.size:
            return False
        ends = [int(a.min()), int(a.max())], [int(b.min()), int(b.max())]
        corners = [_CORNERS[opcode](x, y) for x in ends[0] for y in ends[1]]
        if low <= min(corners) and max(corners) <= high:
            return False
        if a.ndim == b.ndim == 0:
            return True
        return bool(exact(a, b, low, high).any())

    return test


def negates_out_of_range(kind: ElementType) -> _Test:
    """Whether some number has no negative: the lowest one, and of unsigned types all but 0."""
    low, _ = integer_limits(kind)

    def test(values: Sequence[Any]) -> bool:
        a = _carrier(values[0])
        return bool((a == low).any()) if kind.is_signed else bool(a.any())

    return test


def sum_wraps(axes: tuple[int, ...], kind: ElementType) -> _Test:
    """Whether some sum over `axes`, from the second operand on, does not fit a type of less than 64 bits."""
    low, high = integer_limits(kind)

    def test(values: Sequence[Any]) -> bool:
        terms, init = _carried(values)
        total = np.add.reduce(terms, axis=axes, dtype=np.int64) + init.astype(np.int64)
        return bool(((total < low) | (total > high)).any())

    return test


def _sum_leaves(a: Array, b: Array, low: int, high: int) -> Array:
    result = a + b
    if not _fills(a.dtype, high):
        return _outside(result, low, high)
    return ((a ^ result) & (b ^ result)) < 0 if a.dtype.kind == "i" else result < a


def _difference_leaves(a: Array, b: Array, low: int, high: int) -> Array:
    if not _fills(a.dtype, high):
        return _outside(a.astype(np.int8) - b.astype(np.int8), low, high)
    return ((a ^ b) & (a ^ (a - b))) < 0 if a.dtype.kind == "i" else a < b


def _fills(dtype: np.dtype[Any], high: int) -> bool:
    """Whether the element type has all bits of the dtype that carries it."""
    return high == int(np.iinfo(dtype).max)


def _product_leaves(a: Array, b: Array, low: int, high: int) -> Array:
    if a.dtype.itemsize < 4 or (a.dtype.itemsize == 4 and a.dtype.kind == "i"):
        return _outside(a.astype(np.int64) * b, low, high)
    if a.dtype.itemsize == 4:
        return np.greater(a.astype(np.uint64) * b, high)
    upper = multiply_high(a, b, 64)
    sign: Array = (a * b) >> 63 if a.dtype.kind == "i" else np.zeros_like(a)
    return np.not_equal(upper, sign)


def _outside(values: Array, low: int, high: int) -> Array:
    return (values < low) | (values > high)


_EXACT: Final = {"add": _sum_leaves, "subtract": _difference_leaves, "multiply": _product_leaves}
_CORNERS: Final[Mapping[str, Callable[[int, int], int]]] = {
    "add": int.__add__,
    "subtract": int.__sub__,
    "multiply": int.__mul__,
}
