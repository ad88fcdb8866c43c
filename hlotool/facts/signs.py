"""Signs, ranges and inequalities of a program's values as real numbers, and the laws behind them.

`abs(x) → x` and `max(x, 0) → x` are the same function where x is known not to be negative, and only there.
The ranges are those of `ranges`, carried through tuples, calls, fusions and loops, and narrowed by
inequalities between two values, which are found by their form: a softmax is at most 1, its logarithm at
most 0, no element exceeds the maximum, a mean of squares is at least the square of the mean. The two sides
are recognised wherever they are computed (`ValueNumbers` of `flow`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from math import isclose, prod
from typing import Any, Final

import ml_dtypes
import numpy as np
import numpy.typing as npt

from hlotool.facts.flow import CallGraph, ValueNumbers, computed_by, handed_on, reducing_opcode
from hlotool.facts.ranges import ABOVE_ZERO, ANY, Interval, range_of, type_limits
from hlotool.facts.recognition import uniform
from hlotool.ir.arrays import integer_limits
from hlotool.ir.module import Instruction, Module
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import ArrayShape

#: They put elements at other places.
_MOVES = opcodes_with(Trait.REGROUPS)
#: The values of larger arrays are not traced element by element.
_MOST_ELEMENTS = 1 << 20


class Law(Enum):
    """Why a value is known to lie where it lies."""

    CONSTANT = "a constant is what it is, an iota from 0 to its size"
    MOVED = "what is moved, repeated or selected stays in its range"
    SUM = "sums and differences of ranges"
    PRODUCT = "products and quotients of ranges"
    SQUARE = "x x ≥ 0, and even powers of x"
    ABSOLUTE = "|x| ≥ 0"
    EXPONENTIAL = "exp(x) ≥ 0, cosh(x) ≥ 1"
    ROOT = "√x ≥ 0"
    BOUNDED = "logistic from 0 to 1; tanh, erf, sin and cos from -1 to 1"
    CHOSEN = "max, min and clamp stay within their operands' ranges"
    MONOTONE = "log keeps order"
    BELOW_MAXIMUM = "no element exceeds the maximum"
    SHARE = "a part is at most the sum of parts that are not negative"
    LOG_SHARE = "x ≤ log Σ exp(x)"
    VARIANCE = "the square of a mean is at most the mean of the squares"


@dataclass(frozen=True, slots=True)
class _Reduced:
    """A reduction whose result stands beside every element of what was reduced."""

    source: Instruction
    start: Instruction
    opcode: str


class Inequalities:
    """What is known of two values of one program.

    Args:
        numbers: which values are the same.
    """

    def __init__(self, numbers: ValueNumbers) -> None:
        self._numbers = numbers

    def at_most(self, a: Instruction, b: Instruction) -> Law | None:
        """The law by which a ≤ b in every element; None where none is found."""
        a, b = self._origin(a), self._origin(b)
        if self._is_extremum(b, "maximum", a) or self._is_extremum(a, "minimum", b):
            return Law.BELOW_MAXIMUM
        if self._is_log_sum_exp(b, a):
            return Law.LOG_SHARE
        return Law.VARIANCE if self._is_variance(a, b) else None

    def is_share(self, part: Instruction, whole: Instruction) -> bool:
        """Whether `whole` is the sum of `part` and others, and of a start that is not negative, beside each.

        That none of them is negative is for the caller to know.
        """
        reduced = self._beside(self._origin(whole), part)
        return (
            reduced is not None
            and reduced.opcode == "add"
            and self._is_not_negative(reduced.start)
            and self._numbers.same(reduced.source, part)
        )

    def _origin(self, instruction: Instruction) -> Instruction:
        return self._numbers.origin(instruction)

    def _is_extremum(self, value: Instruction, opcode: str, of: Instruction) -> bool:
        reduced = self._beside(value, of)
        return reduced is not None and reduced.opcode == opcode and self._numbers.same(reduced.source, of)

    def _is_log_sum_exp(self, value: Instruction, of: Instruction) -> bool:
        reduced = self._beside(value, of, through="log")
        if reduced is None or reduced.opcode != "add" or not self._is_not_negative(reduced.start):
            return False
        summed = self._origin(reduced.source)
        return summed.opcode == "exponential" and self._numbers.same(summed.operands[0], of)

    def _is_not_negative(self, start: Instruction) -> bool:
        value = uniform(self._origin(start))
        return value is not None and not np.iscomplexobj(value) and float(value) >= 0

    def _is_variance(self, a: Instruction, b: Instruction) -> bool:
        """Whether a = mean(x)² and b = mean(x²) over the same dimensions."""
        if a.opcode != "multiply" or not self._numbers.same(*a.operands):
            return False
        mean, mean_of_squares = self._mean(a.operands[0]), self._mean(b)
        if mean is None or mean_of_squares is None:
            return False
        (first, first_axes), (second, second_axes) = mean, mean_of_squares
        square = self._origin(second)
        return (
            first_axes == second_axes
            and square.opcode == "multiply"
            and all(self._numbers.same(operand, first) for operand in square.operands)
        )

    def _mean(self, value: Instruction) -> tuple[Instruction, tuple[int, ...]] | None:
        """What `value` is the mean of, and over which dimensions; the number of terms may be rounded."""
        value = self._origin(value)
        if value.opcode not in ("divide", "multiply"):
            return None
        pairs = [value.operands] if value.opcode == "divide" else [value.operands, value.operands[::-1]]
        for total, factor in pairs:
            total, scale = self._origin(total), uniform(self._origin(factor))
            if scale is None or total.opcode != "reduce" or not self._is_sum_from_zero(total):
                continue
            axes = total.integers("dimensions")
            count = prod(total.operands[0].dims[d] for d in axes)
            expected = count if value.opcode == "divide" else 1 / max(count, 1)
            if isclose(float(scale), expected, rel_tol=_rounding(scale)):
                return total.operands[0], tuple(axes)
        return None

    def _is_sum_from_zero(self, reduction: Instruction) -> bool:
        start = uniform(self._origin(reduction.operands[1])) if len(reduction.operands) == 2 else None
        return start is not None and not start and reducing_opcode(reduction.computation("to_apply")) == "add"

    def _beside(self, value: Instruction, like: Instruction, through: str = "") -> _Reduced | None:
        """The reduction that `value` is, put beside every element of an array of the dimensions of `like`.

        Args:
            value: a reduction that was broadcast.
            like: what was reduced has its dimensions.
            through: an elementwise function that was applied on the way, if any.
        """
        moves = []
        is_through = not through
        value = self._origin(value)
        while value.opcode in _MOVES or (not is_through and value.opcode == through):
            if value.opcode == through:
                is_through = True
            else:
                moves.append(value)
            value = self._origin(value.operands[0])
        if not is_through or value.opcode != "reduce" or len(value.operands) != 2:
            return None
        opcode, shape = reducing_opcode(value.computation("to_apply")), like.shape
        source, start = value.operands
        if opcode is None or not isinstance(shape, ArrayShape) or source.dims != shape.dims:
            return None
        if shape.size > _MOST_ELEMENTS or not _is_at_its_place(value, moves):
            return None
        return _Reduced(source, start, opcode)


def _is_at_its_place(reduction: Instruction, moves: Sequence[Instruction]) -> bool:
    """Whether `moves`, the last one first, put every result beside the elements that it was reduced from."""
    axes, dims = reduction.integers("dimensions"), reduction.operands[0].dims
    places = np.arange(reduction.array_shape.size).reshape(reduction.dims)
    expected = np.broadcast_to(np.expand_dims(places, tuple(axes)), dims)
    for move in reversed(moves):
        moved = _moved(places, move)
        if moved is None:
            return False
        places = moved
    return np.array_equal(places, expected)


def _moved(places: npt.NDArray[np.int64], move: Instruction) -> npt.NDArray[np.int64] | None:
    """What a broadcast, transpose, reshape or bitcast makes of an array; None where layouts matter."""
    source, result = move.operands[0].array_shape, move.array_shape
    if move.opcode == "transpose":
        return places.transpose(move.integers("dimensions"))
    if move.opcode == "broadcast":
        targets = move.integers("dimensions", ())
        order = np.argsort(targets)
        sizes = [size if d in targets else 1 for d, size in enumerate(result.dims)]
        return np.broadcast_to(places.transpose(order).reshape(sizes), result.dims)
    if move.opcode == "bitcast" and not (_is_row_major(source) and _is_row_major(result)):
        return None
    if source.element_type.bits != result.element_type.bits:
        return None
    return places.reshape(result.dims)


def _rounding(number: np.generic[Any]) -> float:
    """The relative distance of two numbers of its type."""
    return float(ml_dtypes.finfo(number.dtype).eps)  # type: ignore[no-untyped-call]


def _is_row_major(shape: ArrayShape) -> bool:
    return shape.minor_to_major == tuple(range(shape.rank - 1, -1, -1))


NO_LAWS: frozenset[Law] = frozenset()


@dataclass(frozen=True, slots=True)
class Fact:
    """Where the elements of a value lie.

    Attributes:
        interval: from low to high, both included.
        laws: by which that is known; empty where nothing is.
    """

    interval: Interval = ANY
    laws: frozenset[Law] = NO_LAWS


class Order(Enum):
    """How two values are known to compare, in every element."""

    AT_MOST = "≤"
    AT_LEAST = "≥"


class Signs:
    """Facts about the values that a module's entry reaches, for real numbers.

    The module must not change meanwhile. Integers are left out where they may wrap around.

    Args:
        module: the program.
    """

    def __init__(self, module: Module) -> None:
        self._calls = CallGraph(module)
        self._numbers = ValueNumbers(self._calls)
        self._inequalities = Inequalities(self._numbers)
        self._facts: dict[Instruction, Fact] = {}
        for instruction in self._calls.in_order_of_execution():
            if next(handed_on((instruction, ()), self._calls), None) is None:
                self._facts[instruction] = self._computed(instruction)

    def of(self, instruction: Instruction) -> Fact:
        """Where the values of an instruction lie; nothing is known inside reducers and of tuples."""
        fact = self._facts.get(instruction)
        if fact is not None:
            return fact
        if instruction not in self._calls.home:
            return Fact()
        return _union(self._facts.get(source, Fact()) for source, _ in computed_by(instruction, self._calls))

    def order(self, a: Instruction, b: Instruction) -> tuple[Order, frozenset[Law]] | None:
        """How all elements of `a` compare with those of `b`; None where it depends on the arguments."""
        x, y = self.of(a), self.of(b)
        for order, lower, upper, low, high in ((Order.AT_MOST, x, y, a, b), (Order.AT_LEAST, y, x, b, a)):
            if lower.interval.high <= upper.interval.low:
                return order, lower.laws | upper.laws
            if low in self._calls.home and high in self._calls.home:
                law = self._inequalities.at_most(low, high)
                if law is not None:
                    return order, frozenset({law})
        return None

    def _computed(self, instruction: Instruction) -> Fact:
        """The fact about a value, given those about its operands."""
        shape = instruction.shape
        if not isinstance(shape, ArrayShape) or shape.element_type.is_complex:
            return Fact()
        limits = type_limits(shape)
        operands = [self.of(operand) for operand in instruction.operands]
        found, laws = limits, NO_LAWS
        if _is_understood(instruction):
            found = _closed(range_of(instruction, [fact.interval for fact in operands]))
            laws = _LAWS[instruction.opcode]
            if found != _closed(range_of(instruction, [ANY] * len(operands))):
                laws = laws.union(*(fact.laws for fact in operands))
        found, laws = self._narrowed(instruction, operands, found, laws)
        if shape.element_type.is_integer and not _fits(found, shape):
            found = limits
        return Fact(found, laws) if found != limits else Fact(limits)

    def _narrowed(
        self, instruction: Instruction, operands: list[Fact], found: Interval, laws: frozenset[Law]
    ) -> tuple[Interval, frozenset[Law]]:
        """What an inequality between the operands adds."""
        opcode = instruction.opcode
        if opcode == "subtract" and instruction.array_shape.element_type.is_floating:
            a, b = instruction.operands
            return self._difference(a, b, found, laws)
        if opcode == "multiply" and found.low <= 0 and self._numbers.same(*instruction.operands):
            return Interval(0, found.high), frozenset({Law.SQUARE})
        is_large_part = opcode == "divide" and operands[0].interval.low >= 0 and found.high > 1
        if is_large_part and self._inequalities.is_share(*instruction.operands):
            return Interval(0, 1), operands[0].laws | {Law.SHARE}
        return found, laws

    def _difference(
        self, a: Instruction, b: Instruction, found: Interval, laws: frozenset[Law]
    ) -> tuple[Interval, frozenset[Law]]:
        """The same of a - b."""
        if found.high > 0 and (law := self._inequalities.at_most(a, b)) is not None:
            return found.intersect(Interval(high=0)), frozenset({law})
        if found.low < 0 and (law := self._inequalities.at_most(b, a)) is not None:
            return found.intersect(Interval(0)), frozenset({law})
        return found, laws


def _union(facts: Iterable[Fact]) -> Fact:
    """What holds for values of which each has one of `facts`."""
    interval, laws = None, NO_LAWS
    for fact in facts:
        interval = fact.interval if interval is None else interval.union(fact.interval)
        laws |= fact.laws
    return Fact() if interval is None or interval == ANY else Fact(interval, laws)


def _closed(interval: Interval) -> Interval:
    """With 0 itself where the range only stays above 0: how far above is not known."""
    return Interval(0.0 if 0 < interval.low <= ABOVE_ZERO else interval.low, interval.high)


def _fits(interval: Interval, shape: ArrayShape) -> bool:
    low, high = integer_limits(shape.element_type)
    return low <= interval.low and interval.high <= high


def _is_understood(instruction: Instruction) -> bool:
    """Whether the range follows from those of the operands, for real numbers."""
    if instruction.opcode == "reduce":
        return reducing_opcode(instruction.computation("to_apply")) is not None
    if instruction.opcode == "convert":  # to integers: rounded
        source = instruction.operands[0].array_shape.element_type
        return not source.is_inexact or instruction.element_type.is_floating
    return instruction.opcode in _LAWS


def _table(opcodes: Mapping[Law, str]) -> dict[str, frozenset[Law]]:
    return {opcode: frozenset({law}) for law, names in opcodes.items() for opcode in names.split()}


#: By which law the range of each opcode follows from its operands'.
_LAWS: Final = _table(
    {
        Law.CONSTANT: "constant iota",
        Law.MOVED: "broadcast concatenate convert copy dynamic-slice dynamic-update-slice gather pad "
        "reduce-precision reshape reverse select slice transpose",
        Law.SUM: "add dot negate reduce subtract",
        Law.PRODUCT: "multiply divide",
        Law.SQUARE: "power",
        Law.ABSOLUTE: "abs",
        Law.EXPONENTIAL: "cosh exponential",
        Law.ROOT: "rsqrt sqrt",
        Law.BOUNDED: "cosine erf logistic sine tanh",
        Law.CHOSEN: "clamp maximum minimum",
        Law.MONOTONE: "log",
    }
)
