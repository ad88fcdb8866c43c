"""What terms are where a mask holds, and where it does not.

`select(m, a, f(select(m, b, x)))` is `select(m, a, f(x))`: what `b` is does not matter, for where the outer
choice reads it, the inner one took `x`. So terms remember what they are in both cases of the masks on their
way, and a select takes of each side the case in which it reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

import ml_dtypes
import numpy as np

from hlotool.analysis.machine_range import MachineRange, of_integers, of_type
from hlotool.analysis.machine_rules import range_of
from hlotool.ir.dtypes import dtype_of
from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import Class
from hlotool.ir.types import ArrayShape, ElementType
from hlotool.search.mutation import predicates
from hlotool.search.mutation.both_cases import anywhere, of_both
from hlotool.search.mutation.hashing import Symbols, combined, key_of, whole
from hlotool.search.mutation.integer_laws import narrowed, zero
from hlotool.search.mutation.predicates import (
    ALWAYS,
    EQUAL,
    GREATER,
    LESS,
    NEVER,
    Predicate,
    Variable,
    choice,
    inverse,
)
from hlotool.search.mutation.terms import Case, Term, constant, of_predicate

#: Masks that a term remembers, besides its own: each costs two more terms.
_MOST_MASKS: Final = 6
#: Choices within choices that one mask decides.
_DEEPEST: Final = 8
#: Choices within choices that one mask says something about.
_RESTATED: Final = 2


def is_elementwise(instruction: Instruction, operands: Sequence[Term]) -> bool:
    """Whether every element of the result is made of the same elements of the operands, or of scalars."""
    is_one = instruction.row.opcode_class is Class.ELEMENTWISE and not any(instruction.called)
    return is_one and all(o.symbols.shape in (instruction.dims, ()) for o in operands)


def assumed(
    instruction: Instruction, operands: Sequence[Term], reads_signs: Callable[[Instruction], bool]
) -> Sequence[Term]:
    """The operands as they are where they are read: of a select each side in its case of the mask.

    Args:
        instruction: of the program.
        operands: its operands.
        reads_signs: whether something tells zeros by their signs that an instruction returns.
    """
    if instruction.opcode != "select" or not is_elementwise(instruction, operands):
        return operands
    mask, chosen, otherwise = operands
    says = mask.as_predicate
    kind = instruction.element_type
    chosen = _narrowed(in_case(_without_nan(mask, chosen), says, True), kind, says, True)
    otherwise = _narrowed(in_case(otherwise, says, False), kind, says, False)
    chosen, otherwise = _read_in_range(chosen, says, True), _read_in_range(otherwise, says, False)
    matters = _where_it_matters(says, instruction, chosen, otherwise, reads_signs)
    if matters is not says:
        # Now either may be taken where the other one was.
        bounds = chosen.bounds.union(otherwise.bounds)
        chosen, otherwise = (_beyond(*pair, bounds) for pair in zip((chosen, otherwise), operands[1:]))
    outer, chosen, otherwise = _merged(matters, chosen, otherwise)
    if outer is not says:
        mask = replace(of_predicate(outer, mask.symbols.shape), cases=mask.cases)
    return mask, chosen, otherwise


def _where_it_matters(
    says: Predicate,
    select: Instruction,
    chosen: Term,
    otherwise: Term,
    reads_signs: Callable[[Instruction], bool],
) -> Predicate:
    """The mask of a select: of two equal numbers either may be taken."""
    kind = select.element_type
    if kind is ElementType.PRED or kind.is_complex:
        return says
    # 0 is its own negative.
    for one, other in ((chosen, otherwise), (otherwise, chosen)):
        if one.negated is not None and np.array_equal(one.negated, other.symbols):
            compared, _ = predicates.order(other.side, zero(other.symbols.shape).side)
            says = predicates.without(says, compared, EQUAL)
    compared, _ = predicates.order(chosen.side, otherwise.side)
    if all(variable.key != compared.key for variable in says.variables):
        return says
    has_signs = chosen.bounds.negative_zero or otherwise.bounds.negative_zero
    is_decisive = kind.is_floating and has_signs and reads_signs(select)
    return says if is_decisive else predicates.without(says, compared, EQUAL)


def _beyond(side: Term, operand: Term, bounds: MachineRange) -> Term:
    """A side of a choice that is read beyond its case: as it is anywhere, as far as that is known."""
    if np.array_equal(side.symbols, operand.symbols):
        return replace(operand, bounds=operand.bounds.intersection(bounds))
    return anywhere(side, bounds)


def _merged(says: Predicate, chosen: Term, otherwise: Term) -> tuple[Predicate, Term, Term]:
    """A choice within a choice, of what stands on the other side: the two are one.

    `select(m, select(n, b, c), b)` is `select(m & !n, c, b)`.
    """
    if says.constant is not None:
        return says, chosen, otherwise
    for is_chosen, side, other in ((True, chosen, otherwise), (False, otherwise, chosen)):
        for _, case in sorted(side.cases.items()):
            for is_there, taken, left in ((True, case.holds, case.fails), (False, case.fails, case.holds)):
                if case.is_asked or not np.array_equal(taken.symbols, other.symbols):
                    continue
                both = _MERGED[is_chosen, is_there](says, case.mask)
                if both is not None:
                    rest = of_both(other, taken)
                    return (both, left, rest) if is_chosen else (both, rest, left)
    return says, chosen, otherwise


#: Where the first side of a choice is taken, by that of its sides that holds another choice, and by whether
#: what stands on both sides is what that one takes where its mask holds.
_MERGED: Final[Mapping[tuple[bool, bool], Callable[[Predicate, Predicate], Predicate | None]]] = {
    (True, True): lambda outer, inner: choice(outer, inverse(inner), NEVER),
    (True, False): lambda outer, inner: choice(outer, inner, NEVER),
    (False, True): lambda outer, inner: choice(outer, ALWAYS, inner),
    (False, False): lambda outer, inner: choice(outer, ALWAYS, inverse(inner)),
}


#: Gives the term of an operation, and its operands as they are where it reads them.
Apply: TypeAlias = Callable[[Instruction, Sequence[Term]], tuple[Term, Sequence[Term]]]


def with_cases(instruction: Instruction, operands: Sequence[Term], apply: Apply) -> Term:
    """The term of an operation, with what it is in each case of the masks of its operands.

    Args:
        instruction: the operation.
        operands: of it.
        apply: gives the term for these and for others of its operands.
    """
    if not is_elementwise(instruction, operands):
        return apply(instruction, operands)[0]
    masks = {key: case for operand in operands for key, case in operand.cases.items()}
    term = _chosen(instruction, operands, apply)
    cases = dict(term.cases)
    for key, case in _asked_first(masks)[:_MOST_MASKS]:
        if key in cases and not case.is_asked:
            continue

        def side(holds: bool, mask: Predicate = case.mask) -> Term:
            parts = [in_case(operand, mask, holds) for operand in operands]
            return _restricted(_chosen(instruction, parts, apply), mask, holds)

        cases[key] = Case(case.mask, side(True), side(False), case.is_asked)
    if term.known is None and (always := _always(term, cases.values())) is not None:
        return always
    if instruction.opcode == "is-finite":
        return replace(term, cases=cases, finite=operands[0].symbols)
    return replace(term, cases=cases)


def _always(term: Term, cases: Iterable[Case]) -> Term | None:
    """What a pred is where a mask holds and where it does not: one constant in both cases."""
    for case in cases:
        sides = [side.known for side in (case.holds, case.fails) if side.predicate is None]
        held = [
            side
            for side in sides
            if side is not None and side.dtype == bool and side.shape == term.symbols.shape
        ]
        if len(held) == 2 and np.array_equal(held[0], held[1]):
            return constant(held[0])
    return None


def _chosen(instruction: Instruction, operands: Sequence[Term], apply: Apply) -> Term:
    """The term of an operation; of a select with its own two cases, which another mask may decide."""
    term, operands = apply(instruction, operands)
    cases = dict(_choice(instruction, operands))
    return replace(term, cases=cases) if cases or term.cases else term


def _choice(instruction: Instruction, operands: Sequence[Term]) -> Iterator[tuple[int, Case]]:
    """The cases of what a select decides itself."""
    if instruction.opcode == "select":
        mask, *sides = operands
        says = mask.as_predicate
        if says.constant is not None:
            # One side is never taken. What the other one is in the cases of further masks stays known.
            return
        holds, fails = (_broadcast(side, instruction.dims) for side in sides)
        yield int(whole(says.symbols(mask.symbols.shape))), Case(says, holds, fails)


def nan_source(instruction: Instruction, operands: Sequence[Term]) -> Symbols | None:
    """Symbols of the operand outside of whose NaNs and infinities no result is NaN; None without one."""
    shape = instruction.shape
    if not isinstance(shape, ArrayShape) or not shape.element_type.is_floating:
        return None
    if not is_elementwise(instruction, operands) or instruction.opcode in ("select", "constant"):
        return None
    suspects = [n for n, o in enumerate(operands) if o.bounds.nan or not o.bounds.is_finite]
    if len(suspects) != 1:
        return None
    [number] = suspects
    suspect, bounds = operands[number], [o.bounds for o in operands]
    if suspect.symbols.shape != instruction.dims or not instruction.operands[number].element_type.is_floating:
        return None
    bounds[number] = replace(bounds[number], nan=False)
    if not range_of(instruction, bounds).nan:
        return suspect.symbols if suspect.nan_of is None else suspect.nan_of
    info: Any = ml_dtypes.finfo(dtype_of(instruction.operands[number].element_type))  # type: ignore[no-untyped-call]
    low, high = max(bounds[number].low, float(info.min)), min(bounds[number].high, float(info.max))
    bounds[number] = replace(bounds[number], low=low, high=high)
    return None if range_of(instruction, bounds).nan else suspect.symbols


def _without_nan(mask: Term, chosen: Term) -> Term:
    """What is NaN only where something is not finite is not NaN where that is."""
    if mask.finite is None:
        return chosen
    if np.array_equal(mask.finite, chosen.symbols):
        return replace(chosen, bounds=replace(chosen.bounds, nan=False))
    if chosen.nan_of is None or not np.array_equal(mask.finite, chosen.nan_of):
        return chosen
    return replace(chosen, bounds=replace(chosen.bounds, nan=False))


def _broadcast(term: Term, dims: tuple[int, ...]) -> Term:
    return term if term.symbols.shape == dims else Term(np.broadcast_to(term.symbols, dims), term.bounds)


def in_case(term: Term, given: Predicate, holds: bool, depth: int = 0) -> Term:
    """The term where a mask holds, or where it does not."""
    for _ in range(_DEEPEST):
        found = next(_decided_cases(term, given, holds), None)
        if found is None:
            break
        term = found
    if term.predicate is None and term.known is None and depth < _RESTATED:
        term = _restated(term, given, holds, depth)
    return _restricted(term, given, holds)


def _restated(term: Term, given: Predicate, holds: bool, depth: int) -> Term:
    """A choice by a mask that a given one says something about, as a choice by what it leaves open.

    So `a < b` and `a <= b` choose alike where a and b are known to differ.
    """
    known = {variable.key for variable in given.variables}
    related = [
        (case, predicates.where(case.mask, given, holds))
        for case in term.cases.values()
        if not case.is_asked and not known.isdisjoint(v.key for v in case.mask.variables)
    ]
    if not related:
        return term
    dims = term.symbols.shape
    # Whichever of them comes first, it does so in every program that says the same.
    case, left = min(related, key=lambda pair: int(whole(pair[1].symbols(dims))))
    sides = [in_case(side, given, holds, depth + 1) for side in (case.holds, case.fails)]
    parts = [np.broadcast_to(side.symbols, dims) for side in sides]
    mixture = combined(key_of("chosen"), left.symbols(dims), *parts)
    # What else is known of the term holds where it is read, and this stands for all elements. What it is on
    # either side of what was left open, a further mask may decide.
    symbols = np.where(parts[0] == parts[1], parts[1], mixture)
    there, elsewhere = (_broadcast(side, dims) for side in sides)
    return Term(symbols, term.bounds, cases={int(whole(left.symbols(dims))): Case(left, there, elsewhere)})


def _restricted(term: Term, given: Predicate, holds: bool) -> Term:
    """What a pred says where a mask holds, or where it does not."""
    if term.predicate is None:
        return term
    return of_predicate(predicates.where(term.predicate, given, holds), term.symbols.shape)


def _asked_first(cases: Mapping[int, Case]) -> list[tuple[int, Case]]:
    return sorted(cases.items(), key=lambda item: not item[1].is_asked)


def _decided_cases(term: Term, given: Predicate, holds: bool) -> Iterator[Term]:
    for _, case in _asked_first(term.cases):
        decided = predicates.implied(given, holds, case.mask)
        if decided is not None:
            yield case.holds if decided else case.fails


def _narrowed(term: Term, kind: ElementType, given: Predicate, holds: bool) -> Term:
    """An integer that is compared with a constant, or its sum with another one, in the bounds that follow."""
    base, offset = term.sum_of if term.sum_of is not None else (term, 0)
    if not kind.is_integer:
        return term
    for variable in _comparisons(given):
        for place, side in enumerate(variable.sides):
            other = variable.sides[1 - place].bounds
            if not other.is_point or not np.array_equal(side.symbols, base.symbols):
                continue
            may = predicates.outcomes(given, holds, variable)
            low, high = _ends(base.bounds, int(other.low), may[2::-1] if place else may[:3])
            limits = of_type(kind)
            # Within the type the sum is what it is, however its bounds were found.
            if low <= high and limits.low <= low + offset and high + offset <= limits.high:
                within = of_integers(low + offset, high + offset)
                term = replace(term, bounds=term.bounds.intersection(within))
    return term


def _comparisons(given: Predicate) -> list[Variable]:
    return [variable for variable in given.variables if len(variable.sides) == 2]


def _read_in_range(term: Term, given: Predicate, holds: bool) -> Term:
    """A gather whose indices are in range wherever its result is read: there none of them is clamped."""
    gather = term.gathered
    for base in _made_of(gather.index) if gather is not None else ():
        assert gather is not None
        within, rows = base.bounds, gather.rows(base.symbols)
        for variable in _comparisons(given):
            for place, side in enumerate(variable.sides):
                other = variable.sides[1 - place].bounds
                if other.is_point and np.array_equal(side.symbols, rows):
                    may = predicates.outcomes(given, holds, variable)
                    within = of_integers(*_ends(within, int(other.low), may[2::-1] if place else may[:3]))
        index = narrowed(gather.index, gather.kind, base, within)
        if index.bounds.within(0, gather.limit):
            return gather.at(index)
    return term


def _made_of(term: Term) -> Iterator[Term]:
    """A number, and what it is the sum with a constant of, or the remainder by one."""
    yield term
    for source in (term.sum_of[0] if term.sum_of is not None else None, term.rest_of):
        if source is not None:
            yield from _made_of(source)


def _ends(bounds: MachineRange, number: int, may: Sequence[bool]) -> tuple[float, float]:
    """The ends of integers that may be less than a number, equal to it, or greater."""
    low, high = bounds.low, bounds.high
    if not may[LESS]:
        low = max(low, number)
    if not may[GREATER]:
        high = min(high, number)
    if not may[EQUAL]:
        low, high = low + (low == number), high - (high == number)
    return low, high
