"""All minimal sets with a property, such as: the passes that must be off for the failure to vanish.

One minimal set hides the others. Every other minimal set lacks at least one of its members, so the search is
repeated without each of them in turn (Reiter, A Theory of Diagnosis from First Principles, 1987).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from hlotool.search.ddmin import minimize

T = TypeVar("T")

#: Times that a set is asked about again before it is believed.
CONFIRMATIONS = 2


def minimal_sets(
    items: Sequence[T],
    holds: Callable[[frozenset[T]], bool],
    confirm: Callable[[frozenset[T]], bool],
    limit: int = 16,
) -> list[frozenset[T]]:
    """The minimal subsets of `items` that have a property.

    Args:
        items: the whole set.
        holds: does the set have the property? Sets that contain one with the property should have it too.
        confirm: asks again, without any memory of earlier answers.
        limit: of the number of sets.

    Returns:
        the sets, in the order found, each confirmed `CONFIRMATIONS` times; empty when `items` has not got
        the property.
    """
    found: list[frozenset[T]] = []
    seen: set[frozenset[T]] = set()
    waiting: list[frozenset[T]] = [frozenset()]
    while waiting and len(found) < limit:
        excluded = waiting.pop(0)
        if excluded in seen:
            continue
        seen.add(excluded)
        known = next((s for s in found if not s & excluded), None)
        minimal = known or _one([item for item in items if item not in excluded], holds)
        if minimal is None:
            continue
        if minimal not in found and all(confirm(minimal) for _ in range(CONFIRMATIONS)):
            found.append(minimal)
        waiting += [excluded | {item} for item in items if item in minimal]
    return found


def _one(items: Sequence[T], holds: Callable[[frozenset[T]], bool]) -> frozenset[T] | None:
    """One minimal subset with the property."""
    if not holds(frozenset(items)):
        return None

    def first_holding(candidates: Sequence[tuple[T, ...]]) -> int | None:
        return next((i for i, c in enumerate(candidates) if holds(frozenset(c))), None)

    return frozenset(minimize(items, first_holding))
