"""Conversions between element types, complex numbers and their parts."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from hlotool.ir.dtypes import dtype_of, integer_limits
from hlotool.ir.types import ElementType
from hlotool.passes.algebra.rules import Op, Rewrite, rule


@rule("convert", "bitcast-convert")
def convert_to_itself(op: Op) -> Rewrite | None:
    """A conversion to the type that it is already."""
    (x,) = op.operands
    return x if x.shape == op.shape else None


@rule("convert")
def convert_convert(op: Op) -> Rewrite | None:
    """T to U to V is T to V where U holds every value of T, and V is no integer that U rounds for."""
    (inner,) = op.operands
    if inner.opcode != "convert":
        return None
    (x,) = inner.operands
    first, middle, last = (i.element_type for i in (x, inner, op.instruction))
    mixes = first.is_integer and middle.is_floating and not last.is_floating
    if mixes or not holds_all(middle, first):
        return None
    if first is last and x.shape == op.shape:
        return x
    return lambda make: make.op("convert", x)


def holds_all(wide: ElementType, narrow: ElementType) -> bool:
    """Whether every value of `narrow` is one of `wide`."""
    if wide is narrow:
        return True
    if narrow.is_integer and wide.is_integer:
        low, high = integer_limits(narrow)
        lowest, highest = integer_limits(wide)
        return lowest <= low and high <= highest
    if narrow.is_integer and wide.is_floating:
        return (
            narrow.bits - narrow.is_signed <= int(_info(wide).nmant) + 1
            and int(_info(wide).maxexp) > narrow.bits
        )
    if not (narrow.is_floating and wide.is_floating):
        return False
    a, b = _info(wide), _info(narrow)
    # An f32 holds all numbers of the narrow types, and what is special in them.
    return wide.bits >= 32 and a.nmant >= b.nmant and a.maxexp >= b.maxexp


def _info(kind: ElementType) -> Any:
    return (np.finfo if kind.bits >= 32 else ml_dtypes.finfo)(dtype_of(kind))


@rule("bitcast-convert")
def bitcast_convert_back(op: Op) -> Rewrite | None:
    """The bits of x as another type, as the first type again, are x."""
    (inner,) = op.operands
    if inner.opcode != "bitcast-convert" or inner.operands[0].shape != op.shape:
        return None
    return inner.operands[0]


@rule("real")
def real_of_complex(op: Op) -> Rewrite | None:
    """real(complex(x, y)) is x."""
    (inner,) = op.operands
    return inner.operands[0] if inner.opcode == "complex" else None


@rule("imag")
def imag_of_complex(op: Op) -> Rewrite | None:
    """imag(complex(x, y)) is y."""
    (inner,) = op.operands
    return inner.operands[1] if inner.opcode == "complex" else None


@rule("complex")
def complex_of_parts(op: Op) -> Rewrite | None:
    """complex(real(z), imag(z)) is z."""
    real, imag = op.operands
    if (real.opcode, imag.opcode) != ("real", "imag") or real.operands[0] is not imag.operands[0]:
        return None
    return real.operands[0] if real.operands[0].shape == op.shape else None
