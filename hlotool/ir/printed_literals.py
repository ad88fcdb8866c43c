"""Text of literals: nested braces, and the shortest digits that read back as the same value.

XLA: literal.cc (DenseArrayPrintHelper), util.cc (RoundTripFpToString). One deliberate difference: XLA prints
the negative zero as `-0` and reads that as +0; here it is `-0.0`, which XLA and hlotool read as it is meant.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from hlotool.ir.arrays import NAN_PAYLOAD_BITS, Array, Literal
from hlotool.ir.types import ArrayShape, ElementType, TokenShape

#: Significant digits to try in turn; 17 name any binary64 value, and so any value of a narrower type.
_DIGITS: dict[ElementType, tuple[int, ...]] = {
    ElementType.F4E2M1FN: (2, 17),
    ElementType.F6E2M3FN: (3, 17),
    ElementType.F6E3M2FN: (2, 17),
    ElementType.F8E8M0FNU: (2, 17),
    ElementType.F8E5M2: (2, 17),
    ElementType.F8E5M2FNUZ: (2, 17),
    ElementType.F8E4M3: (3, 17),
    ElementType.F8E4M3FN: (3, 17),
    ElementType.F8E4M3FNUZ: (3, 17),
    ElementType.F8E4M3B11FNUZ: (3, 17),
    ElementType.F8E3M4: (3, 17),
    ElementType.BF16: (4, 17),
    ElementType.F16: (5, 17),
    ElementType.F32: (6, 9),
    ElementType.F64: (15, 17),
}

ELIDED = "{...}"
#: Elements whose texts are made together: some megabytes.
_AT_ONCE = 1 << 16


def literal_text(literal: Literal, large: bool = True) -> str:
    """What stands between the parentheses of `constant(…)`.

    Args:
        literal: the value.
        large: whether values of more than ten elements, and tuples, are written out rather than elided.
    """
    return "".join(literal_pieces(literal, large))


def literal_pieces(literal: Literal, large: bool = True) -> Iterator[str]:
    """The same, in pieces that fit into memory where the whole may not."""
    if literal.elided or not (large or _is_small(literal)):
        yield ELIDED
    else:
        yield from _value_pieces(literal)


def typed_literal_text(literal: Literal) -> str:
    """A literal after its shape, as in `literal=f32[2]{0} {1, 2}` of custom calls."""
    if isinstance(literal.value, tuple):
        return f"( {', '.join(map(typed_literal_text, literal.value))} )"
    return f"{literal.shape} {''.join(_value_pieces(literal))}"


def _is_small(literal: Literal) -> bool:
    return isinstance(literal.shape, ArrayShape) and literal.shape.size <= 10


def _value_pieces(literal: Literal) -> Iterator[str]:
    if isinstance(literal.value, tuple):
        yield "( "
        for number, part in enumerate(literal.value):
            yield ", " if number else ""
            yield from _value_pieces(part)
        yield " )"
    elif isinstance(literal.shape, TokenShape):
        yield "token"
    elif literal.value is None or not isinstance(literal.shape, ArrayShape):
        yield ELIDED
    else:
        yield from _slice_pieces(literal.value, literal.shape.element_type, literal.value.shape, 0, 0)


def array_text(array: Array, element_type: ElementType) -> str:
    """Nested braces of exactly the array's rank; ranks over 3 say the index of each slice in a comment."""
    return "".join(_slice_pieces(array, element_type, array.shape, 0, 0))


def _slice_pieces(
    part: Array, element_type: ElementType, dims: tuple[int, ...], level: int, position: int
) -> Iterator[str]:
    """A slice of an array, of so many elements at once that their texts fit into memory.

    Args:
        part: the slice.
        element_type: of the array.
        dims: sizes of the whole array.
        level: of how many indices the slice has been given; 0 is the whole array.
        position: the last of those indices.
    """
    if part.size <= _AT_ONCE:
        yield _slice_text(_texts(part, element_type, len(dims)), dims, level, position)
    elif part.ndim == 1:
        blank = " " if len(dims) > 1 else ""
        yield "{" + blank
        for start in range(0, part.size, _AT_ONCE):
            yield ", " if start else ""
            yield ", ".join(_texts(part[start : start + _AT_ONCE], element_type, len(dims)))
        yield blank + "}"
    else:
        yield _opening(level, position, dims)
        for number, inner in enumerate(part):
            yield ", " if number else ""
            yield from _slice_pieces(inner, element_type, dims, level + 1, number)
        yield " }"


