"""How often loops run, where the program says so. XLA: while_loop_analysis.cc.

That is so when a loop's condition compares integers that change by a constant in every iteration, or stay.
What they are is read off the body and the condition, through calls, fusions and tuples, with the loop's state
as the unknown; constants may also be carried through the loop unchanged. Integers wrap as at run time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from hlotool.facts.recognition import integer_constant
from hlotool.ir.arrays import integer_limits
from hlotool.ir.attributes import BackendConfig
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.types import ArrayShape, ElementType, Shape, ShapeIndex, TupleShape, subshape

#: Trip count assumed for a loop without a known one: enough for sums over it to be seen as sums.
UNKNOWN_TRIPS = 64
#: What is expected of one that ends by what it computes: drawing until a number is accepted goes round twice,
#: solvers ten times, and of loops in loops each is one of them.
_EXPECTED_TRIPS = 8
#: Nested loops are not counted beyond this: bounds of rounding errors are useless long before.
MOST_REPETITIONS = 1 << 40
#: How often a counter may wrap around before the loop is taken for one that does not end.
_MOST_WRAPS = 1024
#: How deep expressions are read, and how much of that a call takes: counters are an addition or two away from
#: the loop's state, in fusions that are not nested, so that more would cost time and show nothing.
_DEEPEST, _CALL_DEPTH = 64, 8
#: What hands integers on, or combines them in a way that is understood.
_READ = frozenset(
    {
        "add", "and", "bitcast", "call", "compare", "copy", "fusion", "get-tuple-element", "opt-barrier",
        "reshape", "subtract", "tuple",
    }
)  # fmt: skip


def most_trips_assumed(loop: Instruction) -> int:
    """How often its body runs at most, as far as that is known; at least once, for the condition does."""
    known = known_trip_count(loop)
    if known is None:
        known = most_trips(loop)
    return UNKNOWN_TRIPS if known is None else max(1, known)


def trips_expected(loop: Instruction) -> int:
    """How often its body is taken to run: a limit beside another condition may be far from being reached."""
    known = trip_count(loop)
    if known is None:
        most = most_trips(loop)
        known = _EXPECTED_TRIPS if most is None else min(most, _EXPECTED_TRIPS)
    return max(1, known)


def loop_repetitions(
    module: Module, trips: Callable[[Instruction], int] = most_trips_assumed
) -> dict[Computation, int]:
    """Iterations of all loops around each computation that the entry reaches; 1 outside of loops.

    Args:
        module: in question.
        trips: those of one loop.
    """
    repetitions = {module.entry: 1}
    pending = [module.entry]
    while pending:
        caller = pending.pop()
        for instruction in caller.instructions:
            count = trips(instruction) if instruction.opcode == "while" else 1
            times = min(repetitions[caller] * count, MOST_REPETITIONS)
            for callee in instruction.called:
                if times > repetitions.get(callee, 0):
                    repetitions[callee] = times
                    pending.append(callee)
    return repetitions


def trip_count(loop: Instruction) -> int | None:
    """The number of iterations of a `while`: as XLA wrote it down, or else as the program shows."""
    known = known_trip_count(loop)
    return static_trip_count(loop) if known is None else known


def known_trip_count(loop: Instruction) -> int | None:
    """What XLA found out and wrote down: `backend_config={"known_trip_count":{"n":"5"}}`."""
    config = loop.attributes.get("backend_config")
    if not isinstance(config, BackendConfig):
        return None
    try:
        return int(json.loads(config.text)["known_trip_count"]["n"])
    except (ValueError, KeyError, TypeError):
        return None


def static_trip_count(loop: Instruction) -> int | None:
    """The number of iterations that follows from the program; None where it depends on more."""
    test = _Loop(loop).test()
    ends = [comparison.first_failure() for comparison in test.comparisons]
    known = [end for end in ends if end is not None]
    return min(known, default=None) if test.is_all and len(known) == len(ends) else None


def false_trip_counts(module: Module) -> Iterator[tuple[Instruction, int, int]]:
    """Loops whose stated number of iterations is not the one that follows from the program: both numbers."""
    for loop in module.instructions():
        if loop.opcode == "while":
            stated, true = known_trip_count(loop), static_trip_count(loop)
            if stated is not None and true is not None and stated != true:
                yield loop, stated, true


def most_trips(loop: Instruction) -> int | None:
    """A number of iterations that the loop cannot exceed, as one part of its condition shows."""
    ends = (comparison.first_failure() for comparison in _Loop(loop).test().comparisons)
    return min((end for end in ends if end is not None), default=None)


def counter_limits(loop: Instruction) -> dict[ShapeIndex, tuple[int, int]]:
    """The least and the greatest value of integers in a loop's state that are counted from a constant.

    What the state holds before the first iteration and after the last one is included.
    """
    return dict(_Loop(loop).limits())


class _Term(Struct, frozen=True):
    """An integer scalar: a leaf of the loop's state plus an offset, or a constant.

    Attributes:
        leaf: which leaf of the state, None for a constant.
        offset: added to it; the constant itself.
    """

    leaf: ShapeIndex | None
    offset: int


class _Counter(Struct, frozen=True):
    """A term, iteration by iteration.

    Attributes:
        start: in the first iteration.
        step: added by each iteration; 0 for what stays.
        element_type: that it wraps in.
    """

    start: int
    step: int
    element_type: ElementType

    def after(self, iterations: int) -> _Counter:
        """The counter of a loop that goes on from there."""
        low, high = integer_limits(self.element_type)
        return replace(self, start=(self.start + iterations * self.step - low) % (high - low + 1) + low)

    @property
    def until_wrap(self) -> int | None:
        """Iterations before the one in which it first wraps around; None where it stays."""
        low, high = integer_limits(self.element_type)
        if self.step == 0:
            return None
        return (high - self.start) // self.step if self.step > 0 else (self.start - low) // -self.step


class _Comparison(Struct, frozen=True):
    """A comparison of two counters.

    Attributes:
        direction: `EQ`, `NE`, `LT`, `LE`, `GT` or `GE`.
        left: one counter.
        right: the other.
    """

    direction: str
    left: _Counter
    right: _Counter

    def first_failure(self) -> int | None:
        """The first iteration, from 0, before which it does not hold; None where none is found."""
        done, left, right = 0, self.left.after(0), self.right.after(0)
        for _ in range(_MOST_WRAPS):
            end = _first_failure(self.direction, left.start - right.start, left.step - right.step)
            wraps = [n for n in (left.until_wrap, right.until_wrap) if n is not None]
            straight = min(wraps, default=None)
            if end is not None and (straight is None or end <= straight):
                return done + end
            if straight is None:
                return None
            # Up to the wrap it holds: go on behind it.
            done, left, right = done + straight + 1, left.after(straight + 1), right.after(straight + 1)
        return None


def _first_failure(direction: str, difference: int, slope: int) -> int | None:
    """The smallest n from 0 for which `difference + n * slope` does not compare to 0 like that."""
    if direction in ("GT", "GE"):
        direction, difference, slope = {"GT": "LT", "GE": "LE"}[direction], -difference, -slope
    match direction:
        case "LT" | "LE":
            short = -difference if direction == "LT" else 1 - difference
            if short <= 0:
                return 0
            return -(-short // slope) if slope > 0 else None
        case "EQ":
            return 0 if difference else (1 if slope else None)
        case "NE":
            if difference == 0:
                return 0
            whole = slope != 0 and difference % slope == 0 and -difference // slope > 0
            return -difference // slope if whole else None
    return None


class _Test(Struct, frozen=True):
    """A predicate: all of these comparisons hold, and more where `is_all` is false."""

    comparisons: tuple[_Comparison, ...] = ()
    is_all: bool = True


#: What is known of a value: nothing (None), an integer, a predicate, or the elements of a tuple.
_Known: TypeAlias = "_Term | _Test | tuple[_Known, ...] | None"


class _Loop:
    """What is known of the integers that a loop carries."""

    def __init__(self, loop: Instruction) -> None:
        state = _state(loop.shape)
        starts = dict(_leaves(_Reader((), {}).read(loop.operands[0])))
        self._counters: dict[ShapeIndex, tuple[int, int]] = {}
        # What stays is a constant for what changes: first the one, then the other.
        for _ in range(2):
            result = _Reader((state,), self._counters).read(loop.computation("body").root)
            for leaf, value in _leaves(result):
                start = starts.get(leaf)
                if start is not None and start.leaf is None and value.leaf == leaf:
                    self._counters[leaf] = start.offset, value.offset
        self._state = state
        self._shape = loop.shape
        self._condition = loop.computation("condition")

    def test(self) -> _Test:
        """What the condition compares."""
        found = self._reader().read(self._condition.root)
        return found if isinstance(found, _Test) else _Test(is_all=False)

    def limits(self) -> Iterator[tuple[ShapeIndex, tuple[int, int]]]:
        """See `counter_limits`."""
        ends = (comparison.first_failure() for comparison in self.test().comparisons)
        trips = min((end for end in ends if end is not None), default=None)
        counted_to_a_limit = set(_below(self._condition.root, self._reader()))
        for leaf, (start, step) in self._counters.items():
            shape = subshape(self._shape, leaf)
            assert isinstance(shape, ArrayShape)
            low, high = integer_limits(shape.element_type)
            if step == 0:
                yield leaf, (start, start)
            elif trips is not None and low <= start + trips * step <= high:
                end = start + trips * step
                yield leaf, (min(start, end), max(start, end))
            elif step == 1 and leaf in counted_to_a_limit:
                # An iteration takes place only below some number of the same type: adding 1 does not wrap.
                yield leaf, (start, high)

    def _reader(self) -> _Reader:
        """Of the condition."""
        return _Reader((self._state,), self._counters)


def _below(test: Instruction, reader: _Reader, depth: int = 0) -> Iterator[ShapeIndex]:
    """Leaves of the state that are less than something wherever the loop goes on."""
    if depth > _DEEPEST:
        return
    if test.opcode == "and":
        for operand in test.operands:
            yield from _below(operand, reader, depth + 1)
    elif test.opcode in ("call", "fusion"):
        inside = _Reader([reader.read(operand) for operand in test.operands], reader.counters)
        yield from _below(next(test.called).root, inside, depth + _CALL_DEPTH)
    elif test.opcode == "compare" and test.text("direction") in ("LT", "GT"):
        smaller = test.operands[0 if test.text("direction") == "LT" else 1]
        term = reader.read(smaller)
        if isinstance(term, _Term) and term.leaf is not None and term.offset == 0:
            yield term.leaf


def _state(shape: Shape, index: ShapeIndex = ()) -> _Known:
    """The state of a loop before an iteration, every integer scalar as an unknown."""
    if isinstance(shape, TupleShape):
        return tuple(_state(element, (*index, number)) for number, element in enumerate(shape.elements))
    return _Term(index, 0) if _is_integer(shape) else None


def _is_integer(shape: Shape) -> bool:
    """Whether it is that of an integer scalar."""
    return isinstance(shape, ArrayShape) and shape.size == 1 and shape.element_type.is_integer


def _leaves(value: _Known, index: ShapeIndex = ()) -> Iterator[tuple[ShapeIndex, _Term]]:
    if isinstance(value, tuple):
        for number, element in enumerate(value):
            yield from _leaves(element, (*index, number))
    elif isinstance(value, _Term):
        yield index, value


class _Reader:
    """Reads instructions of one computation.

    Args:
        arguments: what is known of its parameters.
        counters: start and step of leaves of the loop's state, as far as they are known.
    """

    def __init__(self, arguments: Sequence[_Known], counters: Mapping[ShapeIndex, tuple[int, int]]) -> None:
        self._arguments = arguments
        self.counters = counters
        self._known: dict[Instruction, _Known] = {}

    def read(self, instruction: Instruction, depth: int = 0) -> _Known:
        """What is known of the value of `instruction`."""
        if instruction not in self._known and depth <= _DEEPEST:
            self._known[instruction] = self._read(instruction, depth)
        return self._known.get(instruction)

    def _read(self, instruction: Instruction, depth: int) -> _Known:
        opcode = instruction.opcode
        if opcode == "parameter":
            return self._arguments[instruction.parameter_number or 0] if self._arguments else None
        if opcode == "constant":
            constant = integer_constant(instruction) if _is_integer(instruction.shape) else None
            return None if constant is None else _Term(None, constant)
        if opcode not in _READ:
            return None
        known = [self.read(operand, depth + 1) for operand in instruction.operands]
        match opcode, known:
            case "tuple", _:
                return tuple(known)
            case "copy" | "reshape" | "bitcast" | "opt-barrier", [value]:
                return value
            case "get-tuple-element", [tuple(parts)]:
                return parts[instruction.integer("index")]
            case "add", [_Term() as left, _Term() as right]:
                return self._sum(left, right)
            case "subtract", [_Term() as left, _Term() as right]:
                taken = self.constant(right)
                return None if taken is None else replace(left, offset=left.offset - taken)
            case "compare", [_Term() as left, _Term() as right]:
                return self._compared(instruction, left, right)
            case "and", [left, right]:
                return _both(left, right)
            case "call" | "fusion", _:
                root = next(instruction.called).root
                return _Reader(known, self.counters).read(root, depth + _CALL_DEPTH)
        return None

    def constant(self, term: _Term) -> int | None:
        """Its value where it is the same in every iteration."""
        if term.leaf is None:
            return term.offset
        start, step = self.counters.get(term.leaf, (0, 1))
        return start + term.offset if step == 0 else None

    def _sum(self, left: _Term, right: _Term) -> _Term | None:
        for term, other in ((left, right), (right, left)):
            constant = self.constant(other)
            if constant is not None:
                return replace(term, offset=term.offset + constant)
        return None

    def _compared(self, compare: Instruction, left: _Term, right: _Term) -> _Test:
        one, other = (self._counter(term, compare.operands[0].element_type) for term in (left, right))
        if one is None or other is None:
            return _Test(is_all=False)
        return _Test((_Comparison(compare.text("direction"), one, other),))

    def _counter(self, term: _Term, element_type: ElementType) -> _Counter | None:
        if term.leaf is None:
            return _Counter(term.offset, 0, element_type)
        if term.leaf not in self.counters:
            return None
        start, step = self.counters[term.leaf]
        return _Counter(start + term.offset, step, element_type)


def _both(left: _Known, right: _Known) -> _Test:
    tests = [known if isinstance(known, _Test) else _Test(is_all=False) for known in (left, right)]
    comparisons = (comparison for test in tests for comparison in test.comparisons)
    return _Test(tuple(comparisons), all(test.is_all for test in tests))
