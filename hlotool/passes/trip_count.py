"""How often a loop runs, where the program says so. XLA: while_loop_analysis.cc.

That is so when its condition compares a counter, which starts at a constant and changes by a constant, with a
constant; constants may also be carried through the loop unchanged. Integers wrap as they do at run time.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hlotool.ir.dtypes import integer_limits
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.types import ArrayShape, ElementType
from hlotool.passes.constants import integer_constant

_COMPARISONS: Mapping[str, Callable[[int, int], bool]] = {
    "EQ": operator.eq,
    "NE": operator.ne,
    "LT": operator.lt,
    "LE": operator.le,
    "GT": operator.gt,
    "GE": operator.ge,
}
#: Instructions that hand a scalar on.
_TRANSPARENT = frozenset({"copy", "reshape", "bitcast"})


@dataclass(frozen=True, slots=True)
class Counter:
    """An integer that a loop carries.

    Attributes:
        start: before the first iteration.
        step: added by each iteration; 0 for what stays.
        element_type: that it wraps in.
    """

    start: int
    step: int
    element_type: ElementType

    def after(self, iterations: int) -> int:
        """Its value then."""
        low, high = integer_limits(self.element_type)
        return (self.start + iterations * self.step - low) % (high - low + 1) + low


def trip_count(loop: Instruction, limit: int) -> int | None:
    """The number of iterations of a `while`, None where that is not known or more than `limit`."""
    condition, body = loop.attributes["condition"], loop.attributes["body"]
    assert isinstance(condition, Computation)
    assert isinstance(body, Computation)
    counts = _Counts(loop, condition, body)
    goes_on = counts.test(condition.root)
    if goes_on is None:
        return None
    return next((n for n in range(limit + 1) if not goes_on(n)), None)


@dataclass(frozen=True, slots=True)
class _Counts:
    """What is known of the values that a loop carries."""

    loop: Instruction
    condition: Computation
    body: Computation

    def test(self, predicate: Instruction) -> Callable[[int], bool] | None:
        """Whether the loop goes on after so many iterations."""
        predicate = _look_through(predicate)
        if predicate.opcode == "and":
            left, right = map(self.test, predicate.operands)
            if left is None or right is None:
                return None
            return lambda n: left(n) and right(n)
        if predicate.opcode != "compare":
            return None
        counters = [self.counter(o) for o in predicate.operands]
        direction = predicate.attributes["direction"]
        if counters[0] is None or counters[1] is None or not isinstance(direction, str):
            return None
        first, second, holds = counters[0], counters[1], _COMPARISONS[direction]
        return lambda n: holds(first.after(n), second.after(n))

    def counter(self, value: Instruction) -> Counter | None:
        """What `value` of the condition is."""
        value = _look_through(value)
        known = integer_constant(value)
        if known is not None and isinstance(value.shape, ArrayShape):
            return Counter(known, 0, value.shape.element_type)
        index = _element(value, self.condition.parameters[0])
        return self.carried(index) if index is not None else None

    def carried(self, index: int) -> Counter | None:
        """Element `index` of the state, when it starts at a constant and changes by one."""
        start = self._start(index)
        step = self._step(index)
        if start is None or step is None:
            return None
        value, element_type = start
        return Counter(value, step, element_type)

    def _start(self, index: int) -> tuple[int, ElementType] | None:
        state = self.loop.operands[0]
        if state.opcode != "tuple":
            return None
        value = _look_through(state.operands[index])
        known = integer_constant(value)
        if known is None or not isinstance(value.shape, ArrayShape):
            return None
        return known, value.shape.element_type

    def _step(self, index: int) -> int | None:
        parameter, root = self.body.parameters[0], self.body.root
        if root is parameter:
            return 0
        if root.opcode != "tuple":
            return None
        value = _look_through(root.operands[index])
        if _element(value, parameter) == index:
            return 0
        if value.opcode not in ("add", "subtract"):
            return None
        left, right = map(_look_through, value.operands)
        if value.opcode == "add" and _element(right, parameter) == index:
            left, right = right, left
        step = self._step_constant(right) if _element(left, parameter) == index else None
        return -step if step is not None and value.opcode == "subtract" else step

    def _step_constant(self, value: Instruction) -> int | None:
        """A constant, or one that is carried through the loop."""
        known = integer_constant(value)
        index = _element(value, self.body.parameters[0])
        if known is not None or index is None:
            return known
        carried = self._start(index)
        return carried[0] if carried is not None and self._step(index) == 0 else None


def _look_through(value: Instruction) -> Instruction:
    while value.opcode in _TRANSPARENT:
        value = value.operands[0]
    return value


def _element(value: Instruction, parameter: Instruction) -> int | None:
    """Which element of the loop's state `value` is."""
    if value.opcode != "get-tuple-element" or value.operands[0] is not parameter:
        return None
    index = value.attributes["index"]
    return index if isinstance(index, int) else None
