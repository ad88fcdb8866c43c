"""Laws that hold for every bit, given what is known of the operands: what `symbols` simplifies by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from hlotool.analysis.machine_range import of_integers, of_type
from hlotool.analysis.machine_rules import outcome as always
from hlotool.analysis.machine_rules import range_of
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, ElementType
from hlotool.search.mutation.hashing import Symbols, combined, key_of, of_values, whole
from hlotool.search.mutation.terms import Law, Term, elementwise, equality


def select(instruction: Instruction, operands: Sequence[Term]) -> Term | None:
    """The side that is taken, element by element where the mask is known; either where both are the same."""
    if instruction.opcode != "select":
        return None
    mask, chosen, otherwise = operands
    if mask.known is not None:
        symbols = np.where(mask.known, chosen.symbols, otherwise.symbols)
        known = None
        if chosen.known is not None and otherwise.known is not None:
            known = np.where(mask.known, chosen.known, otherwise.known)
        if mask.known.size and mask.known.all():
            return chosen
        if mask.known.size and not mask.known.any():
            return otherwise
        return Term(symbols, chosen.bounds.union(otherwise.bounds), known)
    if np.array_equal(chosen.symbols, otherwise.symbols):
        return otherwise
    if _is_zero_for_zero(instruction, operands):
        return otherwise
    if (floored := _floored(instruction, operands)) is not None:
        return floored
    if (magnitude := _magnitude(instruction, operands)) is not None:
        return magnitude
    same = chosen.symbols == otherwise.symbols
    if not same.any():
        return None
    key = key_of("select", instruction.element_type.value)
    mixture = combined(key, np.broadcast_to(mask.symbols, same.shape), chosen.symbols, otherwise.symbols)
    return Term(np.where(same, otherwise.symbols, mixture), chosen.bounds.union(otherwise.bounds))


def _floored(instruction: Instruction, operands: Sequence[Term]) -> Term | None:
    """`select(r != 0 & r < 0, r + n, r)` of a remainder r of n: the one that is never negative."""
    mask, chosen, rest = operands
    if rest.divisor is None or not instruction.element_type.is_integer:
        return None
    kind, divisor = instruction.element_type, of_values(np.full(instruction.dims, rest.divisor))
    moved = elementwise("add", kind, (), (rest.symbols, divisor))
    negative, nonzero = (_compared(rest.symbols, direction) for direction in ("LT", "NE"))
    both = elementwise("and", ElementType.PRED, (), (negative, nonzero))
    is_mask = any(np.array_equal(mask.symbols, expected) for expected in (negative, both))
    if not is_mask or not np.array_equal(chosen.symbols, moved):
        return None
    symbols = combined(key_of("remainder, never negative", kind.value), rest.symbols)
    return Term(symbols, of_integers(0, rest.divisor - 1), zero_like=rest.symbols)


def _magnitude(instruction: Instruction, operands: Sequence[Term]) -> Term | None:
    """`select(x < 0, -x, x)`, or `x <= 0`: 0 is its own negative."""
    mask, chosen, otherwise = operands
    if mask.compared is None or chosen.negated is None or mask.compared[1] not in ("LT", "LE"):
        return None
    if not all(np.array_equal(s, otherwise.symbols) for s in (mask.compared[0], chosen.negated)):
        return None
    symbols = elementwise("magnitude", instruction.element_type, (), (otherwise.symbols,))
    return Term(symbols, of_type(instruction.element_type))


def _compared(symbols: Symbols, direction: str) -> Symbols:
    """The symbols of a comparison with 0."""
    return _ordered(symbols, of_values(np.zeros(symbols.shape, np.int64)), direction)


def _is_zero_for_zero(instruction: Instruction, operands: Sequence[Term]) -> bool:
    """`select(x == 0, 0, x)` where x is never -0."""
    test, _, value = instruction.operands
    _, chosen, otherwise = operands
    return (
        test.opcode == "compare"
        and test.text("direction") == "EQ"
        and test.operands[0] is value
        and chosen.bounds.is_point
        and chosen.bounds.low == 0
        and not otherwise.bounds.negative_zero
    )


def clamp(instruction: Instruction, operands: Sequence[Term]) -> Term | None:
    """What is within the limits anyway; NaN stays NaN. Of integers it is remembered what was clamped."""
    if instruction.opcode != "clamp":
        return None
    least, value, most = operands
    inside = value.bounds.within(least.bounds.high, most.bounds.low) and least.bounds.high <= most.bounds.low
    # A clamp to [-0, …] may turn a zero around.
    signs = value.bounds.negative_zero and (least.bounds.high == 0 or most.bounds.low == 0)
    if inside and not signs and not (least.bounds.nan or most.bounds.nan):
        return value
    if not _is_integer(instruction) or not (least.bounds.is_point and most.bounds.is_point):
        return None
    low, high = int(least.bounds.low), int(most.bounds.low)
    symbols = elementwise("clamp", instruction.element_type, (), [o.symbols for o in operands])
    bounds = range_of(instruction, [o.bounds for o in operands])
    return Term(np.broadcast_to(symbols, instruction.dims), bounds, clamped=(value, low, high))


def extremum(instruction: Instruction, operands: Sequence[Term]) -> Term | None:
    """The larger of two integers whose ranges do not overlap."""
    if instruction.opcode not in ("maximum", "minimum") or not _is_integer(instruction):
        return None
    a, b = operands
    if instruction.opcode == "minimum":
        a, b = b, a
    if a.bounds.low >= b.bounds.high:
        return operands[0]
    return operands[1] if b.bounds.low >= a.bounds.high else None


def convert(instruction: Instruction, operands: Sequence[Term]) -> Term | None:
    """A conversion that keeps every number: of integers within the type, of floats to a wider one."""
    if instruction.opcode != "convert":
        return None
    (value,) = operands
    source, target = instruction.operands[0].element_type, instruction.element_type
    if source.is_complex or target.is_complex:
        return None
    if source.is_floating and target.is_floating:
        widens = (source, target) in _WIDER or source is target
        return value if widens else None
    if source.is_floating or target.is_floating or target is ElementType.PRED:
        return value if source is target else None
    limits = of_type(target)
    return value if value.bounds.within(limits.low, limits.high) else None


_WIDER = frozenset(
    {
        (ElementType.BF16, ElementType.F32),
        (ElementType.F16, ElementType.F32),
        (ElementType.BF16, ElementType.F64),
        (ElementType.F16, ElementType.F64),
        (ElementType.F32, ElementType.F64),
    }
)


def compare(instruction: Instruction, operands: Sequence[Term]) -> Term | None:
    """A comparison with one outcome; of preds with false; with 0 of what is 0 where something else is."""
    if instruction.opcode != "compare" or "type" in instruction.attributes:
        return None
    direction, (first, second) = instruction.text("direction"), operands
    outcome = _outcome(direction, first, second)
    if outcome is None:
        if direction in ("EQ", "NE") and _is(second, 0) and first.zero_like is not None:
            symbols = _compared(first.zero_like, direction)
            cases = _by_zero(first.zero_like, symbols, direction)
            return Term(symbols, of_integers(0, 1), compared=(first.zero_like, direction), cases=cases)
        kind = instruction.operands[0].element_type
        if kind is ElementType.PRED and direction == "NE":
            return first if _is(second, 0) else second if _is(first, 0) else None
        if kind.is_integer and _is(second, 0):
            symbols = _compared(first.symbols, direction)
            return Term(
                symbols,
                of_integers(0, 1),
                compared=(first.symbols, direction),
                cases={
                    **_by_zero(first.symbols, symbols, direction),
                    **_by_equality(first.symbols, second.symbols, direction),
                },
            )
        if kind.is_integer:
            symbols = _ordered(first.symbols, second.symbols, direction)
            cases = _by_equality(first.symbols, second.symbols, direction)
            return Term(np.broadcast_to(symbols, instruction.dims), of_integers(0, 1), cases=cases)
        return None
    value = np.full(instruction.dims, outcome)
    return Term(of_values(value), of_integers(int(outcome), int(outcome)), value)


def _by_zero(compared: Symbols, symbols: Symbols, direction: str) -> Mapping[int, tuple[Symbols, Symbols]]:
    """What a comparison with 0 is where `== 0` and `!= 0` hold of the same numbers, and where not."""
    at_zero = of_values(np.full(symbols.shape, direction in ("EQ", "LE", "GE")))
    elsewhere = symbols
    if direction in ("EQ", "NE"):
        elsewhere = of_values(np.full(symbols.shape, direction == "NE"))
    is_zero, is_not = (int(whole(_compared(compared, d))) for d in ("EQ", "NE"))
    return {is_zero: (at_zero, elsewhere), is_not: (elsewhere, at_zero)}


def _by_equality(one: Symbols, other: Symbols, direction: str) -> Mapping[int, tuple[Symbols, Symbols]]:
    """What a comparison of integers is where they are equal, and where they are not."""
    shape = np.broadcast_shapes(one.shape, other.shape)
    equal = of_values(np.full(shape, direction in ("EQ", "LE", "GE")))
    if direction in ("EQ", "NE"):
        different = of_values(np.full(shape, direction == "NE"))
    else:
        different = _ordered(one, other, _STRICT[direction])
    return {equality(one, other): (equal, different)}


def _ordered(one: Symbols, other: Symbols, direction: str) -> Symbols:
    return elementwise("compare", ElementType.PRED, (("direction", direction),), (one, other))


def _outcome(direction: str, a: Term, b: Term) -> bool | None:
    if np.array_equal(a.symbols, b.symbols) and not (a.bounds.nan or b.bounds.nan):
        return direction in ("EQ", "LE", "GE")
    return always(direction, a.bounds, b.bounds)


def shifted_out(instruction: Instruction, operands: Sequence[Term]) -> Term | None:
    """Of what is shifted by all bits or more, by amounts that are known, nothing is left."""
    if instruction.opcode not in ("shift-left", "shift-right-logical"):
        return None
    value, amount = operands
    if amount.known is None or amount.known.shape != instruction.dims:
        return None
    counts = amount.known.astype(np.int64)
    is_out = (counts < 0) | (counts >= instruction.element_type.bits)
    if not is_out.any():
        return None
    shifted = elementwise(instruction.opcode, instruction.element_type, (), (value.symbols, amount.symbols))
    zeros = of_values(np.zeros(instruction.dims, np.int64))
    return Term(np.where(is_out, zeros, shifted), of_type(instruction.element_type))


def neutral(instruction: Instruction, operands: Sequence[Term]) -> Term | None:
    """Integers: zero added, one multiplied, masks of all or nothing, remainders of small numbers."""
    if len(operands) != 2 or not _is_integer(instruction):
        return None
    a, b = operands
    match instruction.opcode:
        case "add" | "or" | "xor":
            return b if _is(a, 0) else a if _is(b, 0) else None
        case "subtract" | "shift-left" | "shift-right-logical" | "shift-right-arithmetic":
            return a if _is(b, 0) else None
        case "multiply":
            return b if _is(a, 1) else a if _is(b, 1) else None
        case "divide":
            return a if _is(b, 1) else None
        case "and":
            return _masked(instruction, a, b) or _masked(instruction, b, a) or _strict(a, b) or _strict(b, a)
        case "remainder":
            return _remainder(instruction, a, b)
    return None


def _strict(one: Term, other: Term) -> Term | None:
    """`x <= 0 & x != 0` is `x < 0 & x != 0`, and likewise on the other side."""
    if one.compared is None or other.compared is None or other.compared[1] != "NE":
        return None
    (symbols, direction), (same, _) = one.compared, other.compared
    if direction not in _STRICT or not np.array_equal(symbols, same):
        return None
    parts = _compared(symbols, _STRICT[direction]), _compared(symbols, "NE")
    return Term(elementwise("and", ElementType.PRED, (), parts), of_integers(0, 1))


_STRICT = {"LE": "LT", "LT": "LT", "GE": "GT", "GT": "GT"}


def negate(instruction: Instruction, operands: Sequence[Term]) -> Term | None:
    """Remembers what an integer is the negative of."""
    if instruction.opcode != "negate" or not _is_integer(instruction):
        return None
    (value,) = operands
    symbols = elementwise("negate", instruction.element_type, (), (value.symbols,))
    return Term(symbols, range_of(instruction, [value.bounds]), negated=value.symbols)


def _masked(instruction: Instruction, value: Term, mask: Term) -> Term | None:
    if not mask.bounds.is_point or value.bounds.low < 0:
        return None
    taken = int(mask.bounds.low) % (1 << instruction.element_type.bits)
    bits = (1 << int(value.bounds.high).bit_length()) - 1
    if taken & bits == bits:
        return value
    if taken & bits == 0:
        zero = np.zeros(instruction.dims, np.int64)
        return Term(of_values(zero), of_integers(0, 0), zero)
    return None


def _remainder(instruction: Instruction, value: Term, divisor: Term) -> Term | None:
    if not divisor.bounds.is_point or divisor.bounds.low <= 0:
        return None
    size = int(divisor.bounds.low)
    if value.bounds.within(0, size - 1):
        return value
    bounds = range_of(instruction, [value.bounds, divisor.bounds])
    symbols = elementwise("remainder", instruction.element_type, (), (value.symbols, divisor.symbols))
    return Term(np.broadcast_to(symbols, instruction.dims), bounds, divisor=size)


def _is(term: Term, number: int) -> bool:
    return term.bounds.is_point and term.bounds.low == number


def _is_integer(instruction: Instruction) -> bool:
    shape = instruction.shape
    return isinstance(shape, ArrayShape) and (
        shape.element_type.is_integer or shape.element_type is ElementType.PRED
    )


LAWS: tuple[Law, ...] = (select, clamp, extremum, convert, compare, shifted_out, neutral, negate)
