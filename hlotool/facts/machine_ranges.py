"""Where a program's values surely lie at run time, and which outcomes of decisions cannot occur.

`signs` knows more, of real numbers. This is for proofs about what a program executes, whatever its
arguments are; trip counts of loops take part in them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from hlotool.facts.decisions import Decision, Kind
from hlotool.facts.flow import CallGraph, Part, computed_by, handed_on
from hlotool.facts.machine_range import MachineRange, of_integers, of_shape, of_type
from hlotool.facts.machine_rules import possible_orders, range_of, unwrapped
from hlotool.facts.trip_counts import counter_limits, most_trips, static_trip_count
from hlotool.ir.arrays import integer_limits
from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import ArrayShape, ElementType


class MachineRanges:
    """Ranges of the values that a program's entry reaches; the program must not change meanwhile."""

    def __init__(self, calls: CallGraph) -> None:
        self._calls = calls
        self._ranges: dict[Instruction, MachineRange] = {}
        self._counters = dict(_counters(calls))
        for instruction in calls.in_order_of_execution():
            if next(handed_on((instruction, ()), calls), None) is None:
                operands = [self.of(operand) for operand in instruction.operands]
                self._ranges[instruction] = range_of(instruction, operands)

    def of(self, instruction: Instruction) -> MachineRange:
        """What holds for every element of an array; nothing for tuples."""
        known = self._ranges.get(instruction)
        if known is not None:
            return known
        limits = of_shape(instruction.shape)
        if instruction not in self._calls.home or not isinstance(instruction.shape, ArrayShape):
            return limits
        found: MachineRange | None = None
        for source in computed_by(instruction, self._calls, self._counters.__contains__):
            one = self._counters.get(source)
            if one is None:
                # Of a tuple that is computed as a whole nothing is known.
                one = self._ranges.get(source[0], limits) if not source[1] else limits
            found = one if found is None else found.union(one)
        return limits if found is None else found


def _counters(calls: CallGraph) -> Iterator[tuple[Part, MachineRange]]:
    """What loops count: parts of their state, as body and condition see it, and as it is returned."""
    for loop in calls.home:
        if loop.opcode != "while":
            continue
        limits = counter_limits(loop)
        inside = [loop.computation(name) for name in ("body", "condition")]
        own = [c.parameters[0] for c in inside if calls.only_caller(c) is loop]
        for index, (low, high) in limits.items():
            for holder in (loop, *own):
                yield (holder, index), of_integers(low, high)


#: Names the impossible among the outcomes of a decision, given the ranges of all operands.
_Rule: TypeAlias = Callable[[Decision, Sequence[MachineRange]], Iterator[str]]


def unreachable_outcomes(
    calls: CallGraph, decisions: Iterable[Decision]
) -> Mapping[Decision, frozenset[str]]:
    """Outcomes that cannot occur, of the decisions that have such.

    Args:
        calls: of the program.
        decisions: of the program.
    """
    ranges = MachineRanges(calls)
    found: dict[Decision, frozenset[str]] = {}
    for decision in decisions:
        rule = _RULES.get(decision.kind)
        if rule is not None:
            operands = [ranges.of(operand) for operand in decision.instruction.operands]
            if outcomes := frozenset(rule(decision, operands)).intersection(decision.all_outcomes):
                found[decision] = outcomes
    return found


def _comparison(_: Decision, operands: Sequence[MachineRange]) -> Iterator[str]:
    orders = possible_orders(*operands)
    yield from {"less", "equal", "greater"} - orders
    if orders == {"equal"}:
        yield "unequal"


def _extremum(_: Decision, operands: Sequence[MachineRange]) -> Iterator[str]:
    orders = possible_orders(*operands)
    if "greater" not in orders:
        yield "first larger"
    if "less" not in orders:
        yield "second larger"


def _clamping(_: Decision, operands: Sequence[MachineRange]) -> Iterator[str]:
    low, value, high = operands
    if value.low >= low.high:
        yield "below"
    if value.high <= high.low:
        yield "above"


def _selection(_: Decision, operands: Sequence[MachineRange]) -> Iterator[str]:
    if operands[0].high == 0:
        yield "true"
    if operands[0].low == 1:
        yield "false"


def _logic(_: Decision, operands: Sequence[MachineRange]) -> Iterator[str]:
    a, b = operands
    if 0 in (a.high, b.high):
        yield "both"
    if 1 in (a.low, b.low):
        yield "neither"
    if a.high == 0 or b.low == 1:
        yield "only the first"
    if b.high == 0 or a.low == 1:
        yield "only the second"


