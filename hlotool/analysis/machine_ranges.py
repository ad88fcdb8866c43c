"""Where the values of a program are sure to lie at run time, whatever its arguments are.

`signs` knows more, of real numbers. This is for proofs about what a program executes.
"""

from __future__ import annotations

from collections.abc import Iterator

from hlotool.analysis.calls import CallGraph
from hlotool.analysis.flow import Part, computed_by, handed_on
from hlotool.analysis.machine_range import MachineRange, of_integers, of_shape
from hlotool.analysis.machine_rules import range_of
from hlotool.analysis.trip_counts import counter_limits
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape


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
