"""Two cases told apart on the way through a program: a number is equal to a constant, or it is not.

Where two programs differ in what they do at a tie only, they are the same if they are so with the constant in
place of the number. As far as elements stay at their places, each can be looked at alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from hlotool.search.mutation import predicates
from hlotool.search.mutation.hashing import combined, key_of, whole
from hlotool.search.mutation.predicates import Predicate
from hlotool.search.mutation.terms import Case, Term, Terms, constant

T = TypeVar("T", bound=Terms)


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """The two cases.

    Attributes:
        number: the symbol of the array whose elements may be equal to a constant.
        mask: holds where they are.
        key: the symbol of the mask.
        value: the constant, everywhere.
    """

    number: int
    mask: Predicate
    key: int
    value: Term

    def told_apart(self, term: Term) -> Term:
        """The term, with both cases if it is the number."""
        if self.key in term.cases or int(whole(term.symbols)) != self.number:
            return term
        case = Case(self.mask, self.value, replace(term, cases={}), is_asked=True)
        return replace(term, cases={self.key: case, **term.cases})


def splits(compared: Sequence[tuple[Term, Term]]) -> list[Split]:
    """One for each pair of which one side is a constant that only one number is equal to."""
    found: dict[int, Split] = {}
    for pair in compared:
        for one, other in (pair, pair[::-1]):
            point = other.bounds
            is_zero = point.low == 0 and one.bounds.negative_zero
            if point.is_point and not one.bounds.is_point and not is_zero and other.known is not None:
                mask = predicates.comparison("EQ", one.side, other.side)
                shape = np.broadcast_shapes(one.symbols.shape, other.symbols.shape)
                key, number = int(whole(mask.symbols(shape))), int(whole(one.symbols))
                value = constant(np.broadcast_to(other.known, one.symbols.shape))
                found[number] = Split(number, mask, key, value)
    return list(found.values())


def settled(terms: T, split: Split | None) -> T:
    """The same terms where their elements leave their places: both cases make one symbol."""
    if split is None:
        return terms
    if isinstance(terms, tuple):
        return tuple(settled(term, split) for term in terms)  # type: ignore[return-value]
    case = terms.cases.get(split.key)
    if case is None or not case.is_asked or int(whole(terms.symbols)) == split.number:
        return terms
    parts = case.holds.symbols, case.fails.symbols
    mask = split.mask.symbols(terms.symbols.shape)
    symbols = np.where(parts[0] == parts[1], parts[1], combined(key_of("split"), mask, *parts))
    return Term(symbols, terms.bounds)  # type: ignore[return-value]