def _slice_text(texts: list[str], dims: tuple[int, ...], level: int, position: int) -> str:
    """Join `texts`, in row-major order, into the braces of a slice, innermost dimension first."""
    if not dims:
        return texts[0]
    if len(dims) == 1:
        return "{" + ", ".join(texts) + "}"
    size = dims[-1]
    blank = " " if size > 1 else ""
    rows = prod(dims[level:-1])
    groups = [f"{{{blank}{', '.join(texts[i * size : (i + 1) * size])}{blank}}}" for i in range(rows)]
    for outer in range(len(dims) - 2, level - 1, -1):
        size = dims[outer]
        groups = [
            f"{_opening(outer, i if outer > level else position, dims)}"
            f"{', '.join(groups[i * size : (i + 1) * size])} }}"
            for i in range(prod(dims[level:outer]))
        ]
    return groups[0]


def _opening(level: int, group: int, dims: tuple[int, ...]) -> str:
    """What opens slice number `group` of all slices at `level` (0 is the whole array)."""
    if len(dims) <= 3 or level == 0:
        return "{ "
    return f"{{ /*i{level - 1}={group % dims[level - 1]}*/" + (" " if dims[level] else "")


def _texts(array: Array, element_type: ElementType, rank: int) -> list[str]:
    """One text per element of an array of this rank, or of a part of it; equal elements are written once."""
    if array.size > 1:
        content = array.tobytes()
        if content == content[: array.itemsize] * array.size:
            return _texts(array.ravel()[:1], element_type, rank) * array.size
    if element_type is ElementType.PRED and rank:
        return ["1" if value else "0" for value in array.ravel().tolist()]
    return _element_texts(array, element_type)


def _element_texts(array: Array, element_type: ElementType) -> list[str]:
    """One text per element in row-major order."""
    flat = array.ravel()
    if element_type is ElementType.PRED:
        return ["true" if value else "false" for value in flat.tolist()]
    if element_type.is_integer:
        return list(map(str, flat.astype(np.int64 if element_type.is_signed else np.uint64).tolist()))
    if element_type.is_complex:
        part = element_type.real_part
        real = _float_texts(flat.real, part, in_range=True)
        imaginary = _float_texts(flat.imag, part, in_range=True)
        return [f"({r}, {i})" for r, i in zip(real, imaginary)]
    return _float_texts(flat, element_type)


def _float_texts(flat: Array, element_type: ElementType, in_range: bool = False) -> list[str]:
    """`in_range`: no text may exceed the largest finite value, which XLA demands of complex parts."""
    short, long = _DIGITS[element_type]
    with np.errstate(invalid="ignore"):
        values = flat.astype(np.float64)
    texts = [f"{value:.{short}g}" for value in values.tolist()]
    for i in np.flatnonzero(_reads_wrong(texts, values, flat.dtype)).tolist():
        texts[i] = f"{values[i]:.{long}g}"
    if in_range:
        limit = np.finfo(flat.dtype).max
        for i in np.flatnonzero(np.abs(values) == limit).tolist():
            texts[i] = f"{values[i]:.17g}"
    for i in np.flatnonzero((values == 0) & np.signbit(values)).tolist():
        texts[i] = "-0.0"
    for i in np.flatnonzero(np.isnan(values)).tolist():
        texts[i] = _nan_text(flat[i : i + 1], element_type)
    return texts


def _reads_wrong(texts: list[str], values: npt.NDArray[np.float64], dtype: np.dtype[Any]) -> Array:
    """Where `texts` do not read back as `values` when converted to `dtype`."""
    with np.errstate(over="ignore", under="ignore"):
        read = np.array([float(text) for text in texts], dtype=np.float64)
        narrowed = read.astype(dtype).astype(np.float64)
    wrong: Array = narrowed != values
    return wrong


def _nan_text(element: Array, element_type: ElementType) -> str:
    """`nan`, `-nan`, and the payload in parentheses unless it is only the quiet bit."""
    bits = int.from_bytes(element.tobytes(), "little")
    negative = element_type is not ElementType.F8E8M0FNU and bits >> (element_type.bits - 1) & 1
    text = "-nan" if negative else "nan"
    width = NAN_PAYLOAD_BITS.get(element_type)
    if width is None:
        return text
    payload = bits & ((1 << width) - 1)
    return text if payload == 1 << (width - 1) else f"{text}(0x{payload:x})"
