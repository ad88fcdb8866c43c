"""How far one operation may legally be off: the data behind perturbed executions.

An elementwise operation is allowed the rounding of its declared type and a number of ulps of the type that it
is computed in (f32 for narrower types, the type itself otherwise). The numbers are measured, not guessed:
`benchmarks/rounding_errors.py` compares XLA's CPU code and NumPy with the truth over the whole domain of each
function, and fails where a row does not cover both.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, log2, sqrt

import numpy as np

from hlotool.ir.dtypes import dtype_of
from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import Class
from hlotool.ir.types import ArrayShape, ElementType
from hlotool.numerics.contributions import rounding_epsilon, sum_length
from hlotool.numerics.ulp import epsilon


@dataclass(frozen=True, slots=True)
class Row:
    """What one opcode may be off by, apart from the rounding of its result.

    Attributes:
        ulps: units in the last place of the type of the computation.
        reason: why.
        f64: likewise in f64, where that is not `ulps`.
    """

    ulps: float
    reason: str
    f64: float | None = None

    def relative(self, computed: ElementType) -> float:
        """What the opcode may be off by, as a relative error of a result computed in `computed`."""
        ulps = self.f64 if self.f64 is not None and computed is ElementType.F64 else self.ulps
        return ulps * epsilon(computed)


_ROUNDED = Row(0, "IEEE 754 rounds it correctly on every processor")

#: Elementwise opcodes whose float results are not exact.
ROWS: dict[str, Row] = {
    "acos": Row(4, "XLA expands it to atan2 and a square root before it gets to code"),
    "acosh": Row(4, "XLA expands it to a logarithm and a square root before it gets to code"),
    "add": _ROUNDED,
    "asin": Row(4, "XLA expands it to atan2 and a square root before it gets to code"),
    "asinh": Row(4, "XLA expands it to logarithms before it gets to code"),
    "atan2": Row(3, "NumPy's f32 is 3.0 off, XLA's rational approximation 1.4"),
    "atanh": Row(4, "XLA expands it to logarithms before it gets to code"),
    "cbrt": Row(2, "NumPy's f32 is 1.9 off; XLA's f64 3.1", f64=3),
    "cosh": Row(4, "XLA expands it to two exponentials before it gets to code"),
    "cosine": Row(2, "NumPy's f32 is 1.4 off, XLA's polynomial 0.6"),
    "divide": Row(
        1, "correct in itself, but a constant divisor becomes a product with its rounded reciprocal"
    ),
    "erf": Row(5, "XLA's rational approximation is 5.0 off in f32, 3.0 in f64"),
    "exponential": Row(2, "NumPy's f32 is 2.3 off, XLA's polynomial 1.0"),
    "exponential-minus-one": Row(5, "XLA's two formulas are 4.8 off where they meet"),
    "log": Row(3, "NumPy's f32 is 2.8 off, XLA's polynomial 1.1"),
    "log-plus-one": Row(3, "XLA's two formulas are 2.4 off in f32, and 128 in f64 around -0.41", f64=128),
    "logistic": Row(4, "a quotient with an exponential: 3.0 off in NumPy; or half of 1 + tanh(x/2)"),
    "multiply": _ROUNDED,
    "power": Row(3, "measured 1.0; small constant exponents become products, square roots and reciprocals"),
    "remainder": Row(1, "exact in itself; XLA may expand it to a quotient and a product"),
    "rsqrt": Row(2, "1.6 off in XLA and 1.5 in NumPy, which divide by a rounded root or improve an estimate"),
    "sine": Row(2, "NumPy's f32 is 1.4 off, XLA's polynomial 0.6"),
    "sinh": Row(4, "XLA expands it to two exponentials before it gets to code"),
    "sqrt": Row(1, "correct in itself, but x · rsqrt(x) may take its place"),
    "subtract": _ROUNDED,
    "tan": Row(3, "NumPy's f32 is 3.2 off; XLA divides sine by cosine"),
    "tanh": Row(5, "XLA's rational approximation is 4.3 off in f32, 5.5 in f64"),
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
#: XLA's CPU code sums f16, and reduces bf16, in blocks of 32, and blocks of those.
_LONGEST_NARROW_SUM = 64

#: Zero bits of numbers that look exact, by the type that holds them.
ZEROS = {ElementType.F32: 4, ElementType.F64: 20}


def declared_error(instruction: Instruction, part: ArrayShape, product_unit: float = 0.0) -> Error:
    """The error of one array of a result, in its declared type; `product_unit` as for `sum_error`."""
    kind = part.element_type.real_part
    computed = ElementType.F32 if kind.is_narrow_float else kind
    own = _own_error(instruction, part, computed) + sum_error(instruction, part, product_unit)
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
    is_exact = instruction.opcode in _EXACT_WHEN_WIDE
    approximation = 0.0 if is_exact else _own_error(instruction, part, computed)
    terms = sqrt(min(sum_length(instruction, part), _LONGEST_SUM))
    relative = terms * epsilon(ElementType.F64) + approximation
    return Error(relative, ZEROS[ElementType.F64])


def _own_error(instruction: Instruction, part: ArrayShape, computed: ElementType) -> float:
    """What the operation itself may be off by.

    A power of complex numbers is exp(w log z), computed in the declared type by everybody: what the exponent
    is off by, relative to its size, the result is off by. The exponent is at most the logarithm of the
    largest number. 200,000 random powers in c64: NumPy is 2.7 ulps off for each 1 of the exponent.
    """
    own = row_of(instruction.opcode).relative(computed)
    if instruction.opcode != "power" or not part.element_type.is_complex:
        return own
    return own * log(float(np.finfo(dtype_of(computed)).max))


def sum_error(instruction: Instruction, part: ArrayShape, product_unit: float = 0.0) -> float:
    """What the order of summation adds to the error of a result, and what each term may be off by.

    Args:
        instruction: any.
        part: one array of its result.
        product_unit: one ulp at 1 of the type in which the hardware multiplies f32 where the program does not
            ask for more (`operand_precision`); 0 for f32 itself.
    """
    kind = part.element_type.real_part
    accumulator = _accumulator(instruction, kind)
    longest = _LONGEST_SUM if accumulator.bits > 16 else _LONGEST_NARROW_SUM
    length = min(sum_length(instruction, part), longest)
    own = sqrt(length) * epsilon(accumulator) if length > 1 else 0.0
    if instruction.row.opcode_class is Class.CONTRACTION:
        # What the program's `algorithm` rounds the operands to, where that is coarser than their type.
        coarser = rounding_epsilon(instruction, kind)
        unasked = product_unit if kind is ElementType.F32 and _has_default_precision(instruction) else 0.0
        return max(own, coarser if coarser > epsilon(kind) else 0.0, unasked)
    return own


def _has_default_precision(instruction: Instruction) -> bool:
    """Whether the program leaves the precision of a product to the hardware."""
    if instruction.attributes.get("algorithm"):
        return False
    return all(asked.lower() == "default" for asked in instruction.listed("operand_precision", str, ()))


def _accumulator(instruction: Instruction, kind: ElementType) -> ElementType:
    """The type that sums of `kind` are made in: of the narrow types only f16 adds in itself.

    A reduction of bf16 may do so, too, as the program says: XLA 0.10 on a CPU has a sum of 16 by 16 numbers
    9.5 ulps of bf16 off, one of 64 numbers 3.4.
    """
    adds_in_itself = kind is ElementType.F16 or (kind is ElementType.BF16 and instruction.opcode == "reduce")
    return ElementType.F32 if kind.is_narrow_float and not adds_in_itself else kind


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
