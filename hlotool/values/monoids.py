"""The identities of reductions, read off their computations."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np

from hlotool.analysis.monoids import monoid_opcodes
from hlotool.analysis.scalar_form import scalar_form
from hlotool.ir.dtypes import dtype_of, integer_limits
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.opcodes import OPCODES, Identity
from hlotool.ir.types import ElementType


def identities(reducer: Computation, count: int) -> list[Identity | None]:
    """The identity of each of `count` reductions done together; None where it is not recognised.

    Recognised are the elementwise monoids, alone or side by side, and the pair that finds an extremum and its
    position, where the position starts at 0.
    """
    form = scalar_form(reducer)
    if form is None or len(form.outputs) != count:
        return [None] * count
    extremum = _extremum(form.outputs[0]) if count > 1 else None
    if extremum is not None:
        return [extremum, *[Identity.ZERO] * (count - 1)]
    return [None if opcode is None else OPCODES[opcode].identity for opcode in monoid_opcodes(form)]


def _extremum(value: Instruction) -> Identity | None:
    """`select(accumulated > element, accumulated, element)`, however the comparison treats NaN and ties."""
    if value.opcode != "select" or value.element_type is ElementType.PRED:
        return None
    directions = set(_directions(value.operands[0], depth=4))
    if directions & {"GT", "GE"}:
        return Identity.LOWEST
    return Identity.HIGHEST if directions & {"LT", "LE"} else None


def _directions(predicate: Instruction, depth: int) -> list[str]:
    """Directions of the comparisons of floats or keys that a predicate is made of."""
    if predicate.opcode == "compare":
        return [predicate.text("direction")]
    if depth == 0:
        return []
    return [d for operand in predicate.operands for d in _directions(operand, depth - 1)]


def neutral(opcode: str, element_type: ElementType) -> Any:
    """The neutral element of a monoid, in its dtype.

    Raises:
        ValueError: `opcode` is none.
    """
    identity = OPCODES[opcode].identity
    if identity is None:
        raise ValueError(f"{opcode} has no neutral element")
    return neutral_value(element_type, identity)


def neutral_value(element_type: ElementType, identity: Identity) -> Any:
    """The neutral element in the dtype."""
    dtype = dtype_of(element_type)
    if identity in (Identity.ZERO, Identity.ONE):
        return dtype.type(int(identity is Identity.ONE))
    sign = -1 if identity is Identity.LOWEST else 1
    if not element_type.is_integer and element_type is not ElementType.PRED:
        return _infinity(dtype, sign)
    low, high = integer_limits(element_type)
    if identity is Identity.ALL_BITS and element_type.is_signed:
        return dtype.type(-1)
    return dtype.type(low if sign < 0 else high)


def _infinity(dtype: np.dtype[Any], sign: int) -> Any:
    """Infinity, or the largest finite value of types that have none."""
    infinity = np.asarray(sign * math.inf).astype(dtype)
    return infinity if np.isinf(infinity) else dtype.type(sign * float(ml_dtypes.finfo(dtype).max))  # type: ignore[no-untyped-call]
