"""Integer arithmetic where NumPy's differs from XLA's, and masks: whether elements hold, and choosing by
them.

Division, powers, shifts, bit counts, types of less than a byte. Masks are quick for scalars, as loops have
them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hlotool.ir.arrays import Array, dtype_of
from hlotool.ir.types import ElementType


def some(mask: Array) -> bool:
    """Whether one element is true."""
    return bool(mask.any()) if mask.ndim else bool(mask)


def every(mask: Array) -> bool:
    """Whether no element is false."""
    return bool(mask.all()) if mask.ndim else bool(mask)


def choose(mask: Array, a: Array, b: Array, out: Array | None = None) -> Array:
    """`a` where `mask` holds, `b` elsewhere; a mask that is the same everywhere chooses one of them whole.

    What is mixed of both is written to `out`, which may be one of them.

    `np.where` branches per element: on irregular masks it is eight times slower than mixing the bits, which
    arrays of unequal types do not have in common.
    """
    if mask.ndim == 0:
        return a if mask else b
    has_bits = a.dtype == b.dtype and b.dtype.itemsize <= 8
    dtype = np.dtype(f"i{b.dtype.itemsize}") if has_bits else None
    if dtype is None or mask.size < _SMALL or np.broadcast_shapes(a.shape, b.shape, mask.shape) != mask.shape:
        return np.where(mask, a, b)
    # Guards against negative indices, NaN and the like: most often they never hold.
    if b.shape == mask.shape and not mask.any():
        return b
    if a.shape == mask.shape and mask.all():
        return a
    bits = np.negative(mask.view(np.int8)).astype(dtype)
    other = once(b).view(dtype)
    bits &= np.bitwise_xor(once(a).view(dtype), other)
    if out is None:
        bits ^= other
        return bits.view(b.dtype)
    np.bitwise_xor(bits, other, out=out.view(dtype))
    return out


#: Below this many elements `np.where` is quicker.
_SMALL = 2048


def once(values: Array) -> Array:
    """An array that broadcasts to `values`, without elements that are repeated and take no memory."""
    if 0 not in values.strides:
        return values
    return values[tuple(slice(1) if stride == 0 else slice(None) for stride in values.strides)]


_WIDE_SIGNED = np.dtype(np.int64)
_WIDE_UNSIGNED = np.dtype(np.uint64)


def is_sub_byte(element_type: ElementType) -> bool:
    """Whether an integer type is narrower than the byte that holds it (s1, s2, s4, u1, u2, u4)."""
    return element_type.is_integer and element_type.bits < 8


def carrier(element_type: ElementType) -> np.dtype[Any]:
    """The dtype in which integer arithmetic on `element_type` is done."""
    if not is_sub_byte(element_type):
        return dtype_of(element_type)
    return np.dtype(np.int8 if element_type.is_signed else np.uint8)


def wrap(value: Array, element_type: ElementType) -> Array:
    """The low bits of carrier values as values of a sub-byte type (two's complement)."""
    spare = 8 - element_type.bits
    if element_type.is_signed:
        low = np.right_shift(np.left_shift(value, spare), spare)
    else:
        low = np.bitwise_and(value, (1 << element_type.bits) - 1)
    return low.astype(dtype_of(element_type), copy=False)


def divide(a: Array, b: Array) -> Array:
    """Quotient towards zero; x / 0 is -1 (all ones), the most negative number over -1 is itself."""
    quotient = np.floor_divide(a, b)
    if _is_signed(quotient):
        inexact = np.multiply(quotient, b) != a
        quotient = quotient + (inexact & ((a < 0) != (b < 0)))
    return _where_zero(b, np.invert(np.zeros((), quotient.dtype)), quotient)


def remainder(a: Array, b: Array) -> Array:
    """What `divide` leaves, with the sign of the dividend; x % 0 is x."""
    return _where_zero(b, a, np.fmod(a, b))


def _where_zero(divisor: Array, replacement: Array, value: Array) -> Array:
    zero = once(divisor) == 0
    return np.where(zero, replacement, value) if some(zero) else value


def power(base: Array, exponent: Array) -> Array:
    """`base` to the `exponent`, wrapped; 0^0 is 1.

    A negative exponent gives 0, except that 1 stays 1 and -1 becomes ±1, and 0 to a negative power is 0.
    """
    if not _is_signed(exponent):
        return np.power(base, exponent)
    result = np.power(base, np.maximum(exponent, 0))
    negative = exponent < 0
    if not some(negative):
        return result
    unit = np.where(base == -1, 1 - 2 * (exponent & 1), base == 1).astype(result.dtype)
    return np.where(negative, unit, result)


def multiply_high(a: Array, b: Array, bits: int) -> Array:
    """The high half of the double-width product of two `bits`-wide numbers."""
    dtype = a.dtype
    if bits <= 32:
        wide = _WIDE_SIGNED if dtype.kind == "i" else _WIDE_UNSIGNED
        product = np.multiply(a.astype(wide), b.astype(wide))
        return np.right_shift(product, bits).astype(dtype)
    high = _multiply_high_u64(a.astype(_WIDE_UNSIGNED), b.astype(_WIDE_UNSIGNED)).astype(dtype)
    if dtype.kind == "i":
        zero = dtype.type(0)
        high = high - np.where(a < 0, b, zero) - np.where(b < 0, a, zero)
    return high


def _multiply_high_u64(a: Array, b: Array) -> Array:
    """High 64 bits of the product, from four 32-bit partial products."""
    low = np.uint64(0xFFFFFFFF)
    a_high, a_low, b_high, b_low = a >> 32, a & low, b >> 32, b & low
    carry = (a_low * b_low >> 32) + (a_low * b_high & low) + (a_high * b_low & low)
    high: Array = a_high * b_high + (a_low * b_high >> 32) + (a_high * b_low >> 32) + (carry >> 32)
    return high


def shift_right_logical(a: Array, amount: Array, bits: int) -> Array:
    """Shift in zeros; an amount of at least `bits`, read as unsigned, gives 0."""
    return np.right_shift(as_unsigned(a, bits), as_unsigned(amount, bits)).view(a.dtype)


def shift_right_arithmetic(a: Array, amount: Array, bits: int) -> Array:
    """Shift in copies of the top bit, also on unsigned types; too large amounts leave only the sign.

    NumPy's shifts check the amount and treat a negative one as too large, as XLA does.
    """
    signed_amount = as_unsigned(amount, bits).view(signed_dtype(a))
    shifted: Array = np.right_shift(_as_signed(a, bits), signed_amount)
    return shifted.view(a.dtype)


def count_leading_zeros(a: Array, bits: int) -> Array:
    """Number of zero bits above the highest one; `bits` for 0."""
    smeared = as_unsigned(a, bits)
    distance = 1
    while distance < bits:
        smeared = smeared | (smeared >> distance)
        distance *= 2
    return (bits - np.bitwise_count(smeared)).astype(a.dtype)


def popcount(a: Array, bits: int) -> Array:
    """Number of one bits within the type's width."""
    return np.bitwise_count(as_unsigned(a, bits)).astype(a.dtype)


def as_unsigned(a: Array, bits: int) -> Array:
    """The bit pattern as a non-negative number."""
    pattern = a.view(np.dtype(f"u{a.dtype.itemsize}"))
    return pattern if bits >= 8 else np.bitwise_and(pattern, (1 << bits) - 1)


def _as_signed(a: Array, bits: int) -> Array:
    """The bit pattern as a two's complement number."""
    pattern = a.view(signed_dtype(a))
    spare = max(0, 8 - bits)
    return np.right_shift(np.left_shift(pattern, spare), spare) if spare else pattern


def signed_dtype(a: Array) -> np.dtype[Any]:
    """The signed dtype of the same width."""
    return np.dtype(f"i{a.dtype.itemsize}")


def _is_signed(a: Array) -> bool:
    return a.dtype.kind == "i"
