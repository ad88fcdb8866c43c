"""The text of a literal into a value: nesting and counts against the shape.

Comments may stand anywhere between elements and commas are optional, as in XLA. Large arrays are read block
by block, so that their words are never in memory all at once.

XLA: ParseDenseLiteral, ParseTupleLiteral.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from hlotool.ir.arrays import Literal, dtype_of
from hlotool.ir.types import ArrayShape, ElementType, Shape, TupleShape
from hlotool.parser.text.element_values import to_array, to_complex_array
from hlotool.parser.text.hlo_parser import parse_syntax
from hlotool.parser.text.syntax import Source, TextError, TypedLiteral, TypedLiteralTuple

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
_NOT_ELEMENTS = str.maketrans("{},\t\r\n", "      ")
_BRACKET = re.compile(r"[(){},]")

#: From so many elements on, nesting is checked by array operations.
_MANY = 1000
#: Characters of a text that are decoded at a time; what ends one may follow an element.
_BLOCK = 1 << 18
_ENDS = ",{} \n\t\r"
#: What plain numbers, infinities, NaNs and truth values are written with. Python reads of words of these
#: letters what HLO has, and the two of `_PYTHON` besides.
_PLAIN = b"0123456789+-.eE{}, \t\r\ninfatruels"
_PYTHON = (" .", " +")
_PLAIN_FLOAT = re.compile(r"-?[0-9]{1,12}(?:\.[0-9]{1,12})?(?:e[+\-][0-9]{1,3})?|-?inf|nan")
_PLAIN_WORDS = frozenset(("true", "false", "inf", "-inf", "nan"))
#: What numbers of a type are written like, and the largest: what rounds to infinity is none.
_PLAIN_SCALARS: Mapping[ElementType, tuple[re.Pattern[str], float]] = {
    ElementType.PRED: (re.compile("true|false"), 1),
    ElementType.S32: (re.compile("-?[0-9]{1,10}"), 2**31 - 1),
    ElementType.S64: (re.compile("-?[0-9]{1,18}"), 2**63),
    ElementType.U32: (re.compile("[0-9]{1,10}"), 2**32 - 1),
    ElementType.U64: (re.compile("[0-9]{1,18}"), 2**63),
    ElementType.F16: (_PLAIN_FLOAT, 65504),
    ElementType.BF16: (_PLAIN_FLOAT, 3.3895e38),
    ElementType.F32: (_PLAIN_FLOAT, 3.4028235e38),
    ElementType.F64: (_PLAIN_FLOAT, 1e308),
}
#: By code of a character: part of an element, or which brace.
_ELEMENT, _OPEN, _CLOSE = 1, 2, 3
_CLASSES = np.full(256, _ELEMENT, np.uint8)
_CLASSES[list(b", \t\r\n")] = 0
_CLASSES[list(b"{}")] = _OPEN, _CLOSE


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


def is_plain(text: str, shape: ArrayShape) -> bool:
    """Whether a text is, as one sees without decoding it, one element in the range of its type."""
    if shape.element_type not in _PLAIN_SCALARS or shape.size != 1 or shape.dynamic:
        return False
    number, rank = text.strip("{ }"), shape.rank
    pattern, largest = _PLAIN_SCALARS[shape.element_type]
    if pattern.fullmatch(number) is None or (number not in _PLAIN_WORDS and abs(float(number)) > largest):
        return False
    return text == (f"{'{ ' * (rank - 1)}{{{number}}}{' }' * (rank - 1)}" if rank else number)


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
    # An element takes a character at least: what has more of them is no reason to ask for their memory.
    is_long = len(text) > _MANY and 0 < shape.size <= len(text)
    array = _plain_array(text, shape) if is_long and shape.rank else None
    if array is None:
        array = _any_array(text, shape)
    array.flags.writeable = False
    return array


def _plain_array(text: str, shape: ArrayShape) -> npt.NDArray[Any] | None:
    """The array of a text of plain numbers that fits the shape; None for any other text."""
    if shape.element_type.is_complex:
        return None
    flat = np.empty(shape.size, dtype_of(shape.element_type))
    braces = _Braces()
    count = 0
    for block in _blocks(text):
        codes = block.encode()
        words = f" {block.translate(_NOT_ELEMENTS)}"
        if codes.translate(None, _PLAIN) or any(word in words for word in _PYTHON):
            return None
        tokens = words.split()
        braces.add(codes, count)
        end = count + len(tokens)
        try:
            flat[count:end] = to_array(tokens, shape.element_type)
        except ValueError:
            return None
        count = end
    return flat.reshape(shape.dims) if count == shape.size and braces.fit(shape) else None


def _blocks(text: str) -> Iterator[str]:
    """A text in parts that end between elements."""
    start = 0
    while start < len(text):
        end = start + _BLOCK
        if end < len(text):
            end = next((at for c in _ENDS if (at := text.rfind(c, start + 1, end)) > 0), len(text))
        yield text[start:end]
        start = end


def _any_array(text: str, shape: ArrayShape) -> npt.NDArray[Any]:
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
        _check_nesting_of_many(text, len(tokens), shape)
    else:
        _check_nesting(text, shape)
    flat = (
        to_array(tokens, shape.element_type) if pairs is None else to_complex_array(pairs, shape.element_type)
    )
    return flat.reshape(shape.dims)


def _first_of_zeros(first: npt.NDArray[Any], shape: ArrayShape) -> npt.NDArray[Any]:
    """The array of `first` and zeros, which cost nothing as long as they are not written to."""
    try:
        array = np.zeros(shape.dims, first.dtype)
    except (MemoryError, ValueError):  # ValueError: more bytes than addresses
        raise ValueError(f"a literal of {shape.size:,} elements does not fit into memory") from None
    array.flat[0] = first[0]
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


def _check_nesting_of_many(text: str, count: int, shape: ArrayShape) -> None:
    """The same for `count` elements of an array without empty dimensions."""
    if count != shape.size:
        raise ValueError(f"the literal has {count} elements, not {shape.size}")
    braces = _Braces()
    braces.add(text.encode(), 0)
    if not braces.fit(shape):
        raise ValueError(f"the braces of the literal do not fit {shape.logical_text()}")


class _Braces:
    """The braces of a text, and how many elements stand before each."""

    def __init__(self) -> None:
        self._kinds: list[npt.NDArray[np.uint8]] = []
        self._places: list[npt.NDArray[np.int64]] = []

    def add(self, codes: bytes, count: int) -> None:
        """Further text, after `count` elements."""
        kinds = _CLASSES[np.frombuffer(codes, np.uint8)]
        is_element = kinds == _ELEMENT
        starts = is_element.copy()
        starts[1:] &= ~is_element[:-1]
        found = np.flatnonzero(kinds > _ELEMENT)
        self._kinds.append(kinds[found])
        self._places.append(count + np.cumsum(starts)[found])

    def fit(self, shape: ArrayShape) -> bool:
        """Whether they are those of an array of `shape`, none of whose dimensions is 0."""
        row_ends = np.arange(0, shape.size + 1, shape.dims[-1])
        periods = [prod(shape.dims[level:]) for level in range(1, shape.rank)]
        between = sum((row_ends % period == 0 for period in periods), np.zeros(len(row_ends), np.int64))
        closed, opened = between.copy(), between
        closed[[0, -1]], opened[[0, -1]] = (0, shape.rank), (shape.rank, 0)
        times = np.stack([closed, opened], 1).ravel()
        kinds = np.repeat(np.tile(np.array([_CLOSE, _OPEN], np.uint8), len(row_ends)), times)
        places = np.repeat(np.repeat(row_ends, 2), times)
        return np.array_equal(np.concatenate(self._kinds), kinds) and np.array_equal(
            np.concatenate(self._places), places
        )
