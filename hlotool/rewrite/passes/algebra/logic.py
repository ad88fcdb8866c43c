"""Laws of comparisons, choices and logic, and of conversions between types."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from hlotool.facts.recognition import is_uniform, is_zero, uniform
from hlotool.ir.arrays import dtype_of, integer_limits
from hlotool.ir.attributes import default_comparison
from hlotool.ir.module import Instruction
from hlotool.ir.types import ElementType
from hlotool.rewrite.passes.algebra.rules import Exactness, Op, Rewrite, rule

_INVERTED = {"EQ": "NE", "NE": "EQ", "LT": "GE", "GE": "LT", "GT": "LE", "LE": "GT"}
#: Comparisons that hold for equal values.
_REFLEXIVE = frozenset({"EQ", "LE", "GE"})
_BITS = (ElementType.S1, ElementType.U1)


@rule("not")
def not_not(op: Op) -> Rewrite | None:
    """not(not(x)) is x."""
    (inner,) = op.operands
    return inner.operands[0] if inner.opcode == "not" else None


@rule("and", "or", "maximum", "minimum")
def idempotent(op: Op) -> Rewrite | None:
    """x & x, x | x, max(x, x) and min(x, x) are x."""
    left, right = op.operands
    return left if left is right and not op.kind.is_complex else None


@rule("xor")
def xor_self(op: Op) -> Rewrite | None:
    """x ^ x is 0."""
    left, right = op.operands
    return (lambda make: make.filled(0)) if left is right else None


@rule("and")
def and_constant(op: Op) -> Rewrite | None:
    """x & 0 is 0, x & ~0 is x."""
    for x, other in op.either_order():
        if is_zero(other):
            return lambda make: make.filled(0)
        if _is_ones(op.kind, other):
            return x
    return None


@rule("or")
def or_constant(op: Op) -> Rewrite | None:
    """x | 0 is x, x | ~0 is ~0."""
    for x, other in op.either_order():
        if is_zero(other):
            return x
        if _is_ones(op.kind, other):
            return other
    return None


@rule("xor")
def xor_constant(op: Op) -> Rewrite | None:
    """x ^ 0 is x, x ^ ~0 is not(x)."""
    for x, other in op.either_order():
        if is_zero(other):
            return x
        if _is_ones(op.kind, other):
            return lambda make, x=x: make.op("not", x)
    return None


def _is_ones(kind: ElementType, value: Instruction) -> bool:
    """Whether all bits of all elements are set."""
    found = uniform(value)
    if found is None or kind in _BITS or not (kind.is_integer or kind is ElementType.PRED):
        return False
    low, high = integer_limits(kind)
    return int(found) == (-1 if low < 0 else high)


@rule("maximum", "minimum")
def extreme_of_limit(op: Op) -> Rewrite | None:
    """max(x, lowest value) and min(x, highest value) are x; NaN stays NaN."""
    for x, limit in op.either_order():
        value = uniform(limit)
        if value is None or op.kind.is_complex:
            continue
        lowest, highest = _limits(op.kind)
        if float(value) == (lowest if op.instruction.opcode == "maximum" else highest):
            return x
    return None


def _limits(kind: ElementType) -> tuple[float, float]:
    if kind.is_floating:
        return float("-inf"), float("inf")
    low, high = integer_limits(kind)
    # Numbers that f64 cannot distinguish from their neighbours are not compared.
    return (low, high) if kind.bits < 64 else (float("nan"), float("nan"))


@rule("select")
def select_same(op: Op) -> Rewrite | None:
    """select(p, x, x) is x."""
    _, first, second = op.operands
    return first if first is second else None


@rule("select")
def select_constant(op: Op) -> Rewrite | None:
    """select(true, x, y) is x, select(false, x, y) is y."""
    predicate, first, second = op.operands
    value = uniform(predicate)
    return None if value is None else (first if bool(value) else second)


@rule("select")
def select_not(op: Op) -> Rewrite | None:
    """select(not(p), x, y) is select(p, y, x)."""
    predicate, first, second = op.operands
    if predicate.opcode != "not":
        return None
    return lambda make: make.op("select", predicate.operands[0], second, first)


@rule("select")
def select_predicates(op: Op) -> Rewrite | None:
    """select(p, true, false) is p, select(p, false, true) is not(p)."""
    predicate, first, second = op.operands
    if op.kind is not ElementType.PRED or predicate.dims != op.shape.dims:
        return None
    if is_uniform(first, 1) and is_uniform(second, 0):
        return predicate
    if is_uniform(first, 0) and is_uniform(second, 1):
        return lambda make: make.op("not", predicate)
    return None


def _comparison(op: Op) -> tuple[str, bool]:
    """Direction, and whether NaN compares unequal to itself."""
    kind = op.operands[0].element_type
    order = op.instruction.text("type", default_comparison(kind))
    partial = order == "FLOAT" and kind.is_inexact
    return op.instruction.text("direction"), partial


@rule("compare")
def compare_self(op: Op) -> Rewrite | None:
    """x == x is true and x != x is false where there is no NaN; x < x is false always."""
    left, right = op.operands
    direction, partial = _comparison(op)
    if left is not right or (partial and direction in (*_REFLEXIVE, "NE")):
        return None
    return lambda make: make.filled(direction in _REFLEXIVE)


@rule("compare", exactness=Exactness.UNLESS_NAN)
def compare_self_float(op: Op) -> Rewrite | None:
    """x == x is true and x != x is false for floats, unless x is NaN."""
    left, right = op.operands
    direction, partial = _comparison(op)
    return (lambda make: make.filled(direction in _REFLEXIVE)) if left is right and partial else None


@rule("not")
def not_compare(op: Op) -> Rewrite | None:
    """not(x < y) is x >= y where there is no NaN; not(x == y) is x != y always."""
    (inner,) = op.operands
    return _inverted(inner, allow_partial=False) if inner.opcode == "compare" else None


@rule("not", exactness=Exactness.UNLESS_NAN)
def not_compare_float(op: Op) -> Rewrite | None:
    """not(x < y) is x >= y for floats, unless one is NaN."""
    (inner,) = op.operands
    return _inverted(inner, allow_partial=True) if inner.opcode == "compare" else None


def _inverted(inner: Instruction, allow_partial: bool) -> Rewrite | None:
    direction, partial = _comparison(Op(inner))
    if partial and direction not in ("EQ", "NE") and not allow_partial:
        return None
    changed = {**inner.attributes, "direction": _INVERTED[direction]}
    return lambda make: make.op("compare", *inner.operands, **changed)


@rule("compare")
def compare_unsigned_zero(op: Op) -> Rewrite | None:
    """x < 0 is false and x >= 0 is true for unsigned integers."""
    left, right = op.operands
    direction, _ = _comparison(op)
    if not left.element_type.is_unsigned or op.instruction.text("type", "") == "SIGNED":
        return None
    if is_zero(right) and direction in ("LT", "GE"):
        return lambda make: make.filled(direction == "GE")
    if is_zero(left) and direction in ("GT", "LE"):
        return lambda make: make.filled(direction == "LE")
    return None


@rule("compare")
def compare_predicate(op: Op) -> Rewrite | None:
    """p == true and p != false are p; p == false and p != true are not(p)."""
    direction, _ = _comparison(op)
    for predicate, constant in op.either_order():
        value = uniform(constant)
        is_predicate = predicate.element_type is ElementType.PRED
        if value is None or not is_predicate or direction not in ("EQ", "NE"):
            continue
        if bool(value) == (direction == "EQ"):
            return predicate
        return lambda make, p=predicate: make.op("not", p)
    return None


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
