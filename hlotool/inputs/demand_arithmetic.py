"""Demands on computed numbers: which operands make the result of an elementwise operation lie in an interval.

A rule solves the operation for one operand, given what range the others are known to have. Where several
operands are free, it takes a simple sufficient choice (both non-negative for a non-negative sum) or none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TypeAlias

from hlotool.facts.demands import Demand, InRange, Matrix, MatrixKind, Ordered
from hlotool.facts.ranges import (
    ANY,
    NONNEGATIVE,
    NONZERO,
    POSITIVE,
    ForwardRanges,
    Interval,
    logarithm,
    negate,
)
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape

#: Intervals for operands, by number.
_Solved: TypeAlias = Iterator[tuple[int, Interval]]
_Rule: TypeAlias = Callable[[Instruction, Interval, ForwardRanges], _Solved]

#: The largest fraction that truncation or rounding down drops; a bf16 of one has no finer one below it.
_BELOW_ONE = 1 - 2**-8


def solved(instruction: Instruction, demand: Demand, ranges: ForwardRanges) -> Iterator[tuple[int, Demand]]:
    """What a demand on the result of an elementwise operation or a reduction asks of its operands."""
    if isinstance(demand, InRange):
        rule = _RULES.get(instruction.opcode)
        if rule is not None:
            yield from _solve_all(rule, instruction, demand, ranges)
    elif isinstance(demand, Ordered):
        yield from _order(instruction, demand, ranges)
    elif isinstance(demand, Matrix):
        yield from _matrix(instruction, demand, ranges)


def _solve_all(
    rule: _Rule, instruction: Instruction, demand: InRange, ranges: ForwardRanges
) -> Iterator[tuple[int, Demand]]:
    """Solve for every interval of the demand; positions without a solution are free."""
    solutions = [dict(rule(instruction, interval, ranges)) for interval in demand.intervals]
    for number in sorted({n for solution in solutions for n in solution}):
        intervals = tuple(solution.get(number, ANY) for solution in solutions)
        operand = instruction.operands[number].array_shape
        axis = demand.axis if operand.rank == _rank(instruction) else None
        asked = InRange(intervals, axis, demand.required)
        if axis is None:
            asked = InRange((asked.narrowest,), None, demand.required)
        if any(i != ANY for i in asked.intervals) and not any(i.is_empty for i in asked.intervals):
            yield number, asked


def _rank(instruction: Instruction) -> int:
    return instruction.shape.rank if isinstance(instruction.shape, ArrayShape) else -1


def _is_integer(instruction: Instruction) -> bool:
    return isinstance(instruction.shape, ArrayShape) and instruction.shape.element_type.is_integer


def _add(instruction: Instruction, interval: Interval, ranges: ForwardRanges) -> _Solved:
    for number, other in ((0, 1), (1, 0)):
        known = ranges.of(instruction.operands[other])
        yield number, _one_summand(instruction, interval, known)


def _one_summand(instruction: Instruction, interval: Interval, other: Interval) -> Interval:
    if other.is_point:
        return interval.shifted(-other.low)
    if other.is_bounded or not interval.is_bounded:
        return _beside_range(interval, other)
    # An index made of two free parts: each gets half of the room.
    return (
        Interval(math.ceil(interval.low / 2), math.floor(interval.high / 2))
        if _is_integer(instruction)
        else ANY
    )


def _beside_range(interval: Interval, other: Interval) -> Interval:
    """What to add to a number of the range `other`."""
    if interval.low == -math.inf and interval.high == math.inf:
        return POSITIVE if interval.avoid == 0 else ANY
    low = interval.low / 2 if other.low == -math.inf else interval.low - other.low
    high = interval.high / 2 if other.high == math.inf else interval.high - other.high
    avoid = low if interval.avoid == interval.low and low == 0 else None
    return Interval(low, high, avoid)


def _subtract(instruction: Instruction, interval: Interval, ranges: ForwardRanges) -> _Solved:
    minuend, subtrahend = (ranges.of(o) for o in instruction.operands)
    if subtrahend.is_bounded:
        yield 0, _one_summand(instruction, interval, negate(subtrahend))
    if minuend.is_bounded:
        yield 1, negate(_one_summand(instruction, interval, minuend))


def _multiply(instruction: Instruction, interval: Interval, ranges: ForwardRanges) -> _Solved:
    a, b = instruction.operands
    if a is b:
        yield 0, NONZERO if interval.avoid == 0 else ANY
        return
    for number, other in ((0, b), (1, a)):
        yield number, _one_factor(interval, ranges.of(other), _is_integer(instruction))


def _one_factor(interval: Interval, other: Interval, integer: bool) -> Interval:
    if other == Interval(0, 0):
        return ANY
    if other.is_point and math.isfinite(other.low):
        result = interval.scaled(1 / other.low)
        return _whole(result) if integer else result
    return _same_sign(interval, other)


def _whole(interval: Interval) -> Interval:
    """The integers inside."""
    low = math.ceil(interval.low) if math.isfinite(interval.low) else interval.low
    high = math.floor(interval.high) if math.isfinite(interval.high) else interval.high
    return Interval(low, high, interval.avoid)


def _same_sign(interval: Interval, other: Interval) -> Interval:
    """What keeps a product or quotient non-negative or away from 0, whatever the size of the other part."""
    if interval.low == 0 and interval.high == math.inf:
        if other.high <= 0:
            return Interval(-math.inf, 0, interval.avoid)
        return interval
    return NONZERO if interval.avoid == 0 else ANY


def _divide(instruction: Instruction, interval: Interval, ranges: ForwardRanges) -> _Solved:
    dividend, divisor = (ranges.of(o) for o in instruction.operands)
    if divisor.is_point and divisor.low not in (0.0, math.inf, -math.inf):
        yield 0, interval.scaled(divisor.low)
        return
    yield 0, _same_sign(interval, divisor)
    if interval.low == 0 and divisor.low < 0 < divisor.high:
        yield 1, POSITIVE if dividend.high > 0 else Interval(-math.inf, 0, 0)


def _negate(_: Instruction, interval: Interval, __: ForwardRanges) -> _Solved:
    yield 0, negate(interval)


def _abs(_: Instruction, interval: Interval, __: ForwardRanges) -> _Solved:
    avoid = 0.0 if interval.avoid == 0 else None
    yield 0, Interval(-interval.high, interval.high, avoid) if interval.high >= 0 else ANY


def _inverse(function: Callable[[float], float]) -> _Rule:
    """The solution for a monotone function, whose inverse is `function`."""

    def rule(_: Instruction, interval: Interval, __: ForwardRanges) -> _Solved:
        avoid = None if interval.avoid is None else function(interval.avoid)
        if avoid is not None and not math.isfinite(avoid):
            avoid = None
        yield 0, Interval(function(interval.low), function(interval.high), avoid)

    return rule


def _exp(value: float) -> float:
    return math.exp(value) if value < 700 else math.inf


def _power(instruction: Instruction, interval: Interval, ranges: ForwardRanges) -> _Solved:
    """A constant base is solved for the exponent (`0.999 ** step`), a constant exponent for the sign."""
    base, exponent = (ranges.of(o) for o in instruction.operands)
    if base.is_point and base.low > 0 and base.low not in (1.0, math.inf):
        slope = 1 / math.log(base.low)
        low, high = sorted((logarithm(interval.low) * slope, logarithm(interval.high) * slope))
        avoid = (
            logarithm(interval.avoid) * slope if interval.avoid is not None and interval.avoid > 0 else None
        )
        yield 1, Interval(low, high, avoid)
    elif exponent.is_point and interval.avoid == 0:
        yield 0, NONZERO


def _maximum(instruction: Instruction, interval: Interval, ranges: ForwardRanges) -> _Solved:
    for number, other in ((0, 1), (1, 0)):
        known = ranges.of(instruction.operands[other])
        enough = known.low >= interval.low and interval.avoid is None
        yield number, Interval(-math.inf if enough else interval.low, interval.high, interval.avoid)


def _minimum(instruction: Instruction, interval: Interval, ranges: ForwardRanges) -> _Solved:
    for number, other in ((0, 1), (1, 0)):
        known = ranges.of(instruction.operands[other])
        enough = known.high <= interval.high and interval.avoid is None
        yield number, Interval(interval.low, math.inf if enough else interval.high, interval.avoid)


def _rounded(below: float = 0.0, above: float = 0.0) -> _Rule:
    """The solution for a rounding that drops up to `above`, or adds up to `below`."""

    def rule(_: Instruction, interval: Interval, __: ForwardRanges) -> _Solved:
        yield 0, Interval(interval.low - below, interval.high + above, interval.avoid)

    return rule


def _convert(instruction: Instruction, interval: Interval, _: ForwardRanges) -> _Solved:
    if instruction.operands[0].element_type.is_floating and _is_integer(instruction):
        yield 0, Interval(interval.low, interval.high + _BELOW_ONE, interval.avoid)
    else:
        yield 0, interval


def _reduce(instruction: Instruction, interval: Interval, _: ForwardRanges) -> _Solved:
    """An extremum of numbers in the interval lies in it; a sum of non-negative ones is not negative."""
    opcode = next(instruction.called).root.opcode
    if len(instruction.operands) != 2:
        return
    if opcode in ("maximum", "minimum"):
        yield 0, interval
    elif opcode == "add" and (interval.low == 0 or interval.avoid == 0) and interval.high == math.inf:
        yield 0, NONNEGATIVE


_RULES: dict[str, _Rule] = {
    "add": _add,
    "subtract": _subtract,
    "multiply": _multiply,
    "divide": _divide,
    "negate": _negate,
    "abs": _abs,
    "sqrt": _inverse(lambda y: max(y, 0.0) ** 2),
    "exponential": _inverse(logarithm),
    "log": _inverse(_exp),
    "power": _power,
    "maximum": _maximum,
    "minimum": _minimum,
    "floor": _rounded(above=_BELOW_ONE),
    "ceil": _rounded(below=_BELOW_ONE),
    "round-nearest-even": _rounded(),
    "round-nearest-afz": _rounded(),
    "convert": _convert,
    "reduce": _reduce,
    "reduce-window": _reduce,
}


def _order(instruction: Instruction, demand: Ordered, ranges: ForwardRanges) -> Iterator[tuple[int, Demand]]:
    """Adding a constant keeps order and distinctness."""
    if instruction.opcode in ("add", "subtract"):
        first, second = instruction.operands
        if ranges.of(second).is_point:
            yield 0, demand
        elif instruction.opcode == "add" and ranges.of(first).is_point:
            yield 1, demand


def _matrix(instruction: Instruction, demand: Matrix, ranges: ForwardRanges) -> Iterator[tuple[int, Demand]]:
    """Sums of positive definite matrices, and positive multiples of any kind, stay what they are."""
    if instruction.opcode == "add" and demand.kind is MatrixKind.POSITIVE_DEFINITE:
        yield 0, demand
        yield 1, demand
    elif instruction.opcode in ("multiply", "divide"):
        first, second = instruction.operands
        if ranges.of(second).low > 0:
            yield 0, demand
        elif instruction.opcode == "multiply" and ranges.of(first).low > 0:
            yield 1, demand
