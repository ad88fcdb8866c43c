"""Intervals of real numbers, and the range that each instruction's values are sure to have.

A plain interval analysis: it proves that `exp(x) + 1` or `max(x, 1e-6)` needs no constraint on x, whatever
the entry parameters hold. Wrap-around of integers and overflow of floats are left out: inputs are generated
so that they do not happen. An interval may have one forbidden point.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Final, TypeAlias

import numpy as np
from msgspec import Struct

from hlotool.ir.module import Computation, Instruction
from hlotool.ir.opcodes import Class, Trait, opcodes_with
from hlotool.ir.types import ArrayShape, ElementType, Shape

_INF: Final = math.inf


class Interval(Struct, frozen=True):
    """Numbers from `low` to `high`, both included when finite, without `avoid`."""

    low: float = -_INF
    high: float = _INF
    avoid: float | None = None

    @property
    def is_empty(self) -> bool:
        """No number lies in it."""
        return self.low > self.high or self.low == self.high == self.avoid

    @property
    def is_point(self) -> bool:
        """Exactly one number lies in it."""
        return self.low == self.high

    @property
    def is_bounded(self) -> bool:
        """Both ends are finite."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    def contains(self, other: Interval) -> bool:
        """Whether every number of `other` lies in this interval."""
        if not self.low <= other.low <= other.high <= self.high:
            return False
        return self.avoid is None or not other.low <= self.avoid <= other.high or other.avoid == self.avoid

    def intersect(self, other: Interval) -> Interval:
        """Numbers of both; of two forbidden points only the first one stays."""
        avoid = self.avoid if self.avoid is not None else other.avoid
        return Interval(max(self.low, other.low), min(self.high, other.high), avoid)

    def union(self, other: Interval) -> Interval:
        """The smallest interval around both."""
        return Interval(min(self.low, other.low), max(self.high, other.high))

    def shifted(self, by: float) -> Interval:
        """Every number plus `by`."""
        return Interval(self.low + by, self.high + by, None if self.avoid is None else self.avoid + by)

    def scaled(self, factor: float) -> Interval:
        """Every number times `factor`, which is finite and not 0."""
        low, high = sorted((self.low * factor, self.high * factor))
        return Interval(low, high, None if self.avoid is None else self.avoid * factor)

    def __str__(self) -> str:
        if self.avoid is None or self.avoid in (self.low, self.high):
            return self._ends()
        return f"{self._ends()} but {self.avoid + 0.0:g}"

    def _ends(self) -> str:
        low, high = self.low + 0.0, self.high + 0.0
        if low == -_INF and high == _INF:
            return "any"
        if high == _INF:
            return f"above {low:g}" if self.avoid == low else f"at least {low:g}"
        if low == -_INF:
            return f"below {high:g}" if self.avoid == high else f"at most {high:g}"
        left, right = "(" if self.avoid == low else "[", ")" if self.avoid == high else "]"
        return f"in {left}{low:g}, {high:g}{right}"


ANY: Final = Interval()
NONNEGATIVE: Final = Interval(0)
POSITIVE: Final = Interval(0, avoid=0)
NONZERO: Final = Interval(avoid=0)


def add(a: Interval, b: Interval) -> Interval:
    """The interval of x + y for all x in `a` and y in `b`."""
    return Interval(_number(a.low + b.low, -_INF), _number(a.high + b.high, _INF))


def negate(a: Interval) -> Interval:
    """The interval of -x for all x in `a`."""
    return Interval(-a.high, -a.low, None if a.avoid is None else -a.avoid)


def multiply(a: Interval, b: Interval) -> Interval:
    """All products; 0 times infinity is the limit 0."""
    products = [_number(x * y, 0.0) for x in (a.low, a.high) for y in (b.low, b.high)]
    return Interval(min(products), max(products))


def reciprocal(a: Interval) -> Interval:
    """All 1/x; anything when the interval touches 0."""
    if a.low <= 0 <= a.high:
        return Interval(0) if a.low == 0 else ANY
    return Interval(1 / a.high, 1 / a.low)


def _number(value: float, otherwise: float) -> float:
    return otherwise if math.isnan(value) else value


#: Stands for the open end of a range that never reaches 0, such as that of exp.
ABOVE_ZERO: Final = 1e-30
_ABOVE_ZERO: Final = Interval(ABOVE_ZERO)
_WITHIN_ONE: Final = Interval(-1, 1)


