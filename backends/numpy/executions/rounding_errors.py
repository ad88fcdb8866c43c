"""How far one operation may legally be off: the data behind perturbed executions.

An elementwise operation is allowed the rounding of its declared type and a number of ulps of the type that it
is computed in (f32 for narrower types, the type itself otherwise). The numbers are measured, not guessed:
`benchmarks/freedoms/rounding_errors.py` compares XLA's CPU code and NumPy with the truth over the
whole domain of each function, and fails where a row does not cover both.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log2, sqrt

import numpy as np

from hlotool.facts.float_order import digits_of, epsilon
from hlotool.facts.result_facts import rounding_epsilon, sum_length
from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import Class, Trait, opcodes_with
from hlotool.ir.types import ArrayShape, ElementType


@dataclass(frozen=True, slots=True)
class Row:
    """What one opcode may be off by, apart from the rounding of its result.

    Attributes:
        ulps: units in the last place of the type of the computation.
        reason: why.
        f64: likewise in f64, where that is not `ulps`.
        f16: units in the last place of f16, beyond the one that any result of f16 is allowed, where XLA
            expands the opcode to operations that are each rounded to f16.
    """

    ulps: float
    reason: str
    f64: float | None = None
    f16: float = 0.0

    def relative(self, kind: ElementType) -> float:
        """What the opcode may be off by, as a relative error of a result of the real type `kind`."""
        computed = ElementType.F32 if kind.is_narrow_float else kind
        ulps = self.f64 if self.f64 is not None and computed is ElementType.F64 else self.ulps
        own = ulps * epsilon(computed)
        return max(own, self.f16 * epsilon(kind)) if kind is ElementType.F16 else own


_ROUNDED = Row(0, "IEEE 754 rounds it correctly on every processor")

#: Elementwise opcodes whose float results are not exact.
ROWS: dict[str, Row] = {
    "acos": Row(4, "XLA expands it to atan2 and a square root before it gets to code"),
    "acosh": Row(4, "XLA expands it to a logarithm and a square root before it gets to code", f16=1),
    "add": _ROUNDED,
    "asin": Row(4, "XLA expands it to atan2 and a square root before it gets to code"),
    "asinh": Row(4, "XLA expands it to logarithms before it gets to code"),
    "atan2": Row(3, "NumPy's f32 is 3.0 off, XLA's rational approximation 1.4"),
    "atanh": Row(4, "XLA expands it to logarithms before it gets to code"),
    "cbrt": Row(2, "NumPy's f32 is 1.9 off, XLA's f64 3.1; jaxlib 0.6 is 2 off in f16", f64=3, f16=1),
    "cosh": Row(4, "XLA expands it to two exponentials before it gets to code"),
    "cosine": Row(2, "NumPy's f32 is 1.4 off, XLA's polynomial 0.6"),
    "divide": Row(
        1, "correct in itself, but a constant divisor becomes a product with its rounded reciprocal"
    ),
    "erf": Row(5, "XLA's rational approximation is 5.0 off in f32, 3.0 in f64"),
    "exponential": Row(2, "NumPy's f32 is 2.3 off, XLA's polynomial 1.0"),
    "exponential-minus-one": Row(5, "XLA's two formulas are 4.8 off where they meet", f16=1),
    "log": Row(3, "NumPy's f32 is 2.8 off, XLA's polynomial 1.1"),
    "log-plus-one": Row(3, "XLA's two formulas are 2.4 off in f32, and 128 in f64 around -0.41", f64=128),
    "logistic": Row(4, "a quotient with an exponential: 3.0 off in NumPy; or half of 1 + tanh(x/2)", f16=1),
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

#: Opcodes whose results are exact for whole numbers, squares and the like.
_EXACT_FOR_MANY = frozenset({"add", "divide", "multiply", "power", "remainder", "rsqrt", "sqrt", "subtract"})

#: Opcodes whose results are exact nowhere but at 0: XLA's cube root of 64 in f64 is not 4, nor is it in any
#: type in jaxlib 0.4 and 0.6.
_EXACT_NOWHERE = frozenset({"cbrt"})

#: Opcodes that divide on their way, and take roots: whole numbers come out of that no more exactly than
#: others, and whether a pivot is zero, or what is below the root negative, is for the last bit to say.
_OF_NO_WHOLE_NUMBERS = frozenset({"cholesky", "triangular-solve"})

#: They come as close to ±1 as their type can tell, and never get there.
SATURATING = opcodes_with(Trait.SATURATES)

#: Everything else that computes: sums and library routines, whose length decides (`sums`).
DEFAULT = Row(1, "the last operation of several")

#: Rows that speak of one operation in place of another one, which f64 does not show.
_EXACT_WHEN_WIDE = frozenset({"divide", "remainder", "sqrt"})

_SAME_VALUES = opcodes_with(Trait.REGROUPS) | {"convert"}


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
#: XLA's CPU code makes sums in a narrow type in blocks of 32, and blocks of those.
_LONGEST_NARROW_SUM = 64

#: Zero bits of numbers that look exact, by the type that holds them.
ZEROS = {ElementType.F32: 4, ElementType.F64: 20}
#: The same of functions that are exact at a place or two, where they are 0, ½ or 1: 1 - tanh(x) is made of
#: the last bits of numbers close to 1, of which every sixteenth has four zeros.
_ZEROS_OF_FUNCTIONS = {ElementType.F32: 20, ElementType.F64: 48}


def declared_error(instruction: Instruction, part: ArrayShape, product_unit: float = 0.0) -> Error:
    """The error of one array of a result, in its declared type; `product_unit` as for `sum_error`."""
    kind = part.element_type.real_part
    computed = ElementType.F32 if kind.is_narrow_float else kind
    own = row_of(instruction.opcode).relative(kind) + sum_error(instruction, part, product_unit)
    is_function = instruction.opcode in ROWS.keys() - _EXACT_FOR_MANY
    zeros = (_ZEROS_OF_FUNCTIONS if is_function else ZEROS)[computed]
    if unit := _unasked_unit(instruction, kind, product_unit):
        zeros = max(zeros, _zeros_in(unit))
    return Error(epsilon(kind) + own, 0 if _is_nowhere_exact(instruction) else zeros)


def wide_error(instruction: Instruction, part: ArrayShape, is_uncertain: bool) -> Error:
    """The error of one array of a result that is computed in f64.

    Approximations remain those of the declared type, as do values that a compiler rounds in it
    (`is_uncertain`).
    """
    kind = part.element_type.real_part
    if is_uncertain:
        error = declared_error(instruction, part)
        return Error(error.relative, 0 if _is_nowhere_exact(instruction) else 52 - digits_of(kind) // 2)
    computed = ElementType.F32 if kind.is_narrow_float else kind
    is_exact = instruction.opcode in _EXACT_WHEN_WIDE
    approximation = 0.0 if is_exact else row_of(instruction.opcode).relative(computed)
    terms = sqrt(min(sum_length(instruction, part), _LONGEST_SUM))
    relative = terms * epsilon(ElementType.F64) + approximation
    return Error(relative, 0 if instruction.opcode in _EXACT_NOWHERE else ZEROS[ElementType.F64])


def sum_error(instruction: Instruction, part: ArrayShape, product_unit: float = 0.0) -> float:
    """What the order of summation adds to the error of a result, and what each term may be off by.

    Args:
        instruction: any.
        part: one array of its result.
        product_unit: one ulp at 1 of the type in which the hardware multiplies f32 where the program does not
            ask for more (`operand_precision`); 0 for f32 itself.
    """
    kind = part.element_type.real_part
    own = order_error(sum_length(instruction, part), accumulator_of(instruction, kind))
    if instruction.row.opcode_class is Class.CONTRACTION:
        # What the program's `algorithm` rounds the operands to, where that is coarser than their type.
        coarser = rounding_epsilon(instruction, kind)
        unasked = _unasked_unit(instruction, kind, product_unit)
        return max(own, coarser if coarser > epsilon(kind) else 0.0, unasked)
    return own


def factor_error(instruction: Instruction, part: ArrayShape, product_unit: float) -> Error:
    """What the second factor of a product may be off by; the first one is off by `sum_error`."""
    unit = _unasked_unit(instruction, part.element_type.real_part, product_unit)
    return Error(unit, _zeros_in(unit)) if unit else EXACT


def order_error(length: int, accumulator: ElementType) -> float:
    """What each term of a sum of `length` terms may be off by, relative to it, for its order is open."""
    longest = _LONGEST_NARROW_SUM if accumulator.is_narrow_float else _LONGEST_SUM
    return sqrt(min(length, longest)) * epsilon(accumulator) if length > 1 else 0.0


def _unasked_unit(instruction: Instruction, kind: ElementType, product_unit: float) -> float:
    """`product_unit`, where an instruction with results of type `kind` leaves that to the target; else 0."""
    return product_unit if kind is ElementType.F32 and has_default_precision(instruction) else 0.0


def _zeros_in(unit: float) -> int:
    """Zero bits of an f32 that a type with this ulp at 1 holds, too."""
    return round(log2(unit / epsilon(ElementType.F32)))


def has_default_precision(instruction: Instruction) -> bool:
    """Whether it is a product whose precision the program leaves to the target."""
    if instruction.row.opcode_class is not Class.CONTRACTION or instruction.attributes.get("algorithm"):
        return False
    return all(asked.lower() == "default" for asked in instruction.listed("operand_precision", str, ()))


def zeros_of_terms(instruction: Instruction, part: ArrayShape, product_unit: float = 0.0) -> int:
    """Zero bits of terms of a sum that look exact: a sum in a narrow type keeps few of the others exact.

    0, none is, for the factorisations that divide on their way. `product_unit` as for `sum_error`.
    """
    if instruction.opcode in _OF_NO_WHOLE_NUMBERS:
        return 0
    if unit := _unasked_unit(instruction, part.element_type.real_part, product_unit):
        return _zeros_in(unit)
    accumulator = accumulator_of(instruction, part.element_type.real_part)
    if not accumulator.is_narrow_float:
        return ZEROS[ElementType.F32]
    return ZEROS[ElementType.F32] + round(log2(epsilon(accumulator) / epsilon(ElementType.F32)))


def power_error(part: ArrayShape) -> Error:
    """What base and exponent of a power may be off by: of complex ones, whose result is not accurate.

    XLA computes x^y as exp(y · log x), part by part: the logarithm and the angle of x are rounded before they
    are multiplied by y, and the result is off by that times |y log x|.
    """
    if not part.element_type.is_complex:
        return EXACT
    inner = max(ROWS["log"].ulps, ROWS["atan2"].ulps)
    return Error(inner * epsilon(part.element_type.real_part), 0)


def accumulator_of(instruction: Instruction, kind: ElementType) -> ElementType:
    """The type that sums of `kind` are made in.

    XLA's CPU code rounds every step of a reducer to the declared type, and so it does in products of f16;
    products of other narrow types it makes in f32.
    """
    if not kind.is_narrow_float or kind is ElementType.F16:
        return kind
    return ElementType.F32 if instruction.row.opcode_class in _IN_F32 else kind


#: Classes of opcodes that add up narrow types in f32.
_IN_F32 = frozenset({Class.CONTRACTION, Class.LIBRARY})


def _is_nowhere_exact(instruction: Instruction) -> bool:
    """Whether whole numbers may be off like all others."""
    return instruction.opcode in _EXACT_NOWHERE or _is_reciprocal(instruction)


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
