"""Where the values of a program are sure to lie at run time, whatever its arguments are.

Integers wrap, floats are rounded, and neither breaks what is said here. NaN is in no range.

`signs` knows more, of real numbers. This is for proofs about what a program executes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

from hlotool.analysis.calls import CallGraph
from hlotool.analysis.flow import Part, computed_by, handed_on
from hlotool.analysis.interval import ANY, NONNEGATIVE, Interval, add, multiply, negate
from hlotool.analysis.ranges import range_of
from hlotool.analysis.trip_counts import counter_limits
from hlotool.analysis.value_numbers import reducing_opcode
from hlotool.ir.dtypes import integer_limits
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, ElementType

_Operands: TypeAlias = Sequence[Interval]
_Rule: TypeAlias = Callable[[Instruction, _Operands], Interval]

#: Their results are among their operands' values, or constants: `range_of` holds to the bit.
_EXACT: Final = frozenset(
    {
        "broadcast", "clamp", "concatenate", "constant", "copy", "dynamic-slice", "dynamic-update-slice",
        "iota", "maximum", "minimum", "pad", "reshape", "reverse", "select", "slice", "transpose",
    }
)  # fmt: skip
#: Integers below this are exact in f64, which ranges are made of.
_EXACT_INTEGERS: Final = 2**53
#: No result is negative.
_NOT_NEGATIVE: Final = frozenset({"exponential", "rsqrt", "sqrt"})


class MachineRanges:
    """Ranges of the values that a program's entry reaches; the program must not change meanwhile."""

    def __init__(self, calls: CallGraph) -> None:
        self._calls = calls
        self._ranges: dict[Instruction, Interval] = {}
        self._counters = dict(_counters(calls))
        for instruction in calls.in_order_of_execution():
            if next(handed_on((instruction, ()), calls), None) is None:
                self._ranges[instruction] = self._computed(instruction)

    def of(self, instruction: Instruction) -> Interval:
        """A range that holds every number among the values of an array; all numbers for tuples."""
        known = self._ranges.get(instruction)
        if known is not None:
            return known
        limits = type_range(instruction)
        if instruction not in self._calls.home or not _is_array(instruction):
            return limits
        found: Interval | None = None
        for source in computed_by(instruction, self._calls, self._counters.__contains__):
            one = self._counters.get(source) or self._ranges.get(source[0], ANY)
            found = one if found is None else found.union(one)
        return limits if found is None else limits.intersect(found)

    def _computed(self, instruction: Instruction) -> Interval:
        limits = type_range(instruction)
        if not _is_array(instruction) or instruction.element_type.is_complex:
            return ANY
        operands = [self.of(operand) for operand in instruction.operands]
        rule = _RULES.get(instruction.opcode)
        if instruction.opcode in _EXACT:
            found = range_of(instruction, operands)
        elif rule is not None:
            found = rule(instruction, operands)
        else:
            return limits
        if instruction.element_type.is_integer:
            is_exact = max(abs(found.low), abs(found.high)) < _EXACT_INTEGERS
            return found if is_exact and limits.contains(found) else limits
        return found.intersect(limits)


def _counters(calls: CallGraph) -> Iterator[tuple[Part, Interval]]:
    """What loops count: parts of their state, as body and condition see it, and as it is returned."""
    for loop in calls.home:
        if loop.opcode != "while":
            continue
        limits = counter_limits(loop)
        inside = [loop.computation(name) for name in ("body", "condition")]
        own = [c.parameters[0] for c in inside if calls.only_caller(c) is loop]
        for index, (low, high) in limits.items():
            for holder in (loop, *own):
                yield (holder, index), Interval(low, high)


def type_range(instruction: Instruction) -> Interval:
    """The numbers of an array's element type; all numbers for floats and tuples."""
    if not isinstance(instruction.shape, ArrayShape):
        return ANY
    kind = instruction.shape.element_type
    if not (kind.is_integer or kind is ElementType.PRED):
        return ANY
    return Interval(*map(float, integer_limits(kind)))


def _is_array(instruction: Instruction) -> bool:
    return isinstance(instruction.shape, ArrayShape)


def _signs_of(interval: Interval) -> Interval:
    """What rounding leaves of a range."""
    return Interval(0 if interval.low >= 0 else -math.inf, 0 if interval.high <= 0 else math.inf)


def _arithmetic(function: Callable[[_Operands], Interval]) -> _Rule:
    """Exact for integers that do not wrap; of rounded floats the sign."""

    def rule(instruction: Instruction, operands: _Operands) -> Interval:
        found = function(operands)
        if instruction.element_type.is_integer:
            return found
        return _signs_of(found)

    return rule


def _multiply(instruction: Instruction, operands: _Operands) -> Interval:
    is_square = instruction.operands[0] is instruction.operands[1]
    if is_square and instruction.element_type.is_floating:
        return NONNEGATIVE
    return _arithmetic(lambda o: multiply(*o))(instruction, operands)


def _divide(instruction: Instruction, operands: _Operands) -> Interval:
    a, b = operands
    if b.low <= 0:
        return ANY
    if instruction.element_type.is_integer:
        return Interval(min(a.low, 0), max(a.high, 0))
    return _signs_of(a)


