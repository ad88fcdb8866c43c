"""Sums, products, quotients, powers, signs."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from hlotool.facts.recognition import is_uniform, is_zero, uniform
from hlotool.ir.arrays import dtype_of
from hlotool.ir.module import Instruction
from hlotool.ir.types import ElementType
from hlotool.rewrite.passes.algebra.rules import Exactness, Op, Rewrite, is_real, rule

#: The floats that have subnormals, infinities and signed zeros like IEEE's.
_IEEE = frozenset({ElementType.F16, ElementType.BF16, ElementType.F32, ElementType.F64})


@rule("add")
def add_zero(op: Op) -> Rewrite | None:
    """x + 0 is x for integers, x + -0 is x for floats."""
    for x, zero in op.either_order():
        if op.kind.is_integer and is_zero(zero):
            return x
        if op.kind.is_floating and is_uniform(zero, -0.0):
            return x
    return None


@rule("add", exactness=Exactness.ZERO_SIGN)
def add_positive_zero(op: Op) -> Rewrite | None:
    """x + 0 is x for floats, but for x = -0, where it is 0."""
    for x, zero in op.either_order():
        if op.kind.is_floating and is_uniform(zero, 0.0):
            return x
    return None


@rule("subtract")
def subtract_zero(op: Op) -> Rewrite | None:
    """x - 0 is x, also for floats."""
    x, zero = op.operands
    return x if is_real(op.kind) and is_uniform(zero, 0.0) else None


@rule("multiply")
def multiply_one(op: Op) -> Rewrite | None:
    """x * 1 is x; not for complex numbers, whose parts are multiplied by 0 on the way."""
    for x, one in op.either_order():
        if is_real(op.kind) and is_uniform(one, 1.0):
            return x
    return None


@rule("divide")
def divide_one(op: Op) -> Rewrite | None:
    """x / 1 is x; not for complex numbers."""
    x, one = op.operands
    return x if is_real(op.kind) and is_uniform(one, 1.0) else None


@rule("multiply")
def multiply_zero(op: Op) -> Rewrite | None:
    """x * 0 is 0 for integers; floats may be infinite, NaN or negative."""
    for _, zero in op.either_order():
        if op.kind.is_integer and is_zero(zero):
            return lambda make: make.filled(0)
    return None


@rule("multiply")
def multiply_minus_one(op: Op) -> Rewrite | None:
    """x * -1 is -x for signed integers and floats."""
    for x, one in op.either_order():
        if (op.kind.is_signed or op.kind in _IEEE) and is_uniform(one, -1.0):
            return lambda make, x=x: make.op("negate", x)
    return None


@rule("subtract")
def subtract_self(op: Op) -> Rewrite | None:
    """x - x is 0 for integers."""
    left, right = op.operands
    return (lambda make: make.filled(0)) if left is right and op.kind.is_integer else None


@rule("subtract", exactness=Exactness.UNLESS_NAN)
def subtract_self_float(op: Op) -> Rewrite | None:
    """x - x is 0 for floats, unless x is infinite or NaN, where it is NaN."""
    left, right = op.operands
    return (lambda make: make.filled(0)) if left is right and op.kind in _IEEE else None


@rule("divide", exactness=Exactness.UNLESS_NAN)
def divide_self(op: Op) -> Rewrite | None:
    """x / x is 1 for floats, unless x is zero, infinite or NaN, where it is NaN."""
    left, right = op.operands
    return (lambda make: make.filled(1)) if left is right and op.kind in _IEEE else None


@rule("add")
def add_negate(op: Op) -> Rewrite | None:
    """x + (-y) is x - y."""
    for x, negated in op.either_order():
        if negated.opcode == "negate":
            return lambda make, x=x, y=negated.operands[0]: make.op("subtract", x, y)
    return None


@rule("subtract")
def subtract_negate(op: Op) -> Rewrite | None:
    """x - (-y) is x + y."""
    x, negated = op.operands
    return (lambda make: make.op("add", x, negated.operands[0])) if negated.opcode == "negate" else None


@rule("negate")
def negate_negate(op: Op) -> Rewrite | None:
    """-(-x) is x."""
    (inner,) = op.operands
    return inner.operands[0] if inner.opcode == "negate" else None


@rule("abs")
def abs_of_sign_change(op: Op) -> Rewrite | None:
    """|-x| is |x|, and ||x|| is |x|; integers wrap."""
    (inner,) = op.operands
    if inner.opcode == "abs" and inner.shape == op.shape:
        return inner
    if inner.opcode == "negate" and is_real(inner.element_type):
        return lambda make: make.op("abs", inner.operands[0])
    return None


@rule("add", "multiply")
def reassociate_constants(op: Op) -> Rewrite | None:
    """(x + c) + d is x + (c + d) for integers, which wrap; likewise for products."""
    for inner, last in op.either_order():
        if not op.kind.is_integer or inner.opcode != op.instruction.opcode or uniform(last) is None:
            continue
        for x, first in Op(inner).either_order():
            if uniform(first) is not None and uniform(x) is None:
                return _combined(op, x, first, last)
    return None


def _combined(op: Op, x: Instruction, first: Instruction, last: Instruction) -> Rewrite:
    kind = dtype_of(op.kind)
    with np.errstate(all="ignore"):
        values = [np.asarray(uniform(c), kind) for c in (first, last)]
        total = values[0] + values[1] if op.instruction.opcode == "add" else values[0] * values[1]
    return lambda make: make.op(op.instruction.opcode, x, make.filled(total))


@rule("divide")
def divide_by_power_of_two(op: Op) -> Rewrite | None:
    """x / 2^k is x * 2^-k for floats where 2^-k is a normal number."""
    x, divisor = op.operands
    reciprocal = _reciprocal(op.kind, divisor)
    if reciprocal is None or abs(np.frexp(reciprocal)[0]) != 0.5:
        return None
    return lambda make: make.op("multiply", x, make.filled(reciprocal))


@rule("divide", exactness=Exactness.ROUNDING)
def divide_by_constant(op: Op) -> Rewrite | None:
    """x / c is x * (1 / c) for floats where c and 1 / c are normal numbers."""
    x, divisor = op.operands
    reciprocal = _reciprocal(op.kind, divisor)
    return (lambda make: make.op("multiply", x, make.filled(reciprocal))) if reciprocal is not None else None


def _reciprocal(kind: ElementType, divisor: Instruction) -> float | None:
    """1 / c in f64 where both are normal numbers of the type."""
    value = uniform(divisor) if kind in _IEEE else None
    if value is None or not np.isfinite(float(value)) or float(value) == 0:
        return None
    info: Any = ml_dtypes.finfo(dtype_of(kind))  # type: ignore[no-untyped-call]
    smallest, largest = float(info.smallest_normal), float(info.max)
    number = float(value)
    normal = all(smallest <= abs(v) <= largest for v in (number, 1 / number))
    return 1 / number if normal and number != 1 else None


@rule("multiply")
def multiply_power_of_two(op: Op) -> Rewrite | None:
    """x * 2^k is x << k for integers of 8 bits and more."""
    for x, factor in op.either_order():
        exponent = _exponent(op.kind, factor)
        if exponent is not None and uniform(x) is None:
            return lambda make, x=x, k=exponent: make.op("shift-left", x, make.filled(k))
    return None


@rule("divide")
def divide_unsigned_power_of_two(op: Op) -> Rewrite | None:
    """x / 2^k is x >> k for unsigned integers."""
    x, divisor = op.operands
    exponent = _exponent(op.kind, divisor)
    if exponent is None or not op.kind.is_unsigned:
        return None
    return lambda make: make.op("shift-right-logical", x, make.filled(exponent))


@rule("remainder")
def remainder_unsigned_power_of_two(op: Op) -> Rewrite | None:
    """x mod 2^k is x & (2^k - 1) for unsigned integers."""
    x, divisor = op.operands
    exponent = _exponent(op.kind, divisor)
    if exponent is None or not op.kind.is_unsigned:
        return None
    return lambda make: make.op("and", x, make.filled((1 << exponent) - 1))


def _exponent(kind: ElementType, factor: Instruction) -> int | None:
    """k > 0 of an integer constant 2^k."""
    value = uniform(factor) if kind.is_integer and kind.bits >= 8 else None
    number = int(value) if value is not None else 0
    return number.bit_length() - 1 if number > 1 and number & (number - 1) == 0 else None


@rule("power")
def power_zero(op: Op) -> Rewrite | None:
    """x ^ 0 is 1 for floats, also for NaN."""
    _, exponent = op.operands
    return (lambda make: make.filled(1)) if op.kind in _IEEE and is_zero(exponent) else None


@rule("power")
def power_one(op: Op) -> Rewrite | None:
    """x ^ 1 is x for floats."""
    x, exponent = op.operands
    return x if op.kind in _IEEE and is_uniform(exponent, 1.0) else None


@rule("power", exactness=Exactness.ROUNDING)
def power_two(op: Op) -> Rewrite | None:
    """x ^ 2 is x * x for floats."""
    x, exponent = op.operands
    return (
        (lambda make: make.op("multiply", x, x)) if op.kind in _IEEE and is_uniform(exponent, 2.0) else None
    )


@rule("power", exactness=Exactness.ROUNDING)
def power_minus_one(op: Op) -> Rewrite | None:
    """x ^ -1 is 1 / x for floats."""
    x, exponent = op.operands
    if op.kind not in _IEEE or not is_uniform(exponent, -1.0):
        return None
    return lambda make: make.op("divide", make.filled(1), x)


@rule("divide", exactness=Exactness.ROUNDING)
def divide_by_sqrt(op: Op) -> Rewrite | None:
    """x / sqrt(y) is x * rsqrt(y) for floats."""
    x, root = op.operands
    if op.kind not in _IEEE or root.opcode != "sqrt" or "result_accuracy" in root.attributes:
        return None
    return lambda make: make.op("multiply", x, make.op("rsqrt", root.operands[0]))
