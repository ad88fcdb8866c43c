"""The types of PTX instructions: how the bits of a register are values, and values bits.

Integers are NumPy integers of their width. f16 and bf16 are computed with in f32, whose results round to the
same as exact ones for +, -, × and ÷ (24 ≥ 2 × 11 + 2 bits); packed types `x2` are arrays of shape (2,
threads).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from hlotool.backends.gpu_ptx.arena import UNSIGNED

#: Values of threads: an array of one element for each thread, or a scalar where all have the same.
Values: TypeAlias = Any

SIGNED = {8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}
#: NaN as arithmetic makes it (PTX ISA, "Floating Point Instructions").
CANONICAL_NAN = {"f16": 0x7FFF, "bf16": 0x7FFF, "f32": 0x7FFFFFFF, "f64": 0x7FF8000000000000}


@dataclass(frozen=True, slots=True)
class Type:
    """A type as the text names it.

    Attributes:
        kind: `p` (predicate), `b`, `u`, `s` or `f`.
        bits: of the whole, 1 for predicates.
        element: name of the type of one lane of a packed type; else its own.
        lanes: 1, 2 or 4.
    """

    name: str
    kind: str
    bits: int
    element: str
    lanes: int = 1

    @property
    def unsigned(self) -> Any:
        """The dtype of its bits."""
        return np.bool_ if self.bits == 1 else UNSIGNED[self.bits]

    def decode(self, raw: Values) -> Values:
        """The values whose bits are `raw`."""
        if self.lanes > 1:
            raw = np.ascontiguousarray(raw).reshape(-1, 1).view(UNSIGNED[self.bits // self.lanes]).T
        if self.kind == "s":
            return raw.view(SIGNED[self.bits // self.lanes])
        return _DECODE[self.element](raw) if self.kind == "f" else raw

    def encode(self, values: Values) -> Values:
        """The bits of `values`; floats are rounded to nearest, NaN becomes the one that arithmetic makes."""
        bits = values
        if self.kind == "s":
            bits = values.view(UNSIGNED[self.bits // self.lanes])
        elif self.kind == "f":
            bits = _ENCODE[self.element](values)
            nan = np.not_equal(values, values)
            if nan.any():
                bits = np.where(nan, bits.dtype.type(CANONICAL_NAN[self.element]), bits)
        if self.lanes > 1:
            bits = np.ascontiguousarray(bits.T).view(UNSIGNED[self.bits])[:, 0]
            return bits if len(bits) > 1 else bits[0]
        return bits


def _bf16_bits(values: Values) -> Values:
    return values.astype(ml_dtypes.bfloat16).view(np.uint16)


_DECODE: dict[str, Any] = {
    "f16": lambda raw: raw.view(np.float16).astype(np.float32),
    "bf16": lambda raw: (raw.astype(np.uint32) << np.uint32(16)).view(np.float32),
    "f32": lambda raw: raw.view(np.float32),
    "f64": lambda raw: raw.view(np.float64),
}
_ENCODE: dict[str, Any] = {
    "f16": lambda values: values.astype(np.float16).view(np.uint16),
    "bf16": _bf16_bits,
    "f32": lambda values: values.view(np.uint32),
    "f64": lambda values: values.view(np.uint64),
}

_NAME = re.compile(r"(?:(b|u|s|f|bf)(8|16|32|64|128)(x2|x4)?|pred|tf32|e4m3x2|e5m2x2|e4m3|e5m2|s4|u4|b1)$")


@cache
def is_type(word: str) -> bool:
    """A modifier names a type."""
    return _NAME.match(word) is not None


@cache
def type_of(word: str) -> Type:
    """The type that a modifier names.

    Raises:
        KeyError: it is none that registers are computed with.
    """
    if word == "pred":
        return Type(word, "p", 1, word)
    found = _NAME.match(word)
    if found is None or found[1] is None or (found[1] == "f" and found[2] == "8") or found[2] == "128":
        raise KeyError(word)
    lanes = int(found[3][1:]) if found[3] else 1
    kind = "f" if found[1] == "bf" else found[1]
    return Type(word, kind, int(found[2]) * lanes, found[1] + found[2], lanes)