def _remainder(instruction: Instruction, operands: _Operands) -> Interval:
    """The sign is that of the dividend, and it is nearer to 0 than the divisor."""
    a, b = operands
    if b.low <= 0 or not instruction.element_type.is_integer:
        return ANY
    largest = b.high - 1
    return Interval(max(-largest, min(a.low, 0.0)), min(largest, max(a.high, 0.0)))


def _and(instruction: Instruction, operands: _Operands) -> Interval:
    """A mask without the sign bit bounds what it lets through."""
    if instruction.element_type is ElementType.PRED:
        return Interval(min(o.low for o in operands), min(o.high for o in operands))
    bounds = [o.high for o in operands if o.low >= 0]
    return Interval(0, min(bounds)) if bounds else ANY


def _or(instruction: Instruction, operands: _Operands) -> Interval:
    if instruction.element_type is ElementType.PRED:
        return Interval(max(o.low for o in operands), max(o.high for o in operands))
    return ANY


def _not(instruction: Instruction, operands: _Operands) -> Interval:
    (a,) = operands
    return Interval(1 - a.high, 1 - a.low) if instruction.element_type is ElementType.PRED else ANY


def _abs(instruction: Instruction, operands: _Operands) -> Interval:
    """The lowest integer is its own absolute value."""
    (a,) = operands
    if instruction.element_type.is_integer and a.low <= type_range(instruction).low:
        return ANY
    return Interval(0 if a.low <= 0 <= a.high else min(abs(a.low), abs(a.high)), max(abs(a.low), abs(a.high)))


def _convert(instruction: Instruction, operands: _Operands) -> Interval:
    """Integers that fit stay what they are; of rounded floats the sign is kept."""
    (a,), source = operands, instruction.operands[0].element_type
    target = instruction.element_type
    if target is ElementType.PRED or source.is_complex:
        return ANY
    if target.is_integer and source.is_inexact:
        if not (math.isfinite(a.low) and math.isfinite(a.high)):
            return ANY
        return Interval(min(0, math.trunc(a.low)), max(0, math.trunc(a.high)))
    if target.is_integer or (target.bits >= 16 and _is_small(a.low) and _is_small(a.high)):
        return a
    return _signs_of(a)


def _is_small(end: float) -> bool:
    """Whether every float of 16 bits or more has this number, so that rounding does not pass it."""
    return abs(end) <= 16 and end == round(end)


def _rounded(function: Callable[[float], int]) -> _Rule:
    def rule(instruction: Instruction, operands: _Operands) -> Interval:
        low, high = (
            (float(function(e)) if math.isfinite(e) else e) for e in (operands[0].low, operands[0].high)
        )
        return Interval(low, high)

    return rule


def _reduce(instruction: Instruction, operands: _Operands) -> Interval:
    if len(operands) != 2:
        return ANY
    opcode = reducing_opcode(instruction.computation("to_apply"))
    if opcode in ("maximum", "minimum"):
        return operands[0].union(operands[1])
    if opcode == "add" and instruction.element_type.is_floating:
        return _signs_of(operands[0].union(operands[1]))
    return ANY


def _compare(instruction: Instruction, operands: _Operands) -> Interval:
    """Of integers what is sure; floats may be NaN."""
    if not instruction.operands[0].element_type.is_integer:
        return Interval(0, 1)
    holds, fails = _ANSWERS[instruction.text("direction")]
    possible = possible_orders(*operands)
    return Interval(0 if possible & fails else 1, 1 if possible & holds else 0)


def possible_orders(a: Interval, b: Interval) -> frozenset[str]:
    """Of numbers in two ranges: `less`, `equal`, `greater`, as far as they may be so."""
    found = {"less"} if a.low < b.high else set()
    if a.high > b.low:
        found.add("greater")
    if a.low <= b.high and b.low <= a.high:
        found.add("equal")
    return frozenset(found)


#: By direction of a comparison: the orders for which it holds, and the others.
_ANSWERS: Final[dict[str, tuple[set[str], set[str]]]] = {
    "EQ": ({"equal"}, {"less", "greater"}),
    "NE": ({"less", "greater"}, {"equal"}),
    "LT": ({"less"}, {"equal", "greater"}),
    "LE": ({"less", "equal"}, {"greater"}),
    "GT": ({"greater"}, {"less", "equal"}),
    "GE": ({"greater", "equal"}, {"less"}),
}


def _count(instruction: Instruction, _: _Operands) -> Interval:
    return Interval(0, instruction.element_type.bits)


_RULES: Final[dict[str, _Rule]] = {
    "abs": _abs,
    "add": _arithmetic(lambda o: add(*o)),
    "and": _and,
    "ceil": _rounded(math.ceil),
    "compare": _compare,
    "convert": _convert,
    "count-leading-zeros": _count,
    "divide": _divide,
    "floor": _rounded(math.floor),
    "multiply": _multiply,
    "negate": _arithmetic(lambda o: negate(o[0])),
    "not": _not,
    "or": _or,
    "popcnt": _count,
    "reduce": _reduce,
    "remainder": _remainder,
    "subtract": _arithmetic(lambda o: add(o[0], negate(o[1]))),
    **dict.fromkeys(("cosine", "erf", "sine", "tanh"), lambda _, __: Interval(-1, 1)),
    **dict.fromkeys(_NOT_NEGATIVE, lambda _, __: NONNEGATIVE),
    "logistic": lambda _, __: Interval(0, 1),
}
