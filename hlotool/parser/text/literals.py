"""The text of a literal into a value: nesting and counts against the shape, numbers against the type.

Comments may stand anywhere between elements and commas are optional, as in XLA. Large arrays are read
without a Python step per element.

XLA: ParseDenseLiteral, ParseTupleLiteral, SetValueInLiteralHelper, CheckParsedValueIsInRange. Two
differences are meant: `-0` keeps its sign in floating-point types, and narrow types are rounded once from
the double that the digits mean (XLA goes through single precision).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from hlotool.ir.arrays import NAN_PAYLOAD_BITS, Array, Literal, dtype_of, integer_limits
from hlotool.ir.types import ArrayShape, ElementType, Shape, TupleShape
from hlotool.parser.text.hlo_parser import parse_syntax
from hlotool.parser.text.syntax import Source, TextError, TypedLiteral, TypedLiteralTuple

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


_COMMENT = re.compile(r"/\*.*?\*/|//[^\r\n]*", re.DOTALL)
_NUMBER = (
    r"(?:-?[0-9]+(?:\.[0-9]*)?(?:[eE][+\-]?[0-9]+)?|-\.[0-9]+(?:[eE][+\-]?[0-9]+)?"
    r"|-?inf|-?nan(?:\(0x[0-9A-Fa-f]+\))?|true|false)"
)
_BLANKS = " \t\r\n"
_BLANK = rf"[{_BLANKS}]"
_PAIR = re.compile(rf"\({_BLANK}*({_NUMBER}){_BLANK}*,{_BLANK}*({_NUMBER}){_BLANK}*\)")
#: What an array literal may consist of once pairs have become single elements.
_ARRAY = re.compile(r"(?>(?:[{} \t\r\n,]++|" + _NUMBER + r"(?=[{} \t\r\n,]|\Z))*)")
_ELIDED = re.compile(r"[ \t\r\n]*\{[ \t\r\n,]*\.\.\.[ \t\r\n,]*\}[ \t\r\n]*")
_BRACE_OR_ELEMENT = re.compile(r"[{}]|[^{} \t\r\n,]+")
_NOT_ELEMENTS = str.maketrans("{},", "   ")
_BRACKET = re.compile(r"[(){},]")

#: From so many elements on, nesting is checked by array operations.
_MANY = 1000


def decode_literal(text: str, shape: Shape, position: int = 0) -> Literal:
    """The value of a literal.

    Args:
        text: what stands in the parentheses of `constant(…)`.
        shape: of the value.
        position: of `text` in the source, for errors.

    Raises:
        TextError: it does not fit the shape, or an element does not fit the element type.
    """
    try:
        return _decode(
            _COMMENT.sub(lambda comment: " " * len(comment[0]), text) if "/" in text else text, shape
        )
    except ValueError as error:
        raise TextError(str(error), position + len(text) - len(text.lstrip())) from error


def read_literal(text: str, shape: Shape) -> Literal:
    """The same of a text of its own, apart from what stands around it.

    Raises:
        HloSyntaxError: with the place in `text`.
    """
    try:
        return decode_literal(text, shape)
    except TextError as error:
        source = Source(text)
        parse_syntax(source, "literal", strict=False)  # where even the syntax is wrong, that is the error
        raise source.error(error.message, error.position) from error


def unread_literal(text: str, shape: ArrayShape) -> Literal:
    """What `read_literal` returns or raises, but not before somebody asks for the value."""
    return Literal.unread(shape, partial(read_literal, shape=shape), text)


def decode_typed_literal(value: TypedLiteral | TypedLiteralTuple, text: str) -> Literal:
    """The value of a literal that says its own shape, as in `literal=s32[2] {1, 2}`; `text` is the source."""
    if isinstance(value, TypedLiteral):
        return decode_literal(text[slice(*value.span)], value.shape, value.span.start)
    elements = tuple(decode_typed_literal(element, text) for element in value.elements)
    return Literal(TupleShape(tuple(element.shape for element in elements)), elements)


def _decode(text: str, shape: Shape) -> Literal:
    if isinstance(shape, TupleShape):
        parts = _tuple_parts(text)
        if len(parts) != len(shape.elements):
            raise ValueError(f"the literal has {len(parts)} elements, not {len(shape.elements)}")
        return Literal(shape, tuple(map(_decode, parts, shape.elements)))
    if not isinstance(shape, ArrayShape):
        raise ValueError(f"{shape} has no literals")
    if shape.is_dynamic:
        raise ValueError(f"a literal cannot have the dynamic shape {shape}")
    if shape.rank and _ELIDED.fullmatch(text):
        return Literal(shape, None, elided=True) if shape.size else _empty(shape)
    return Literal(shape, _decode_array(text, shape))


def _empty(shape: ArrayShape) -> Literal:
    """An array without elements, of which nothing can be missing."""
    array = np.zeros(shape.dims, dtype_of(shape.element_type))
    array.flags.writeable = False
    return Literal(shape, array)


def _tuple_parts(text: str) -> list[str]:
    """The texts between the outermost parentheses and commas."""
    text = text.strip(_BLANKS)
    if not (text.startswith("(") and text.endswith(")")):
        raise ValueError("a tuple literal stands in parentheses")
    inner = text[1:-1]
    parts: list[str] = []
    depth = start = 0
    for found in _BRACKET.finditer(inner):
        if found[0] == ",":
            if depth == 0:
                parts.append(inner[start : found.start()])
                start = found.end()
        else:
            depth += 1 if found[0] in "({" else -1
            if depth < 0:
                raise ValueError("brackets of the literal do not match")
    last = inner[start:]
    return [*parts, last] if parts or last.strip(_BLANKS) else []


def _decode_array(text: str, shape: ArrayShape) -> npt.NDArray[Any]:
    pairs: Sequence[tuple[str, str]] | None = None
    if shape.element_type.is_complex:
        pairs = _PAIR.findall(text)
        text = _PAIR.sub(" 0 ", text)
    if text.strip(_BLANKS).startswith(",") or text.strip(_BLANKS).endswith(","):
        raise ValueError("a comma stands outside the braces of the literal")
    matched = _ARRAY.match(text)
    assert matched is not None
    if matched.end() != len(text):
        raise ValueError(f"expected a number or a brace, found {text[matched.end() :][:20].split()[0]}")
    tokens = text.translate(_NOT_ELEMENTS).split()
    if pairs is not None and not tokens.count("0") == len(tokens) == len(pairs):
        raise ValueError(f"elements of {shape.element_type} are written (real, imaginary)")
    if shape.rank and shape.size and len(tokens) == 1 and pairs is None and "{" not in text:
        # A lone number is the first element, and the others are zero: so does XLA read it.
        return _first_of_zeros(to_array(tokens, shape.element_type), shape)
    if len(tokens) > _MANY and shape.size:
        _check_nesting_of_many(text, shape)
    else:
        _check_nesting(text, shape)
    flat = (
        to_array(tokens, shape.element_type) if pairs is None else to_complex_array(pairs, shape.element_type)
    )
    array = flat.reshape(shape.dims)
    array.flags.writeable = False
    return array


def _first_of_zeros(first: npt.NDArray[Any], shape: ArrayShape) -> npt.NDArray[Any]:
    """The array of `first` and zeros, which cost nothing as long as they are not written to."""
    try:
        array = np.zeros(shape.dims, first.dtype)
    except (MemoryError, ValueError):  # ValueError: more bytes than addresses
        raise ValueError(f"a literal of {shape.size:,} elements does not fit into memory") from None
    array.flat[0] = first[0]
    array.flags.writeable = False
    return array


def _check_nesting(text: str, shape: ArrayShape) -> None:
    """Each brace level holds as many parts as its dimension says; the innermost holds elements."""
    dims, rank = shape.dims, shape.rank
    counts: list[int] = []
    wholes = 0
    for found in _BRACE_OR_ELEMENT.finditer(text):
        token = found[0]
        if token == "}":
            level = len(counts) - 1
            if level < 0:
                raise ValueError("the literal has a closing brace too many")
            if counts[level] != dims[level]:
                raise ValueError(f"a row of the literal has {counts[level]} elements, not {dims[level]}")
            counts.pop()
            continue
        if counts:
            counts[-1] += 1
        else:
            wholes += 1
        if token == "{":
            counts.append(0)
            if len(counts) > rank:
                raise ValueError(
                    f"the braces of the literal nest deeper than {shape.logical_text()} has dimensions"
                )
        elif len(counts) != rank:
            raise ValueError(f"the literal has rank {len(counts)}, not {rank}")
    if counts or wholes != 1:
        raise ValueError(f"expected one value of shape {shape.logical_text()}")


def _check_nesting_of_many(text: str, shape: ArrayShape) -> None:
    """The same for an array without empty dimensions, by counting braces before each element."""
    codes = np.frombuffer(text.encode("ascii"), np.uint8)
    opens, closes = codes == ord("{"), codes == ord("}")
    is_element = ~(opens | closes | np.isin(codes, np.frombuffer(b" \t\r\n,", np.uint8)))
    starts = np.flatnonzero(is_element & ~np.concatenate(([False], is_element[:-1])))
    if len(starts) != shape.size:
        raise ValueError(f"the literal has {len(starts)} elements, not {shape.size}")
    order = np.arange(len(starts))
    periods = [prod(shape.dims[level:]) for level in range(1, shape.rank)]
    completed = sum((order // period for period in periods), np.zeros_like(order))
    before_opens, before_closes = np.cumsum(opens)[starts], np.cumsum(closes)[starts]
    braces = codes[opens | closes | _marks(len(codes), starts)]
    has_empty = bool(np.any((braces[:-1] == ord("{")) & (braces[1:] == ord("}"))))
    levels = sum(shape.size // period for period in periods) + 1
    fits = np.array_equal(before_closes, completed) and np.array_equal(before_opens, completed + shape.rank)
    if has_empty or not fits or opens.sum() != levels or closes.sum() != levels:
        raise ValueError(f"the braces of the literal do not fit {shape.logical_text()}")


def _marks(length: int, positions: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
    marks = np.zeros(length, np.bool_)
    marks[positions] = True
    return marks
