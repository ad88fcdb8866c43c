"""What range each instruction's values are sure to have, whatever the entry parameters hold.

A plain interval analysis: it proves that `exp(x) + 1` or `max(x, 1e-6)` needs no constraint on x. Wrap-around
of integers and overflow of floats are left out: inputs are generated so that they do not happen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import TypeAlias

import numpy as np

from hlotool.analysis.functions import ABOVE_ZERO, FUNCTIONS, RealFunction
from hlotool.analysis.interval import ANY, NONNEGATIVE, Interval, add, multiply, negate, reciprocal
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.opcodes import Class, Trait, opcodes_with
from hlotool.ir.types import ArrayShape, ElementType, Shape

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