class RealFunction(Struct, frozen=True):
    """A function of one real number.

    Attributes:
        apply: its value at a number of the domain; ValueError or OverflowError where that is infinite.
        inverse: a number that has a value, near 0 where there are several; None where nothing simple says it.
        image: its values.
        domain: where it is defined.
        rises: the larger the number, the larger the value.
    """

    apply: Callable[[float], float]
    inverse: Callable[[float], float] | None = None
    image: Interval = ANY
    domain: Interval = ANY
    rises: bool = True

    def range_on(self, argument: Interval) -> Interval:
        """Its values on the part of an interval that lies in the domain."""
        if not self.rises:
            return self.image
        return Interval(
            self._limit(argument.low, self.image.low), self._limit(argument.high, self.image.high)
        )

    def _limit(self, number: float, end: float) -> float:
        number = min(max(number, self.domain.low), self.domain.high)
        try:
            value = self.apply(number)
        except (OverflowError, ValueError):
            return end
        return min(max(value, self.image.low), self.image.high)


def _logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def _cube_root(x: float) -> float:
    return math.copysign(abs(x) ** (1 / 3), x)


FUNCTIONS: Final[Mapping[str, RealFunction]] = {
    "acos": RealFunction(math.acos, math.cos, Interval(0, math.pi), _WITHIN_ONE, rises=False),
    "acosh": RealFunction(math.acosh, math.cosh, NONNEGATIVE, Interval(1)),
    "asin": RealFunction(math.asin, math.sin, Interval(-math.pi / 2, math.pi / 2), _WITHIN_ONE),
    "asinh": RealFunction(math.asinh, math.sinh),
    "atanh": RealFunction(math.atanh, math.tanh, domain=_WITHIN_ONE),
    "cbrt": RealFunction(_cube_root, lambda y: y**3),
    "cosh": RealFunction(math.cosh, math.acosh, Interval(1), rises=False),
    "cosine": RealFunction(math.cos, math.acos, _WITHIN_ONE, rises=False),
    "erf": RealFunction(math.erf, None, _WITHIN_ONE),
    "exponential": RealFunction(math.exp, math.log, _ABOVE_ZERO),
    "exponential-minus-one": RealFunction(math.expm1, math.log1p, Interval(-1)),
    "log": RealFunction(math.log, math.exp, domain=POSITIVE),
    "log-plus-one": RealFunction(math.log1p, math.expm1, domain=Interval(-1, avoid=-1)),
    "logistic": RealFunction(_logistic, lambda y: math.log(y / (1 - y)), Interval(ABOVE_ZERO, 1)),
    "rsqrt": RealFunction(lambda x: x**-0.5, lambda y: 1 / (y * y), _ABOVE_ZERO, POSITIVE, rises=False),
    "sine": RealFunction(math.sin, math.asin, _WITHIN_ONE, rises=False),
    "sinh": RealFunction(math.sinh, math.asinh),
    "sqrt": RealFunction(math.sqrt, lambda y: y * y, NONNEGATIVE, NONNEGATIVE),
    "tan": RealFunction(math.tan, math.atan, rises=False),
    "tanh": RealFunction(math.tanh, math.atanh, _WITHIN_ONE),
}


#: The values of larger constants are not looked at.
_LARGEST_CONSTANT = 1 << 20

_Operands: TypeAlias = list[Interval]
_Rule: TypeAlias = Callable[[Instruction, _Operands], Interval]


class ForwardRanges:
    """Ranges of the instructions of a module, computed per computation when first asked for.

    Args:
        owners: the computation of every instruction.
    """

    def __init__(self, owners: dict[Instruction, Computation]) -> None:
        self._owners = owners
        self._ranges: dict[Instruction, Interval] = {}

    def of(self, instruction: Instruction) -> Interval:
        """A range that holds every value of `instruction`; any number for tuples."""
        if instruction not in self._ranges:
            self._sweep(self._owners[instruction])
        return self._ranges[instruction]

    def _sweep(self, computation: Computation) -> None:
        for instruction in computation.instructions:
            self._ranges[instruction] = self._called(instruction) or range_of(
                instruction, [self._ranges[o] for o in instruction.operands]
            )

    def _called(self, instruction: Instruction) -> Interval | None:
        """The range of what is handed on; None for what is computed."""
        if instruction.opcode in ("call", "fusion"):
            return self.of(next(instruction.called).root)
        if instruction.opcode == "get-tuple-element" and instruction.operands[0].opcode == "tuple":
            return self.of(instruction.operands[0].operands[instruction.integer("index")])
        return None


