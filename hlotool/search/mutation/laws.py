"""Laws that hold for every bit, given what is known of the operands: what `symbols` simplifies by."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

import numpy as np

from hlotool.analysis.machine_range import MachineRange, of_integers, of_type
from hlotool.analysis.machine_rules import range_of
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, ElementType
from hlotool.search.mutation import predicates
from hlotool.search.mutation.assumptions import nan_source
from hlotool.search.mutation.both_cases import anywhere, of_both
from hlotool.search.mutation.hashing import combined, key_of, of_values
from hlotool.search.mutation.integer_laws import (
    inexact,
    is_integer,
    is_number,
    plus,
    quotients,
    sums,
    zero,
)
from hlotool.search.mutation.low_bits import either_way, masked, narrowed
from hlotool.search.mutation.predicates import COMPARED, Predicate
from hlotool.search.mutation.terms import Law, Term, Word, elementwise, of_predicate

#: What any integer is within, whatever its type.
_ANY_INTEGER: Final = of_type(ElementType.S64).union(of_type(ElementType.U64))


def select(instruction: Instruction, operands: Sequence[Term]) -> Term | None:
    """The side that is taken, element by element where the mask is known; either where both are the same."""
    if instruction.opcode != "select":
        return None
    mask, chosen, otherwise = operands
    if mask.known is not None and mask.known.size:
        if mask.known.all() or not mask.known.any():
            return chosen if mask.known.all() else otherwise
        symbols = np.where(mask.known, chosen.symbols, otherwise.symbols)
        known = None
        if chosen.known is not None and otherwise.known is not None:
            known = np.where(mask.known, chosen.known, otherwise.known)
        return Term(symbols, chosen.bounds.union(otherwise.bounds), known)
    if np.array_equal(chosen.symbols, otherwise.symbols):
        return of_both(chosen, otherwise)
    if (floored := _floored(instruction, operands)) is not None:
        return floored
    same = chosen.symbols == otherwise.symbols
    if not same.any():
        return None
    key = key_of("select", instruction.element_type.value)
    mixture = combined(key, np.broadcast_to(mask.symbols, same.shape), chosen.symbols, otherwise.symbols)
    return Term(np.where(same, otherwise.symbols, mixture), chosen.bounds.union(otherwise.bounds))


def _floored(instruction: Instruction, operands: Sequence[Term]) -> Term | None:
    """`select(…, r + n, r)` of a remainder r of n; with `r < 0` for a positive n it is never negative."""
    mask, chosen, rest = operands
    kind, dims = instruction.element_type, instruction.dims
    # A sum of two unsigned numbers may wrap around to 0.
    if rest.divided_by is None or not (kind.is_integer and kind.is_signed):
        return None
    if rest.divisor is None:
        moved = elementwise("add", kind, (), (rest.symbols, rest.divided_by))
    elif of_type(kind).low <= rest.divisor <= of_type(kind).high:
        moved = plus(kind, rest, rest.divisor).symbols
    else:
        return None
    if not np.array_equal(chosen.symbols, moved):
        return None
    # As the mask compares it: here it is known already what the mask says.
    side = predicates.Side(rest.symbols, of_type(kind))
    is_some = predicates.comparison("NE", side, zero(dims).side, is_ordered=True)
    if not predicates.implied(mask.as_predicate, True, is_some):
        return None
    # The rest as it is on either side of the mask: it is asked for its zeros on both.
    zeros = anywhere(rest, rest.bounds.union(_summand(chosen, rest)))
    is_negative = predicates.comparison("LT", side, zero(dims).side, is_ordered=True).symbols(dims)
    if rest.divisor is None or rest.divisor < 0 or not np.array_equal(mask.symbols, is_negative):
        # It is smaller than n: a sum with n is never 0.
        symbols = elementwise("select", kind, (), [o.symbols for o in operands])
        bounds = range_of(instruction, [o.bounds for o in operands])
        return Term(np.broadcast_to(symbols, dims), bounds, zero_like=zeros)
    symbols = combined(key_of("remainder, never negative", kind.value), rest.symbols)
    return Term(symbols, of_integers(0, rest.divisor - 1), zero_like=zeros)


def _summand(total: Term, part: Term) -> MachineRange:
    """What is known of a part of a sum where the sum is read; nothing where the sum does not say."""
    parts = [total.sum_of[0]] if total.sum_of is not None else []
    if total.word is not None and total.word.opcode == "add":
        parts += total.word.operands
    same = (one.bounds for one in parts if np.array_equal(one.symbols, part.symbols))
    return next(same, _ANY_INTEGER)


def clamp(instruction: Instruction, operands: Sequence[Term]) -> Term | None:
    """What is within the limits anyway; NaN stays NaN. Of integers it is remembered what was clamped."""
    if instruction.opcode != "clamp":
        return None
    least, value, most = operands
    inside = value.bounds.within(least.bounds.high, most.bounds.low) and least.bounds.high <= most.bounds.low
    # A clamp to [-0, …] may turn a zero around.
    signs = value.bounds.negative_zero and (least.bounds.high == 0 or most.bounds.low == 0)
    if inside and not signs and not (least.bounds.nan or most.bounds.nan):
        return value
    if not is_integer(instruction) or not (least.bounds.is_point and most.bounds.is_point):
        return None
    low, high = int(least.bounds.low), int(most.bounds.low)
    symbols = elementwise("clamp", instruction.element_type, (), [o.symbols for o in operands])
    bounds = range_of(instruction, [o.bounds for o in operands])
    return Term(np.broadcast_to(symbols, instruction.dims), bounds, clamped=(value, low, high))


def extremum(instruction: Instruction, operands: Sequence[Term]) -> Term | None:
    """The larger of two integers whose ranges do not overlap; floats beside an infinity. NaN stays NaN."""
    if instruction.opcode not in ("maximum", "minimum"):
        return None
    a, b = operands
    if not is_integer(instruction):
        end = -math.inf if instruction.opcode == "maximum" else math.inf
        for value, bound in ((a, b), (b, a)):
            if is_number(bound, end) and value.symbols.shape == instruction.dims:
                return value
        return None
    if instruction.opcode == "minimum":
        a, b = b, a
    if a.bounds.low >= b.bounds.high:
        return operands[0]
    return operands[1] if b.bounds.low >= a.bounds.high else None


def limited(instruction: Instruction, operands: Sequence[Term]) -> Term | None:
    """Floats between constants, which several limits may have become: the narrowest count. NaN stays NaN.

    Limits of 0 are left alone: which zero comes out is nobody's promise.
    """
    shape = instruction.shape
    if not isinstance(shape, ArrayShape) or not shape.element_type.is_floating:
        return None
    steps, value = _limits(instruction.opcode, operands)
    if value is None or any(end == 0 for _, end in steps) or value.symbols.shape != shape.dims:
        return None
    base, low, high = value.limited if value.limited is not None else (value, -math.inf, math.inf)
    for bound, end in steps:
        low, high = bound(low, end), bound(high, end)
    symbols = combined(key_of("limited", shape.element_type.value, low, high), base.symbols)
    bounds = range_of(instruction, [o.bounds for o in operands])
    return Term(symbols, bounds, limited=(base, low, high), nan_of=nan_source(instruction, operands))


_Steps: TypeAlias = list[tuple[Callable[[float, float], float], float]]


def _limits(opcode: str, operands: Sequence[Term]) -> tuple[_Steps, Term | None]:
    """What limits a value, in order, and the value; None where the limits are no constants."""
    if opcode == "clamp":
        least, value, most = operands
        is_constant = least.bounds.is_point and most.bounds.is_point
        return [(max, least.bounds.low), (min, most.bounds.low)], value if is_constant else None
    if opcode in ("maximum", "minimum"):
        bound = max if opcode == "maximum" else min
        for value, end in (operands, operands[::-1]):
            if end.bounds.is_point and not value.bounds.is_point:
                return [(bound, end.bounds.low)], value
    return [], None


def convert(instruction: Instruction, operands: Sequence[Term]) -> Term | None:
    """A conversion that keeps every number: of integers within the type, of floats to a wider one."""
    if instruction.opcode != "convert":
        return None
    (value,) = operands
    source, target = instruction.operands[0].element_type, instruction.element_type
    if source.is_complex or target.is_complex:
        return None
    if source.is_floating and target.is_floating:
        widens = (source, target) in _WIDER or source is target
        return value if widens else None
    if source.is_floating and target.is_integer:
        return _nan_to_integer(instruction, value)
    if source.is_floating or target.is_floating or target is ElementType.PRED:
        return value if source is target else None
    limits = of_type(target)
    return _retyped(value, source, target) if value.bounds.within(limits.low, limits.high) else None


def _retyped(value: Term, source: ElementType, target: ElementType) -> Term:
    """The same integers in another type, of which sums that wrapped in the former one are no sums."""
    if source.bits == target.bits:
        return value
    if value.sum_of is not None and target.bits > source.bits:
        (base, step), limits = value.sum_of, of_type(source)
        if limits.low <= base.bounds.low + step and base.bounds.high + step <= limits.high:
            return replace(value, sum_of=(_of_few_bits(base, source), step), word=None)
    return _of_few_bits(value, source)


def _of_few_bits(value: Term, kind: ElementType) -> Term:
    """A number of which only as many low bits as a type has are what the operations on it make them."""
    return replace(value, sum_of=None, word=Word("convert", (value,), kind.bits))


def _nan_to_integer(instruction: Instruction, value: Term) -> Term | None:
    """NaN becomes 0 as an integer: a choice of 0 for NaN before the conversion is none."""
    for case in value.cases.values():
        is_zero = case.holds.known is not None and not case.holds.known.any()
        is_nan = predicates.is_nan(case.fails.side, case.fails.nan_of)
        dims = case.fails.symbols.shape
        if is_zero and np.array_equal(is_nan.symbols(dims), case.mask.symbols(dims)):
            symbols = elementwise("convert", instruction.element_type, (), (case.fails.symbols,))
            bounds = range_of(instruction, [case.fails.bounds])
            return Term(np.broadcast_to(symbols, instruction.dims), bounds)
    return None


_WIDER = frozenset(
    {
        (ElementType.BF16, ElementType.F32),
        (ElementType.F16, ElementType.F32),
        (ElementType.BF16, ElementType.F64),
        (ElementType.F16, ElementType.F64),
        (ElementType.F32, ElementType.F64),
    }
)


def logic(instruction: Instruction, operands: Sequence[Term]) -> Term | None:
    """Predicates by what they depend on; a comparison with 0 of what is 0 where something else is."""
    shape = instruction.shape
    if not isinstance(shape, ArrayShape) or shape.element_type is not ElementType.PRED:
        return None
    if any(operand.symbols.shape not in (shape.dims, ()) for operand in operands):
        return None
    found = _compared(instruction, operands) if instruction.opcode == "compare" else None
    if instruction.opcode == "is-finite":
        found = _finite(operands[0])
    if instruction.opcode == "select":
        found = predicates.choice(*(o.as_predicate for o in operands))
    if instruction.opcode in _TABLES:
        found = predicates.applied(_TABLES[instruction.opcode], *(o.as_predicate for o in operands))
    return None if found is None else of_predicate(found, shape.dims)


def _finite(value: Term) -> Predicate | None:
    """Where a number is finite; of a choice of numbers, where the one that is taken is."""
    for _, case in sorted(value.cases.items()):
        holds, fails = (predicates.is_finite(side.side) for side in (case.holds, case.fails))
        if holds.constant is not None or fails.constant is not None:
            return predicates.choice(case.mask, holds, fails)
    return predicates.is_finite(value.side)


def _compared(instruction: Instruction, operands: Sequence[Term]) -> Predicate | None:
    if "type" in instruction.attributes or instruction.operands[0].element_type.is_complex:
        return None
    direction, (first, second) = instruction.text("direction"), operands
    if instruction.operands[0].element_type is ElementType.PRED:
        return predicates.applied(COMPARED[direction], first.as_predicate, second.as_predicate)
    if direction in ("EQ", "NE"):
        if is_number(first, 0):
            first, second = second, first
        if is_number(second, 0) and first.zero_like is not None:
            first = first.zero_like
        elif (rest := inexact(first, second) or inexact(second, first)) is not None:
            first, second = rest, zero(rest.symbols.shape)
    if first.predicate is not None and second.bounds.is_point:
        number = int(second.bounds.low)
        return predicates.applied(lambda mask: COMPARED[direction](mask * 1, number), first.predicate)
    if direction == "NE" and np.array_equal(first.symbols, second.symbols):
        return predicates.is_nan(first.side, first.nan_of)
    is_ordered = instruction.operands[0].element_type.is_integer
    return predicates.comparison(direction, first.side, second.side, is_ordered)


_TABLES: Final[Mapping[str, Callable[..., Any]]] = {
    "and": np.logical_and,
    "or": np.logical_or,
    "xor": np.logical_xor,
    "not": np.logical_not,
    "maximum": np.logical_or,
    "minimum": np.logical_and,
}


def shifted_out(instruction: Instruction, operands: Sequence[Term]) -> Term | None:
    """Of what is shifted by all bits or more, by amounts that are known, nothing is left."""
    if instruction.opcode not in ("shift-left", "shift-right-logical"):
        return None
    value, amount = operands
    if amount.known is None or amount.known.shape != instruction.dims:
        return None
    counts = amount.known.astype(np.int64)
    is_out = (counts < 0) | (counts >= instruction.element_type.bits)
    if not is_out.any():
        return None
    shifted = elementwise(instruction.opcode, instruction.element_type, (), (value.symbols, amount.symbols))
    zeros = of_values(np.zeros(instruction.dims, np.int64))
    return Term(np.where(is_out, zeros, shifted), of_type(instruction.element_type))


def neutral(instruction: Instruction, operands: Sequence[Term]) -> Term | None:
    """Integers: zero or one that changes nothing."""
    if len(operands) != 2 or not is_integer(instruction):
        return None
    a, b = operands
    match instruction.opcode:
        case "or" | "xor":
            return b if is_number(a, 0) else a if is_number(b, 0) else None
        case "shift-left" | "shift-right-logical" | "shift-right-arithmetic":
            return a if is_number(b, 0) else None
        case "multiply":
            return b if is_number(a, 1) else a if is_number(b, 1) else None
        case "divide":
            return a if is_number(b, 1) else None
    return None


def negate(instruction: Instruction, operands: Sequence[Term]) -> Term | None:
    """Remembers what an integer is the negative of; it is 0 where that is."""
    if instruction.opcode != "negate" or not is_integer(instruction):
        return None
    (value,) = operands
    symbols = elementwise("negate", instruction.element_type, (), (value.symbols,))
    bounds = range_of(instruction, [value.bounds])
    return Term(symbols, bounds, negated=value.symbols, zero_like=_zeros(value))


def zero_alike(instruction: Instruction, operands: Sequence[Term]) -> Term | None:
    """A choice between integers that are 0 at the same places, or of which one is where it is not taken."""
    if instruction.opcode != "select" or not instruction.element_type.is_integer:
        return None
    mask, *sides = operands
    one, other = (_zeros(side) for side in sides)
    alike = of_both(one, other) if np.array_equal(one.symbols, other.symbols) else None
    for holds, side, rest in ((True, sides[0], other), (False, sides[1], one)):
        # It is not known where it lies on the other side, nor, once it was converted, in which type.
        whole_range = anywhere(rest, _ANY_INTEGER)
        is_some = predicates.comparison("NE", whole_range.side, zero(instruction.dims).side, is_ordered=True)
        if not side.bounds.holds_zero and predicates.implied(mask.as_predicate, holds, is_some):
            alike = whole_range
    if alike is None:
        return None
    symbols = elementwise("select", instruction.element_type, (), [o.symbols for o in operands])
    bounds = range_of(instruction, [o.bounds for o in operands])
    return Term(np.broadcast_to(symbols, instruction.dims), bounds, zero_like=alike)


def _zeros(term: Term) -> Term:
    """An array that is 0 where an integer is."""
    return term if term.zero_like is None else term.zero_like


LAWS: Final[tuple[Law, ...]] = (
    logic, select, either_way, zero_alike, clamp, extremum, limited, convert, narrowed, shifted_out, sums,
    quotients, neutral, masked, negate,
)  # fmt: skip