def _branch(decision: Decision, operands: Sequence[MachineRange]) -> Iterator[str]:
    if decision.outcomes == ("true", "false"):
        yield from _selection(decision, operands)
        return
    index, last = operands[0], len(decision.outcomes) - 1
    yield from (o for number, o in enumerate(decision.outcomes) if not index.low <= number <= index.high)
    if index.low >= 0 and index.high <= last:
        yield "out of range"


def _trip_count(decision: Decision, _: Sequence[MachineRange]) -> Iterator[str]:
    trips = static_trip_count(decision.instruction)
    most = most_trips(decision.instruction) if trips is None else trips
    if most is not None:
        yield from decision.outcomes[most + 1 :]
    if trips is not None:
        yield from decision.outcomes[: min(trips, 2)]


def _start_index(decision: Decision, operands: Sequence[MachineRange]) -> Iterator[str]:
    start = decision.start
    assert start is not None
    index = operands[start.operand]
    possible = {
        "below": index.low < 0,
        "first": index.low <= 0 <= index.high,
        "inner": index.low < start.limit and index.high > 0,
        "last": index.low <= start.limit <= index.high,
        "above": index.high > start.limit,
    }
    yield from (outcome for outcome, may_be in possible.items() if not may_be)


def _division(decision: Decision, operands: Sequence[MachineRange]) -> Iterator[str]:
    a, b = operands
    if b.low > 0 or b.high < 0:
        yield "by zero"
    if a.low >= 0:
        yield from ("-/+", "-/-")
    if a.high <= 0:
        yield from ("+/+", "+/-")
    if b.low >= 0:
        yield from ("+/-", "-/-")
    if b.high <= 0:
        yield from ("+/+", "-/+")
    if b.is_point and abs(b.low) == 1:
        yield from ("+/+", "-/+", "+/-", "-/-", "inexact")
    if a.low > of_type(decision.instruction.element_type).low or b.low >= 0 or b.high < -1:
        yield "overflow"


def _shift(decision: Decision, operands: Sequence[MachineRange]) -> Iterator[str]:
    amount, bits = operands[1], decision.instruction.element_type.bits
    if amount.low > 0 or amount.high < 0:
        yield "zero"
    if amount.low >= bits or amount.high <= 0:
        yield "in range"
    if amount.low >= 0 and amount.high < bits:
        yield "too large"


def _sign(_: Decision, operands: Sequence[MachineRange]) -> Iterator[str]:
    if operands[0].low >= 0:
        yield "negative"
    if operands[0].high < 0:
        yield "not negative"


def _conversion(decision: Decision, operands: Sequence[MachineRange]) -> Iterator[str]:
    (value,), instruction = operands, decision.instruction
    source, target = instruction.operands[0], instruction.element_type
    yield from _sign(decision, operands)
    if source.element_type is ElementType.PRED:
        yield from _selection(decision, operands)
    if target is ElementType.PRED:
        if value.low > 0 or value.high < 0:
            yield "zero"
        if value.low == value.high == 0:
            yield "not zero"
    elif target.is_integer:
        low, high = integer_limits(target)
        if value.low > low - 1 and value.high < high + 1:
            yield from ("wraps", "too small", "too large")
        if value.high <= 0 or source.opcode in _INTEGRAL:
            yield "positive fraction"
        if value.low >= 0 or source.opcode in _INTEGRAL:
            yield "negative fraction"
        if source.opcode in _INTEGRAL:
            yield "fraction"


#: Floats that they return are integers.
_INTEGRAL: Final = opcodes_with(Trait.TO_INTEGER) | {"sign"}


def _overflow(decision: Decision, operands: Sequence[MachineRange]) -> Iterator[str]:
    limits = of_type(decision.instruction.element_type)
    found = unwrapped(decision.instruction, operands)
    if found is not None and found.within(limits.low, limits.high):
        yield "wraps"


def _groups(_: Decision, operands: Sequence[MachineRange]) -> Iterator[str]:
    if operands[2].low > 0:
        yield "empty"
    if operands[2].high <= 0:
        yield "not empty"


_RULES: Final[Mapping[Kind, _Rule]] = {
    Kind.COMPARISON: _comparison,
    Kind.EXTREMUM: _extremum,
    Kind.CLAMPING: _clamping,
    Kind.SELECTION: _selection,
    Kind.LOGIC: _logic,
    Kind.BRANCH: _branch,
    Kind.TRIP_COUNT: _trip_count,
    Kind.START_INDEX: _start_index,
    Kind.DIVISION: _division,
    Kind.SHIFT: _shift,
    Kind.SIGN: _sign,
    Kind.CONVERSION: _conversion,
    Kind.OVERFLOW: _overflow,
    Kind.GROUPS: _groups,
}