def range_of(instruction: Instruction, operands: Sequence[Interval]) -> Interval:
    """A range that holds every value of `instruction` if its operands' values lie in `operands`.

    Any number for tuples, and for what is not computed but handed on.
    """
    limits = type_limits(instruction.shape)
    rule = _RULES.get(instruction.opcode)
    if rule is not None and isinstance(instruction.shape, ArrayShape):
        narrowed = limits.intersect(rule(instruction, list(operands)))
        limits = limits if narrowed.is_empty else narrowed
    return Interval(limits.low, limits.high)


def type_limits(shape: Shape) -> Interval:
    """What the element type alone says."""
    if not isinstance(shape, ArrayShape):
        return ANY
    if shape.element_type.is_unsigned:
        return NONNEGATIVE
    return Interval(0, 1) if shape.element_type is ElementType.PRED else ANY


def _constant(instruction: Instruction, _: _Operands) -> Interval:
    literal = instruction.literal
    if literal is None or literal.elided or not isinstance(literal.value, np.ndarray):
        return ANY
    value = literal.value
    is_number = value.dtype.kind != "c" and value.dtype.names is None
    if value.size == 0 or value.size > _LARGEST_CONSTANT or not is_number:
        return ANY
    numbers = value.astype(np.float64)
    return ANY if np.isnan(numbers).any() else Interval(float(numbers.min()), float(numbers.max()))


def _iota(instruction: Instruction, _: _Operands) -> Interval:
    size = instruction.dims[instruction.integer("iota_dimension")]
    return Interval(0, max(0, size - 1))


def _carried(instruction: Instruction, operands: _Operands) -> Interval:
    return reduce(Interval.union, [operands[n] for n in instruction.row.carried(len(operands))])


def _clamp(_: Instruction, operands: _Operands) -> Interval:
    low, value, high = operands
    at_least = max(value.low, low.low)
    return Interval(min(at_least, high.low), min(max(value.high, low.high), high.high))


def _multiply(instruction: Instruction, operands: _Operands) -> Interval:
    product = multiply(*operands)
    a, b = instruction.operands
    return product.intersect(NONNEGATIVE) if a is b else product


def _power(_: Instruction, operands: _Operands) -> Interval:
    base, exponent = operands
    if base.low > 0:
        return Interval(ABOVE_ZERO)
    even = exponent.is_point and exponent.low % 2 == 0
    return NONNEGATIVE if base.low >= 0 or even else ANY


def _reduce(instruction: Instruction, operands: _Operands) -> Interval:
    """Sums of what has one sign have it, too; extrema stay in the range."""
    opcode = next(instruction.called).root.opcode
    values, init = operands
    if opcode in ("maximum", "minimum"):
        return values.union(init)
    if opcode == "add" and values.low >= 0 and init.low >= 0:
        return Interval(min(values.low, ABOVE_ZERO))
    if opcode == "add" and values.high <= 0 and init.high <= 0:
        return Interval(high=0)
    return ANY


def _dot(_: Instruction, operands: _Operands) -> Interval:
    """Sums of products of one sign; the empty sum is 0."""
    product = multiply(*operands[:2])
    return NONNEGATIVE if product.low >= 0 else Interval(high=0) if product.high <= 0 else ANY


def _function(function: RealFunction) -> _Rule:
    return lambda _, operands: function.range_on(operands[0])


def logarithm(value: float) -> float:
    """The natural logarithm, with its limits at 0 and infinity; -inf below 0."""
    return math.log(value) if 0 < value < math.inf else (math.inf if value > 0 else -math.inf)


_RULES: dict[str, _Rule] = {
    **{name: _function(function) for name, function in FUNCTIONS.items()},
    "constant": _constant,
    "iota": _iota,
    "add": lambda _, operands: add(*operands),
    "subtract": lambda _, operands: add(operands[0], negate(operands[1])),
    "multiply": _multiply,
    "dot": _dot,
    "divide": lambda _, operands: multiply(operands[0], reciprocal(operands[1])),
    "negate": lambda _, operands: negate(operands[0]),
    "abs": lambda _, operands: operands[0] if operands[0].low >= 0 else NONNEGATIVE,
    "power": _power,
    "maximum": lambda _, ops: Interval(max(o.low for o in ops), max(o.high for o in ops)),
    "minimum": lambda _, ops: Interval(min(o.low for o in ops), min(o.high for o in ops)),
    "clamp": _clamp,
    "reduce": _reduce,
    **dict.fromkeys(opcodes_with(Trait.MOVES, Class.INDEXING) - {"bitcast", "scatter"}, _carried),
    **dict.fromkeys(("convert", "reduce-precision", "select"), _carried),
}
