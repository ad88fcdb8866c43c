"""What is known of an array of which one thing is known where a mask holds, and another one elsewhere.

Most of what a term says besides its symbols holds where it is read, and may have been found by where that is:
`x` is at most 4 on one side of `x < 5`, and at least 5 on the other one. Where both sides are one array,
that is read everywhere, and of it there is known what is known on both sides.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

import numpy as np

from hlotool.analysis.machine_range import MachineRange
from hlotool.search.mutation import predicates
from hlotool.search.mutation.hashing import Symbols
from hlotool.search.mutation.terms import Term, Truncated, Word

#: Arrays that arrays are said to be made of: what is known of others is left out.
_DEEPEST: Final = 4

T = TypeVar("T")
N = TypeVar("N", int, float)


def of_both(one: Term, other: Term, depth: int = 0) -> Term:
    """The term of an array that is known as two.

    Args:
        one: as it is known in one case …
        other: … and in the other one, with the same symbols.
        depth: arrays that it is a part of.

    Returns:
        what both say. Cases of further masks are left out: whoever needs them asks both sides.
    """
    if one is other:
        return one
    bounds = one.bounds.union(other.bounds)
    if depth >= _DEEPEST:
        return anywhere(one, bounds)

    def term(left: Term, right: Term) -> Term | None:
        return of_both(left, right, depth + 1) if _is_same(left.symbols, right.symbols) else None

    def total(left: tuple[Term, int], right: tuple[Term, int]) -> tuple[Term, int] | None:
        base = term(left[0], right[0])
        return None if base is None or left[1] != right[1] else (base, left[1])

    def between(left: tuple[Term, N, N], right: tuple[Term, N, N]) -> tuple[Term, N, N] | None:
        base, (_, low, high) = term(left[0], right[0]), left
        return None if base is None or (low, high) != right[1:] else (base, low, high)

    def truncated(left: Truncated, right: Truncated) -> Truncated | None:
        value = term(left.value, right.value)
        if value is None or (left.divisor, left.is_multiple) != (right.divisor, right.is_multiple):
            return None
        return Truncated(value, left.divisor, left.is_multiple)

    def word(left: Word, right: Word) -> Word | None:
        if (left.opcode, left.bits, len(left.operands)) != (right.opcode, right.bits, len(right.operands)):
            return None
        parts = [part for pair in zip(left.operands, right.operands) if (part := term(*pair)) is not None]
        return Word(left.opcode, parts, left.bits) if len(parts) == len(left.operands) else None

    return Term(
        one.symbols,
        bounds,
        one.known,
        divisor=one.divisor if one.divisor == other.divisor else None,
        divided_by=_known(one.divided_by, other.divided_by, _same_symbols),
        rest_of=_known(one.rest_of, other.rest_of, term),
        zero_like=_known(one.zero_like, other.zero_like, term),
        predicate=_known(one.predicate, other.predicate, predicates.of_both),
        negated=_known(one.negated, other.negated, _same_symbols),
        finite=_known(one.finite, other.finite, _same_symbols),
        nan_of=_known(one.nan_of, other.nan_of, _same_symbols),
        clamped=_known(one.clamped, other.clamped, between),
        limited=_known(one.limited, other.limited, between),
        sum_of=_known(one.sum_of, other.sum_of, total),
        truncated=_known(one.truncated, other.truncated, truncated),
        at_most=_known(one.at_most, other.at_most, _same_symbols),
        gathered=one.gathered if one.gathered is other.gathered else None,
        word=_known(one.word, other.word, word),
    )


def anywhere(term: Term, bounds: MachineRange) -> Term:
    """A term that is read where it was not: what else was known of it held where it was.

    Args:
        term: of which nothing but its symbols and its known elements is true wherever they are.
        bounds: of its elements where it is read.
    """
    return Term(term.symbols, bounds, term.known)


def _known(one: T | None, other: T | None, both: Callable[[T, T], T | None]) -> T | None:
    """What two facts have in common; None where one of them is missing."""
    if one is other:
        return one
    return None if one is None or other is None else both(one, other)


def _is_same(one: Symbols, other: Symbols) -> bool:
    return bool(np.array_equal(one, other))


def _same_symbols(one: Symbols, other: Symbols) -> Symbols | None:
    return one if _is_same(one, other) else None
