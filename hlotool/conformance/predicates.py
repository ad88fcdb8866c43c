"""Which elements each rule of departures.toml explains."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from hlotool.conformance.agreement import Departure, flushed
from hlotool.conformance.generators.cases import Case
from hlotool.ir.dtypes import Array
from hlotool.ir.types import ArrayShape, ElementType
from hlotool.numerics.ulp import ulp_distance


@dataclass(frozen=True, slots=True, eq=False)
class Difference:
    """One leaf of a result that is not equal on both sides.

    Attributes:
        case: what was run.
        leaf: its number in the result.
        kind: its element type.
        ours: of the numpy backend.
        theirs: of XLA.
    """

    case: Case
    leaf: int
    kind: ElementType
    ours: Array
    theirs: Array

    @property
    def operands(self) -> list[Array]:
        """The arguments, if they are as large as the result, or scalars; else none."""
        fits = all(a.shape in ((), self.ours.shape) for a in self.case.arguments)
        return [np.broadcast_to(a, self.ours.shape) for a in self.case.arguments] if fits else []

    @property
    def source(self) -> ElementType | None:
        """Element type of the first operand."""
        operands = self.case.instruction.operands
        shape = operands[0].shape if operands else None
        return shape.element_type if isinstance(shape, ArrayShape) else None


Predicate: TypeAlias = Callable[[Difference], Array]


def explained(rule: Departure, difference: Difference) -> Array:
    """A mask over the elements of the result."""
    nothing = np.zeros(difference.ours.shape, np.bool_)
    if rule.predicate is None or not {"*", difference.case.opcode} & set(rule.opcodes):
        return nothing
    predicate: Predicate = globals()[rule.predicate]
    with np.errstate(all="ignore"):
        return nothing | predicate(difference)


def _wide(array: Array) -> Array:
    return array.astype(np.float64)


def flushes_denormals(difference: Difference) -> Array:
    """An operand is denormal, or the result is and XLA has a zero."""
    return flushed(difference.ours, difference.theirs, difference.operands)


def has_exponent_of_more_than_six_bits(difference: Difference) -> Array:
    """An integer exponent from 64 on, or one that s32 cannot hold."""
    if not difference.kind.is_integer:
        return np.asarray(False)
    exponent = _wide(difference.operands[1])
    return np.asarray((exponent >= 64) | (exponent <= -(2.0**31)))


def has_exponent_with_top_bit(difference: Difference) -> Array:
    """An exponent that is negative when its top bit counts as a sign; the base is -1 or unsigned."""
    kind = difference.kind
    if not kind.is_integer:
        return np.asarray(False)
    base, exponent = (operand.astype(np.int64) for operand in difference.operands)
    has_top_bit = (exponent >> (kind.bits - 1)) & 1 == 1
    return np.asarray(has_top_bit & ((base == -1) | kind.is_unsigned))


def is_negative(difference: Difference) -> Array:
    """A negative operand of a type below a byte."""
    if difference.kind.bits >= 8:
        return np.asarray(False)
    return np.asarray(difference.operands[0].astype(np.int64) < 0)


def is_six(difference: Difference) -> Array:
    """The largest f4e2m1fn, made an integer."""
    if difference.source is not ElementType.F4E2M1FN or not difference.kind.is_integer:
        return np.asarray(False)
    return np.asarray(np.abs(_wide(difference.operands[0])) == 6)


def is_neighbour(difference: Difference) -> Array:
    """One step apart, in a type of eight bits."""
    if difference.kind.bits > 8 or not difference.kind.is_floating:
        return np.asarray(False)
    return np.asarray(ulp_distance(difference.ours, difference.theirs, difference.kind) <= 1)


def is_below_minus_eleven(difference: Difference) -> Array:
    """Where exp(-x) is infinite in f16, or nearly so."""
    if difference.kind is not ElementType.F16:
        return np.asarray(False)
    return np.asarray(_wide(difference.operands[0]) < -10)


_FNUZ = (ElementType.F8E4M3FNUZ, ElementType.F8E4M3B11FNUZ, ElementType.F8E5M2FNUZ)


def is_tiny_fnuz(difference: Difference) -> Array:
    """A zero that XLA makes NaN, or a number below the normal ones of f16; or a zero of the other sign."""
    if not difference.kind.is_floating:
        return np.asarray(False)
    ours, theirs = (_wide(a) for a in (difference.ours, difference.theirs))
    if difference.kind in _FNUZ:
        return np.asarray(((ours == 0) & np.isnan(theirs)) | (np.abs(ours) < 2.0**-14))
    return np.asarray((ours == 0) & (theirs == 0) & (difference.source in _FNUZ))


def has_zero_part(difference: Difference) -> Array:
    """A complex operand with a real or imaginary part of zero."""
    if difference.source is None or not difference.source.is_complex:
        return np.asarray(False)
    operand = difference.operands[0]
    return np.asarray((operand.imag == 0) | (operand.real == 0))


def is_not_finite(difference: Difference) -> Array:
    """A complex operand or result with a part that is infinite or NaN."""
    complexes = [a for a in (*difference.operands, difference.ours) if a.dtype.kind == "c"]
    return np.logical_or.reduce([~np.isfinite(a) for a in complexes]) if complexes else np.asarray(False)


def is_zero(difference: Difference) -> Array:
    """Zeros of either sign."""
    return np.asarray((difference.ours == 0) & (difference.theirs == 0))


def is_nan_made_infinite(difference: Difference) -> Array:
    """NaN here, infinite there, where no mantissa bit is left."""
    left = difference.case.instruction.attributes.get("mantissa_bits")
    return np.asarray(np.isnan(_wide(difference.ours)) & np.isinf(_wide(difference.theirs)) & (left == 0))


def is_scale_of_zero(difference: Difference) -> Array:
    """The scale that is to be zero: NaN here, the smallest one there."""
    if difference.kind is not ElementType.F8E8M0FNU:
        return np.asarray(False)
    return np.asarray(np.isnan(_wide(difference.ours)) & (_wide(difference.theirs) == 2.0**-127))


def reduces_one_element(difference: Difference) -> Array:
    """One element goes into each element of the result."""
    return np.asarray(difference.case.arguments[0].size == difference.ours.size)


def selects_an_equal_element(difference: Difference) -> Array:
    """Everything was scattered, though elsewhere, to elements of which there are equal ones."""
    values, counts = np.unique(difference.case.arguments[0], return_counts=True)
    if difference.ours.sum() != difference.theirs.sum():
        return np.asarray(False)
    return np.isin(difference.case.arguments[0], values[counts > 1])
