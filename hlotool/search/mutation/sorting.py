"""Sorts whose result does not depend on the order of what is sorted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hlotool.ir.module import Instruction
from hlotool.search.mutation.hashing import Symbols, bag_along, combined, key_of, whole
from hlotool.search.mutation.predicates import EQUAL, GREATER, LESS, UNORDERED, Table, order
from hlotool.search.mutation.terms import Term, Terms

#: The outcomes of a comparison of integers.
_NUMBERS = (slice(UNORDERED),)


def order_of_rows(
    sort: Instruction, terms: Sequence[Term], before: Term, arguments: Sequence[Terms]
) -> list[Symbols] | None:
    """Symbols of the operands of a sort that are the same in whatever order their rows are.

    Args:
        sort: the instruction.
        terms: its operands.
        before: what its comparator returns …
        arguments: … for these terms, two of each operand.

    Returns:
        None where rows that the comparator takes for equal may differ.
    """
    compared = _compared(before, arguments)
    (dimension,) = sort.integers("dimensions")
    is_distinct = any(_is_distinct(terms[n], dimension) for n in compared or ())
    if not compared or not (is_distinct or (len(compared) == len(terms) and _are_integers(sort))):
        return None
    rows = combined(key_of("row"), *(term.symbols for term in terms))
    return [whole(bag_along(rows, dimension))]


def _compared(before: Term, arguments: Sequence[Terms]) -> tuple[int, ...]:
    """The operands that are all equal in rows that neither come before the other; none where that is open."""
    if before.predicate is None:
        return ()
    sides = [argument for argument in arguments if isinstance(argument, Term)]
    pairs = [order(left.side, right.side) for left, right in zip(sides[::2], sides[1::2])]
    numbers = {variable.key: n for n, (variable, _) in enumerate(pairs)}
    variables = before.predicate.variables
    if not variables or any(variable.key not in numbers for variable in variables):
        return ()
    is_whole = all(v.possible == (True, True, True, False) for v in variables)
    is_order = is_whole and _is_lexicographic(before.predicate.table[_NUMBERS * len(variables)])
    return tuple(numbers[v.key] for v in variables) if is_order else ()


def _is_lexicographic(table: Table) -> bool:
    """Whether one comparison decides, where it finds equality another one, and so on until none is left."""
    if table.ndim == 0:
        return not table
    for axis in range(table.ndim):
        less, equal, greater = (np.take(table, n, axis=axis) for n in (LESS, EQUAL, GREATER))
        decides = (less.all() and not greater.any()) or (greater.all() and not less.any())
        if decides and _is_lexicographic(equal):
            return True
    return False


def _is_distinct(term: Term, dimension: int) -> bool:
    """Whether no number is twice in a row that is sorted."""
    if term.known is None:
        return False
    ordered = np.sort(term.known, axis=dimension)
    return bool((np.diff(ordered.astype(np.float64), axis=dimension) != 0).all())


def _are_integers(sort: Instruction) -> bool:
    return all(operand.element_type.is_integer for operand in sort.operands)
