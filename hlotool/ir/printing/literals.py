"""Text of literals: nested braces, and the shortest digits that read back as the same value.

XLA: literal.cc (DenseArrayPrintHelper), util.cc (RoundTripFpToString). One deliberate difference: XLA prints
the negative zero as `-0` and reads that as +0; here it is `-0.0`, which XLA and hlotool read as it is meant.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from hlotool.ir.dtypes import NAN_PAYLOAD_BITS, Array
from hlotool.ir.literal import Literal
from hlotool.ir.types import ArrayShape, ElementType, TokenShape

#: Significant digits to try in turn; 17 name any binary64 value, and so any value of a narrower type.
_DIGITS: dict[ElementType, tuple[int, ...]] = {
    ElementType.F4E2M1FN: (2, 17),
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


def literal_text(literal: Literal, large: bool = True) -> str:
    """What stands between the parentheses of `constant(…)`.

    Args:
        literal: the value.
        large: whether values of more than ten elements, and tuples, are written out rather than elided.
    """
    if literal.elided or not (large or _is_small(literal)):
        return ELIDED
    return _value_text(literal)


def typed_literal_text(literal: Literal) -> str:
    """A literal after its shape, as in `literal=f32[2]{0} {1, 2}` of custom calls."""
    if isinstance(literal.value, tuple):
        return f"( {', '.join(map(typed_literal_text, literal.value))} )"
    return f"{literal.shape} {_value_text(literal)}"


def _is_small(literal: Literal) -> bool:
    return isinstance(literal.shape, ArrayShape) and literal.shape.size <= 10


def _value_text(literal: Literal) -> str:
    if isinstance(literal.value, tuple):
        return f"( {', '.join(map(_value_text, literal.value))} )"
    if isinstance(literal.shape, TokenShape):
        return "token"
    if literal.value is None or not isinstance(literal.shape, ArrayShape):
        return ELIDED
    return array_text(literal.value, literal.shape.element_type)


def array_text(array: Array, element_type: ElementType) -> str:
    """Nested braces of exactly the array's rank; ranks over 3 say the index of each slice in a comment."""
    if element_type is ElementType.PRED and array.ndim:
        texts = ["1" if value else "0" for value in array.ravel().tolist()]
    else:
        texts = element_texts(array, element_type)
    if array.ndim == 0:
        return texts[0]
    if array.ndim == 1:
        return "{" + ", ".join(texts) + "}"
    return _nest(texts, array.shape)


def _nest(texts: list[str], dims: tuple[int, ...]) -> str:
    """Join `texts`, in row-major order, into braces of rank two or more, innermost dimension first."""
    rank, size = len(dims), dims[-1]
    blank = " " if size > 1 else ""
    groups = [
        f"{{{blank}{', '.join(texts[i * size : (i + 1) * size])}{blank}}}" for i in range(prod(dims[:-1]))
    ]
    for level in range(rank - 2, -1, -1):
        size = dims[level]
        groups = [
            f"{_opening(level, i, dims)}{', '.join(groups[i * size : (i + 1) * size])} }}"
            for i in range(prod(dims[:level]))
        ]
    return groups[0]


def _opening(level: int, group: int, dims: tuple[int, ...]) -> str:
    """What opens slice number `group` of all slices at `level` (0 is the whole array)."""
    if len(dims) <= 3 or level == 0:
        return "{ "
    return f"{{ /*i{level - 1}={group % dims[level - 1]}*/" + (" " if dims[level] else "")


def element_texts(array: Array, element_type: ElementType) -> list[str]:
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
