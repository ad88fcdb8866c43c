"""The texts of elements into arrays: numbers against the element type.

XLA: SetValueInLiteralHelper, CheckParsedValueIsInRange. Two differences are meant: `-0` keeps its sign in
floating-point types, and narrow types are rounded once from the double that the digits mean (XLA goes through
single precision).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from hlotool.ir.arrays import NAN_PAYLOAD_BITS, Array, dtype_of, integer_limits
from hlotool.ir.types import ElementType

Doubles = npt.NDArray[np.float64]

_INT64_MIN, _INT64_MAX, _UINT64_MAX = -(1 << 63), (1 << 63) - 1, (1 << 64) - 1
_INTEGER = re.compile(r"-?[0-9]+")
#: Integers of more digits than this may not fit in 64 bits.
_SAFE_DIGITS = 18
_NAN = re.compile(r"(-?)nan(?:\(0x([0-9A-Fa-f]+)\))?")


def to_array(tokens: Sequence[str], element_type: ElementType) -> Array:
    """A flat array of `tokens`, each the text of one element.

    Raises:
        ValueError: a token is no number of that type, or out of its range; the message names the token.
    """
    if element_type is ElementType.PRED:
        return _predicates(tokens)
    if element_type.is_integer:
        return _integers(tokens, element_type)
    return _floats(tokens, element_type)


def to_complex_array(pairs: Sequence[tuple[str, str]], element_type: ElementType) -> Array:
    """A flat array of `(real, imaginary)` tokens; parts out of range are errors even if they would round."""
    part = element_type.real_part
    limit = float(np.finfo(dtype_of(part)).max)
    columns = []
    for tokens in ([real for real, _ in pairs], [imaginary for _, imaginary in pairs]):
        values = _doubles(tokens)
        beyond = np.flatnonzero(np.isfinite(values) & (np.abs(values) > limit))
        if beyond.size:
            raise _out_of_range(tokens[beyond[0]], element_type, -limit, limit)
        columns.append(_floats(tokens, part))
    result: Array = np.empty(len(pairs), dtype_of(element_type))
    result.real, result.imag = columns
    return result


def _out_of_range(token: str, element_type: ElementType, low: object, high: object) -> ValueError:
    return ValueError(f"{token[:40]} is out of range for {element_type}, which holds {low} to {high}")


# Integers


def _predicates(tokens: Sequence[str]) -> Array:
    words = {"true": 1, "false": 0}
    return _int64s([str(words.get(token, token)) for token in tokens], ElementType.PRED).astype(np.bool_)


def _integers(tokens: Sequence[str], element_type: ElementType) -> Array:
    values = _int64s(tokens, element_type)
    low, high = integer_limits(element_type)
    if element_type is ElementType.U64:
        return values.view(np.uint64)
    wrong = np.flatnonzero((values < low) | (values > high))
    if wrong.size:
        raise _out_of_range(tokens[wrong[0]], element_type, low, high)
    return values.astype(dtype_of(element_type))


def _int64s(tokens: Sequence[str], element_type: ElementType) -> npt.NDArray[np.int64]:
    """64-bit patterns; what lies from 2**63 to 2**64 wraps around to negative numbers."""
    try:
        values = list(map(int, tokens))
    except ValueError:
        wrong = next(token for token in tokens if not _INTEGER.fullmatch(token) or len(token) > _SAFE_DIGITS)
        raise ValueError(f"{wrong[:40]} is not an integer, which {element_type} needs") from None
    if values and (min(values) < _INT64_MIN or max(values) > _INT64_MAX):
        values = [_wrapped(value) for value in values]
    return np.array(values, np.int64)


def _wrapped(value: int) -> int:
    if not _INT64_MIN <= value <= _UINT64_MAX:
        raise ValueError(f"{value} does not fit in 64 bits")
    return value if value <= _INT64_MAX else value - _UINT64_MAX - 1


# Floating point


def _floats(tokens: Sequence[str], element_type: ElementType) -> Array:
    values = _doubles(tokens)
    result = _rounded(values, element_type)
    with np.errstate(invalid="ignore"):
        lost = np.flatnonzero(np.isfinite(values) & ~np.isfinite(result.astype(np.float64)))
    if lost.size:
        info: Any = (np.finfo if element_type.bits >= 32 else ml_dtypes.finfo)(result.dtype)
        low = info.smallest_normal if element_type is ElementType.F8E8M0FNU else info.min
        raise _out_of_range(tokens[lost[0]], element_type, f"{float(low):g}", f"{float(info.max):g}")
    for i in np.flatnonzero(np.isnan(values)).tolist():
        _set_nan(result, i, tokens[i], element_type)
    return result


def _doubles(tokens: Sequence[str]) -> Doubles:
    try:
        values = np.array(list(map(float, tokens)), np.float64)
    except ValueError:
        values = np.array(list(map(_double, tokens)), np.float64)
    for i in np.flatnonzero(np.isinf(values)).tolist():
        if "inf" not in tokens[i]:
            raise ValueError(f"{tokens[i][:40]} is out of range for a double")
    if max(map(len, tokens), default=0) > _SAFE_DIGITS:
        for token in tokens:
            if len(token) > _SAFE_DIGITS and _INTEGER.fullmatch(token):
                _wrapped(int(token) if len(token) < 2 * _SAFE_DIGITS else _UINT64_MAX + 1)
    return values


def _double(token: str) -> float:
    """Also NaNs with a payload, which is looked at later."""
    try:
        return float(token.partition("(")[0])
    except ValueError:
        raise ValueError(f"{token[:40]} is not a number") from None


def _rounded(values: Doubles, element_type: ElementType) -> Array:
    """Nearest values, ties to even; narrow types in one step from the double."""
    dtype = dtype_of(element_type)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        if element_type.bits >= 32 or element_type is ElementType.F16:
            return values.astype(dtype)
        return _rounded_to_odd(values).astype(dtype)


def _rounded_to_odd(values: Doubles) -> npt.NDArray[np.float32]:
    """Single precision whose last bit says whether anything was cut off, so that rounding again is exact."""
    nearest = values.astype(np.float32)
    toward_zero = np.where(
        np.abs(nearest.astype(np.float64)) > np.abs(values), np.nextafter(nearest, np.float32(0)), nearest
    )
    inexact = np.isfinite(values) & (toward_zero.astype(np.float64) != values)
    bits: npt.NDArray[np.uint32] = toward_zero.view(np.uint32) | inexact
    return bits.view(np.float32)


def _set_nan(result: Array, i: int, token: str, element_type: ElementType) -> None:
    """Write sign and payload of a NaN token; the types without payloads take plain NaNs only."""
    found = _NAN.fullmatch(token)
    if found is None:
        raise ValueError(f"{token[:40]} is not a number")
    payload = None if found[2] is None else int(found[2], 16)
    width = NAN_PAYLOAD_BITS.get(element_type)
    if width is None:
        if payload is not None and payload != 1 << 51:
            raise ValueError(f"a NaN of {element_type} has no payload, but {token} says one")
        return
    if payload is None or payload == 1 << 51:
        payload = 1 << (width - 1)
    if not 0 < payload < 1 << width:
        raise ValueError(
            f"the payload of {token} does not fit {element_type}: at most 0x{(1 << width) - 1:x}"
        )
    bits = element_type.bits
    exponent = ((1 << (bits - 1)) - 1) & ~((1 << width) - 1)
    sign = 1 << (bits - 1) if found[1] else 0
    pattern = sign | exponent | payload
    result.view(f"u{bits // 8}")[i] = pattern
