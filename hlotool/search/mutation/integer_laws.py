"""Laws of integer arithmetic, which wraps: sums with constants, quotients and remainders of constants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from hlotool.analysis.machine_range import MachineRange, of_integers, of_type
from hlotool.analysis.machine_rules import range_of
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, ElementType
from hlotool.search.mutation.hashing import Symbols, numbers, of_values
from hlotool.search.mutation.terms import Term, Truncated, Word, constant, elementwise

#: Arrays of more elements are not looked at one by one.
_MOST_ELEMENTS: Final = 256


def is_integer(instruction: Instruction) -> bool:
    """Whether its result holds integers or preds."""
    shape = instruction.shape
    return isinstance(shape, ArrayShape) and (
        shape.element_type.is_integer or shape.element_type is ElementType.PRED
    )


def is_number(term: Term, number: float) -> bool:
    """Whether all elements are this number."""
    return term.bounds.is_point and term.bounds.low == number


def zero(dims: tuple[int, ...]) -> Term:
    """The term of zeros."""
    return constant(np.zeros(dims, np.int64))


def plus(kind: ElementType, term: Term, number: int) -> Term:
    """A term and a constant, one after the other added up, as the type wraps."""
    base, before = term.sum_of if term.sum_of is not None else (term, 0)
    total = (before + number) % (1 << kind.bits)
    if total == 0:
        return base
    limits = of_type(kind)
    symbols = _moved(base.symbols, elementwise("plus", kind, (total,), (base.symbols,)), kind, total)
    # Of the two numbers that are the same to the type one may never wrap.
    for step in (total, total - (1 << kind.bits)):
        low, high = base.bounds.low + step, base.bounds.high + step
        if limits.low <= low and high <= limits.high:
            return Term(symbols, of_integers(low, high), sum_of=(base, step))
    return Term(symbols, limits, sum_of=(base, total))


def _moved(base: Symbols, sums: Symbols, kind: ElementType, number: int) -> Symbols:
    """Symbols of sums with a constant, of which those with known elements are known."""
    if base.size > _MOST_ELEMENTS:
        return sums
    low, modulus = int(of_type(kind).low), 1 << kind.bits
    found = np.array(sums)
    for place, known in enumerate(numbers(base)):
        if known is not None:
            found.flat[place] = of_values(np.asarray((known + number - low) % modulus + low))
    return found


def sums(instruction: Instruction, operands: Sequence[Term]) -> Term | None:
    """Sums and differences of integers, of which constants are added up apart from the rest."""
    if instruction.opcode not in ("add", "subtract") or not is_integer(instruction):
        return None
    kind, (a, b) = instruction.element_type, operands
    if kind is ElementType.PRED or a.symbols.shape != b.symbols.shape:
        return None
    if b.bounds.is_point:
        number = int(b.bounds.low)
        return plus(kind, a, number if instruction.opcode == "add" else -number)
    if a.bounds.is_point and instruction.opcode == "add":
        return plus(kind, b, int(a.bounds.low))
    (left, before), (right, after) = (o.sum_of if o.sum_of is not None else (o, 0) for o in (a, b))
    if before == after == 0:
        return None
    symbols = elementwise(instruction.opcode, kind, (), (left.symbols, right.symbols))
    word = Word(instruction.opcode, (left, right), kind.bits)
    rest = Term(symbols, range_of(instruction, [left.bounds, right.bounds]), word=word)
    found = plus(kind, rest, before + (after if instruction.opcode == "add" else -after))
    bounds = range_of(instruction, [a.bounds, b.bounds])
    return replace(found, bounds=found.bounds.intersection(bounds))


def quotients(instruction: Instruction, operands: Sequence[Term]) -> Term | None:
    """Quotients and remainders by a constant, and what is multiplied by the divisor again."""
    if len(operands) != 2 or not is_integer(instruction) or instruction.element_type is ElementType.PRED:
        return None
    value, divisor = operands
    match instruction.opcode:
        case "remainder":
            return _remainder(instruction, value, divisor)
        case "divide" if divisor.bounds.is_point and divisor.bounds.low not in (0, 1):
            return _remembered(instruction, operands, Truncated(value, int(divisor.bounds.low), False))
        case "multiply":
            for part, factor in ((value, divisor), (divisor, value)):
                was = part.truncated
                if was is not None and not was.is_multiple and is_number(factor, was.divisor):
                    return _remembered(instruction, operands, replace(was, is_multiple=True))
    return None


def inexact(one: Term, other: Term) -> Term | None:
    """The remainder that is 0 where two integers are equal, one of them the other truncated to a multiple."""
    was = one.truncated
    if was is None or not was.is_multiple or not np.array_equal(was.value.symbols, other.symbols):
        return None
    return _rest(was.value, was.divisor)


def _remembered(instruction: Instruction, operands: Sequence[Term], truncated: Truncated) -> Term:
    found = elementwise(instruction.opcode, instruction.element_type, (), [o.symbols for o in operands])
    symbols = np.broadcast_to(found, instruction.dims)
    return Term(symbols, range_of(instruction, [o.bounds for o in operands]), truncated=truncated)


def _remainder(instruction: Instruction, value: Term, divisor: Term) -> Term:
    if not divisor.bounds.is_point or divisor.bounds.low == 0:
        parts = value.symbols, divisor.symbols
        symbols = np.broadcast_to(
            elementwise("remainder", instruction.element_type, (), parts), instruction.dims
        )
        bounds = range_of(instruction, [value.bounds, divisor.bounds])
        return Term(symbols, bounds, divided_by=divisor.symbols)
    size = int(divisor.bounds.low)
    if size > 0 and value.bounds.low >= 0:
        # All within one multiple of the divisor and the next: what is left is a difference.
        times = int(value.bounds.low) // size
        if value.bounds.high < (times + 1) * size:
            return plus(instruction.element_type, value, -times * size)
        base, step = value.sum_of if value.sum_of is not None else (value, 0)
        if step >= size and base.bounds.low >= 0 and base.bounds.high + step <= value.bounds.high:
            # Nothing wraps, and no number is negative: multiples of the divisor are none of the rest.
            return _remainder(instruction, plus(instruction.element_type, base, step % size), divisor)
    found = _rest(value, size)
    bounds = range_of(instruction, [value.bounds, divisor.bounds])
    symbols = np.broadcast_to(found.symbols, instruction.dims)
    return Term(symbols, bounds, divisor=size, divided_by=divisor.symbols, rest_of=value)


def narrowed(term: Term, kind: ElementType, base: Term, within: MachineRange) -> Term:
    """A term made of a number by sums and remainders, if the number lies within other bounds.

    Args:
        term: of integers.
        kind: their type.
        base: the number.
        within: where it lies.
    """
    if np.array_equal(term.symbols, base.symbols):
        return replace(term, bounds=term.bounds.intersection(within))
    if term.sum_of is not None and np.array_equal(term.sum_of[0].symbols, base.symbols):
        return plus(kind, replace(term.sum_of[0], bounds=within), term.sum_of[1])
    if term.rest_of is not None and term.divisor is not None and term.divisor > 0:
        value = narrowed(term.rest_of, kind, base, within)
        times = int(max(value.bounds.low, 0)) // term.divisor
        if value.bounds.within(times * term.divisor, (times + 1) * term.divisor - 1):
            return plus(kind, value, -times * term.divisor)
    return term


def _rest(value: Term, divisor: int) -> Term:
    """What is left of a division; its sign is that of the dividend, whatever that of the divisor."""
    symbols = elementwise("remainder", ElementType.S64, (abs(divisor),), (value.symbols,))
    return Term(symbols, of_type(ElementType.S64))
