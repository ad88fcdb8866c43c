"""What each opcode makes of ranges of its operands' values, in the arithmetic of the machine."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, Final

from hlotool.facts.flow import reducing_opcode
from hlotool.facts.machine_range import (
    INFINITY,
    MachineRange,
    Operands,
    Rule,
    absolute,
    add,
    bit_count,
    bits_and,
    bits_as_float,
    bits_not,
    bits_or,
    bits_xor,
    bounds_of_sum,
    divide,
    multiply,
    negate,
    of_integers,
    of_type,
    of_value,
    opposed,
    product,
    remainder,
    rounded,
    shift_right,
    sign,
    subtract,
)
from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import Class, Trait, opcodes_with
from hlotool.ir.types import ArrayShape, ElementType

#: How far functions of libraries may be off, in units in the last place: further than any of them is.
_FUNCTION_ULPS: Final = 64.0
#: The values of larger constants are not looked at.
_LARGEST_CONSTANT: Final = 1 << 20


def range_of(instruction: Instruction, operands: Sequence[MachineRange]) -> MachineRange:
    """What is sure of the result of an instruction, given what is sure of its operands.

    Nothing is known of tuples and of complex numbers, the type alone of what has no rule.
    """
    shape = instruction.shape
    if not isinstance(shape, ArrayShape):
        return MachineRange()
    limits = of_type(shape.element_type)
    found = unwrapped(instruction, operands)
    if found is None:
        return limits
    return found if shape.element_type.is_floating or found.within(limits.low, limits.high) else limits


def unwrapped(instruction: Instruction, operands: Sequence[MachineRange]) -> MachineRange | None:
    """The same of an array if integers had as many bits as they need; None where nothing is known."""
    rule = _RULES.get(instruction.opcode)
    if rule is None or any(map(_is_complex, (instruction, *instruction.operands))):
        return None
    found = rule(instruction, operands)
    return found if found is not None and found.low <= found.high else None


def possible_orders(a: MachineRange, b: MachineRange) -> frozenset[str]:
    """Of numbers in two ranges: `less`, `equal`, `greater`, as far as they may be so."""
    found = {"less"} if a.low < b.high else set()
    if a.high > b.low:
        found.add("greater")
    if a.low <= b.high and b.low <= a.high:
        found.add("equal")
    return frozenset(found)


def outcome(direction: str, a: MachineRange, b: MachineRange) -> bool | None:
    """What a comparison of elements of two ranges always gives; None where it depends."""
    holds, fails = _ANSWERS[direction]
    possible = possible_orders(a, b)
    if possible & holds and possible & fails:
        return None
    answer = bool(possible & holds)
    # With NaN all comparisons but NE are false.
    return answer if answer is (direction == "NE") or not (a.nan or b.nan) else None


#: By direction of a comparison: the orders for which it holds, and the others.
_ANSWERS: Final[Mapping[str, tuple[set[str], set[str]]]] = {
    "EQ": ({"equal"}, {"less", "greater"}),
    "NE": ({"less", "greater"}, {"equal"}),
    "LT": ({"less"}, {"equal", "greater"}),
    "LE": ({"less", "equal"}, {"greater"}),
    "GT": ({"greater"}, {"less", "equal"}),
    "GE": ({"greater", "equal"}, {"less"}),
}


def _is_complex(instruction: Instruction) -> bool:
    return isinstance(instruction.shape, ArrayShape) and instruction.element_type.is_complex


# What only hands values on


def _constant(instruction: Instruction, _: Operands) -> MachineRange | None:
    literal = instruction.literal
    if literal is None or literal.has_elided or instruction.array_shape.size > _LARGEST_CONSTANT:
        return None
    return of_value(literal.array)


def _iota(instruction: Instruction, _: Operands) -> MachineRange | None:
    size = instruction.dims[instruction.integer("iota_dimension")]
    last = max(0, size - 1)
    if instruction.element_type.is_floating:
        return of_integers(*rounded(0, last, instruction.element_type))
    return of_integers(0, last)


def _same(_: Instruction, operands: Operands) -> MachineRange:
    return operands[0]


def _carried(instruction: Instruction, operands: Operands) -> MachineRange:
    return reduce(MachineRange.union, [operands[n] for n in instruction.row.carried(len(operands))])


def _bitcast(instruction: Instruction, operands: Operands) -> MachineRange | None:
    return operands[0] if instruction.operands[0].element_type is instruction.element_type else None


# Choices


def _extremum(pick: Callable[..., Any]) -> Rule:
    def rule(_: Instruction, operands: Operands) -> MachineRange:
        a, b = operands
        signs = a.negative_zero or b.negative_zero
        return MachineRange(pick(a.low, b.low), pick(a.high, b.high), a.nan or b.nan, signs)

    return rule


def _clamp(_: Instruction, operands: Operands) -> MachineRange:
    least, value, most = operands
    low = min(max(value.low, least.low), most.low)
    high = min(max(value.high, least.high), most.high)
    nan = any(o.nan for o in operands)
    return MachineRange(low, max(low, high), nan, any(o.negative_zero for o in operands))


def _select(_: Instruction, operands: Operands) -> MachineRange:
    mask, chosen, otherwise = operands
    if mask.is_point:
        return chosen if mask.low else otherwise
    return chosen.union(otherwise)


def _compare(instruction: Instruction, operands: Operands) -> MachineRange | None:
    # An order of all floats tells what numbers do not: NaN from NaN, -0 from 0.
    if "type" in instruction.attributes and instruction.operands[0].element_type.is_floating:
        return None
    answer = outcome(instruction.text("direction"), *operands)
    return None if answer is None else of_integers(int(answer), int(answer))


def _is_finite(_: Instruction, operands: Operands) -> MachineRange | None:
    return of_integers(1, 1) if operands[0].is_finite and not operands[0].nan else None


def _permuted(instruction: Instruction, operands: Operands) -> MachineRange:
    """What another device had; zeros where no device sends anything."""
    if not instruction.attributes.get("source_target_pairs"):
        return MachineRange(0, 0, nan=False, negative_zero=False)
    return operands[0].union(MachineRange(0, 0, nan=False, negative_zero=False))


# Conversions


def _convert(instruction: Instruction, operands: Operands) -> MachineRange | None:
    """Integers that fit stay what they are; floats are rounded."""
    (a,), source = operands, instruction.operands[0].element_type
    target = instruction.element_type
    if target is ElementType.PRED:
        return of_integers(0 if a.holds_zero else 1, 0 if a.low == a.high == 0 and not a.nan else 1)
    if target.is_floating:
        low, high = rounded(a.low, a.high, target)
        underflows = source.is_floating and target.bits < source.bits and a.low < 0
        return MachineRange(
            low, high, a.nan or _may_be_lost(target, low, high), a.negative_zero or underflows
        )
    if not source.is_floating:
        return a
    if not a.is_finite:
        return None
    # NaN becomes 0.
    return of_integers(min(0, math.trunc(a.low)), max(0, math.trunc(a.high)))


def _may_be_lost(target: ElementType, low: float, high: float) -> bool:
    """Whether a type without infinities makes NaN of what is too large for it."""
    return target.bits < 16 and (low == -INFINITY or high == INFINITY)


def _away_from_zero(number: float) -> int:
    """The nearest integer, of two the larger one in magnitude."""
    return int(math.copysign(math.floor(abs(number) + 0.5), number))


def _whole(function: Callable[[float], int]) -> Rule:
    def rule(_: Instruction, operands: Operands) -> MachineRange:
        (a,) = operands
        low, high = (function(e) if math.isfinite(e) else e for e in (a.low, a.high))
        # Fractions between -1 and 0 become -0, other than by `floor`.
        return MachineRange(low, high, a.nan, a.negative_zero or (a.low < 0 <= high))

    return rule


# Functions


def _monotone(
    function: Callable[[float], float], domain: float = -INFINITY, least: float = -INFINITY
) -> Rule:
    """A rising function that libraries approximate, never below `least`; NaN below its domain."""

    def rule(instruction: Instruction, operands: Operands) -> MachineRange:
        (a,) = operands
        low, high = (_value(function, max(end, domain)) for end in (a.low, a.high))
        low, high = rounded(low, high, instruction.element_type, _FUNCTION_ULPS)
        sign = least < 0 and (a.negative_zero or low < 0)
        return MachineRange(max(low, least), high, a.nan or a.low < domain, sign)

    return rule


def _value(function: Callable[[float], float], end: float) -> float:
    try:
        return function(end)
    except OverflowError:
        return INFINITY


def _sqrt(instruction: Instruction, operands: Operands) -> MachineRange:
    (a,) = operands
    low, high = math.sqrt(max(a.low, 0)), math.sqrt(max(a.high, 0))
    low, high = rounded(low, high, instruction.element_type, _FUNCTION_ULPS)
    return MachineRange(max(0, low), high, a.nan or a.low < 0, a.negative_zero)


def _rsqrt(_: Instruction, operands: Operands) -> MachineRange:
    (a,) = operands
    return MachineRange(-INFINITY if a.negative_zero else 0, INFINITY, a.nan or a.low < 0, False)


def _log(end: float) -> float:
    return math.log(end) if end > 0 else -INFINITY


def _angle(instruction: Instruction, operands: Operands) -> MachineRange:
    """Of a point in the plane."""
    low, high = rounded(-math.pi, math.pi, instruction.element_type, _FUNCTION_ULPS)
    return MachineRange(low, high, any(o.nan for o in operands))


def _between(low: float, high: float, periodic: bool = False) -> Rule:
    """What never leaves a range; periodic functions make NaN of infinities."""

    def rule(_: Instruction, operands: Operands) -> MachineRange:
        (a,) = operands
        least = 0 if not periodic and a.low >= 0 else low
        most = high if periodic or a.high > 0 or low == 0 else 0
        sign = low < 0 and (periodic or a.negative_zero or a.low < 0)
        return MachineRange(least, most, a.nan or (periodic and not a.is_finite), sign)

    return rule


# Sums


def _reduce(instruction: Instruction, operands: Operands) -> MachineRange | None:
    if len(operands) != 2:
        return None
    (values, init), opcode = operands, reducing_opcode(instruction.computation("to_apply"))
    dims = instruction.operands[0].dims
    terms = math.prod(dims[axis] for axis in instruction.integers("dimensions"))
    if not terms:
        return init
    if opcode in ("maximum", "minimum"):
        return _extremum(max if opcode == "maximum" else min)(instruction, operands)
    if opcode in ("and", "or") and instruction.element_type is ElementType.PRED:
        return (bits_and if opcode == "and" else bits_or)(instruction, operands)
    return _summed(instruction, values, terms, init) if opcode == "add" else None


def _dot(instruction: Instruction, operands: Operands) -> MachineRange | None:
    if len(operands) != 2:
        return None
    contracted = instruction.integers("lhs_contracting_dims", ())
    terms = math.prod(instruction.operands[0].dims[axis] for axis in contracted)
    # Products may be rounded to the result's type, or not at all.
    term = product(instruction.element_type, *operands)
    return _summed(instruction, term, terms, of_integers(0, 0))


def _summed(
    instruction: Instruction, values: MachineRange, terms: int, init: MachineRange
) -> MachineRange | None:
    """A sum in any order, rounded at every step, or in fewer steps in a wider type."""
    several = replace(values, low=min(values.low * terms, 0), high=max(values.high * terms, 0))
    low, high = bounds_of_sum(several, init)
    if not instruction.element_type.is_floating:
        return of_integers(low, high)
    # Terms of one sign add up to that sign; otherwise each rounding counts as if all were as large as any.
    reach = max(abs(low), abs(high))
    low = rounded(-reach, reach, instruction.element_type, float(terms))[0] if low < 0 else 0
    high = rounded(-reach, reach, instruction.element_type, float(terms))[1] if high > 0 else 0
    nan = values.nan or init.nan or opposed(values, values) or opposed(values, init)
    # On the way the terms of one sign alone may be too large.
    nan = nan or (low == -INFINITY and high == INFINITY)
    return MachineRange(low, high, nan, values.negative_zero and init.negative_zero)


_RULES: Final[Mapping[str, Rule]] = {
    **dict.fromkeys(opcodes_with(Trait.MOVES, Class.INDEXING) - {"scatter"}, _carried),
    "abs": absolute,
    "add": add,
    "and": bits_and,
    "atan2": _angle,
    "bitcast": _bitcast,
    "bitcast-convert": bits_as_float,
    "ceil": _whole(math.ceil),
    "clamp": _clamp,
    "collective-permute": _permuted,
    "compare": _compare,
    "constant": _constant,
    "convert": _convert,
    "cosine": _between(-1, 1, periodic=True),
    "count-leading-zeros": bit_count,
    "divide": divide,
    "dot": _dot,
    "erf": _between(-1, 1),
    "exponential": _monotone(math.exp, least=0),
    "exponential-minus-one": _monotone(math.expm1, least=-1),
    "floor": _whole(math.floor),
    "iota": _iota,
    "is-finite": _is_finite,
    "log": _monotone(_log, domain=0),
    "logistic": lambda _, operands: MachineRange(0, 1, operands[0].nan, False),
    "maximum": _extremum(max),
    "minimum": _extremum(min),
    "multiply": multiply,
    "negate": negate,
    "not": bits_not,
    "or": bits_or,
    "popcnt": bit_count,
    "reduce": _reduce,
    "round-nearest-afz": _whole(_away_from_zero),
    "round-nearest-even": _whole(round),
    "remainder": remainder,
    "rsqrt": _rsqrt,
    "select": _select,
    "sign": sign,
    "sine": _between(-1, 1, periodic=True),
    "sqrt": _sqrt,
    "subtract": subtract,
    "tanh": _between(-1, 1),
    "xor": bits_xor,
    **dict.fromkeys(("shift-right-arithmetic", "shift-right-logical"), shift_right),
    "sort": _same,
}
