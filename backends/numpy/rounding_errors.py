"""How far one operation may legally be off: the data behind perturbed executions.

An elementwise operation is allowed the rounding of its declared type, half a unit in the last place, plus
`ulps` of the type it is computed in (f32 for narrower types, the type itself otherwise). The numbers are not
guessed: `benchmarks/rounding_errors.py` measures what XLA's CPU code and NumPy do on the whole range of each
function, and a row covers the larger of the two with little to spare.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log2, sqrt

import numpy as np

from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import Class
from hlotool.ir.types import ArrayShape, ElementType
from hlotool.numerics.contributions import sum_length
from hlotool.numerics.ulp import epsilon


@dataclass(frozen=True, slots=True)
class Row:
    """What one opcode may be off by, apart from the rounding of its result.

    Attributes:
        ulps: units in the last place of the type of the computation.
        reason: why.
    """

    ulps: float
    reason: str


_ROUNDED = Row(0, "IEEE 754 rounds it correctly on every processor")

#: Elementwise opcodes whose float results are not exact.
ROWS: dict[str, Row] = {
    "acos": Row(4, "no instruction: XLA expands it to atan2 of a root"),
    "acosh": Row(4, "no instruction: XLA expands it to a logarithm of a root"),
    "add": _ROUNDED,
    "asin": Row(4, "no instruction: XLA expands it to atan2 of a root"),
    "asinh": Row(4, "no instruction: XLA expands it to logarithms"),
    "atan2": Row(4, "a rational approximation per octant"),
    "atanh": Row(4, "no instruction: XLA expands it to logarithms"),
    "cbrt": Row(2, "a library function"),
    "cosh": Row(4, "two exponentials, added"),
    "cosine": Row(4, "a polynomial after reducing the argument"),
    "divide": Row(1, "by a constant: multiplied by its rounded reciprocal"),
    "erf": Row(4, "a rational approximation"),
    "exponential": Row(2, "a polynomial times a power of two"),
    "exponential-minus-one": Row(3, "two formulas that meet near zero"),
    "log": Row(2, "a polynomial of the mantissa"),
    "log-plus-one": Row(3, "two formulas that meet near zero"),
    "logistic": Row(4, "an exponential, a sum and a quotient, or a tangens hyperbolicus"),
    "multiply": _ROUNDED,
    "power": Row(4, "an exponential of a logarithm, or repeated products"),
    "remainder": Row(1, "exact in itself, but XLA may expand it to a quotient"),
    "rsqrt": Row(2, "an estimate improved by Newton steps, or the reciprocal of a root"),
    "sine": Row(4, "a polynomial after reducing the argument"),
    "sinh": Row(4, "two exponentials, subtracted"),
    "sqrt": Row(1, "correct, but x · rsqrt(x) may take its place"),
    "subtract": _ROUNDED,
    "tan": Row(5, "sine over cosine"),
    "tanh": Row(5, "a rational approximation"),
}

#: Everything else that computes: sums and library routines, whose length decides (`sums`).
DEFAULT = Row(1, "the last operation of several")

#: Rows that speak of one operation in place of another one, which f64 does not show.
_EXACT_WHEN_WIDE = frozenset({"divide", "remainder", "sqrt"})

_SAME_VALUES = frozenset({"bitcast", "broadcast", "convert", "copy", "reshape"})


def row_of(opcode: str) -> Row:
    """The row of an opcode."""
    return ROWS.get(opcode, DEFAULT)


@dataclass(frozen=True, slots=True)
class Error:
    """What a result may be off by.

    Attributes:
        relative: largest relative error.
        zeros: a number whose last so many bits are zero is exact in every execution; 0: none is.
    """

    relative: float
    zeros: int


#: No error.
EXACT = Error(0.0, 0)


#: No backend adds more terms than this into one accumulator.
_LONGEST_SUM = 4096

#: Zero bits of numbers that look exact, by the type that holds them.
ZEROS = {ElementType.F32: 4, ElementType.F64: 20}


def declared_error(instruction: Instruction, part: ArrayShape) -> Error:
    """The error of one array of a result, in its declared type."""
    kind = part.element_type.real_part
    computed = ElementType.F32 if kind.is_narrow_float else kind
    own = row_of(instruction.opcode).ulps * epsilon(computed) + sum_error(instruction, part)
    zeros = 0 if _is_reciprocal(instruction) else ZEROS[computed]
    return Error(epsilon(kind) + own, zeros)


def wide_error(instruction: Instruction, part: ArrayShape, is_uncertain: bool) -> Error:
    """The error of one array of a result that is computed in f64.

    Approximations remain those of the declared type, as do values that a compiler rounds in it
    (`is_uncertain`) and what a custom call returns.
    """
    kind = part.element_type.real_part
    if is_uncertain or instruction.opcode == "custom-call":
        error = declared_error(instruction, part)
        digits = 1 - round(log2(epsilon(kind)))
        return Error(error.relative, 0 if _is_reciprocal(instruction) else 52 - digits // 2)
    computed = ElementType.F32 if kind.is_narrow_float else kind
    approximation = 0.0 if instruction.opcode in _EXACT_WHEN_WIDE else row_of(instruction.opcode).ulps
    terms = sqrt(min(sum_length(instruction, part), _LONGEST_SUM))
    relative = terms * epsilon(ElementType.F64) + approximation * epsilon(computed)
    return Error(relative, ZEROS[ElementType.F64])


def sum_error(instruction: Instruction, part: ArrayShape) -> float:
    """What the order of summation adds to the error of a result, and what each term may be off by."""
    length = min(sum_length(instruction, part), _LONGEST_SUM)
    if length == 1:
        return 0.0
    return sqrt(length) * epsilon(_accumulator(instruction, part.element_type.real_part))


def _accumulator(instruction: Instruction, kind: ElementType) -> ElementType:
    """The type that sums of `kind` are made in: only f16 adds in itself, and only outside of products."""
    if kind.is_narrow_float and (
        kind is not ElementType.F16 or instruction.row.opcode_class is Class.CONTRACTION
    ):
        return ElementType.F32
    return kind


def _is_reciprocal(instruction: Instruction) -> bool:
    """A quotient whose divisor is known and no power of two: XLA multiplies by the rounded reciprocal."""
    if instruction.opcode != "divide":
        return False
    divisor = instruction.operands[1]
    while divisor.opcode in _SAME_VALUES:
        divisor = divisor.operands[0]
    if divisor.literal is None or not isinstance(divisor.literal.value, np.ndarray):
        return False
    value = divisor.literal.value
    with np.errstate(all="ignore"):
        magnitudes = np.abs(value) if value.dtype.kind == "c" else np.abs(value.astype(np.float64))
        mantissas, _ = np.frexp(magnitudes)
    return bool(np.any(mantissas != 0.5))
