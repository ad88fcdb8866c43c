"""Delta debugging: the smallest part of a list, or of a tree, that still fails.

Zeller and Hildebrandt, Simplifying and Isolating Failure-Inducing Input (2002); the hierarchical form is
Misherghi and Su (2006). Only removals are tried, in sweeps of halving length, as reducers of programs do:
a success goes on where it stands instead of starting over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

T = TypeVar("T")
Candidate_contra = TypeVar("Candidate_contra", contravariant=True)

#: Removals handed to the oracle at once.
_BATCH = 4


class FirstFailing(Protocol[Candidate_contra]):
    """An oracle that is asked about several candidates at once and may judge them at the same time."""

    def __call__(self, candidates: Sequence[Candidate_contra]) -> int | None:
        """Position of the first candidate that still fails, None when none does.

        The answer must not depend on how many candidates are judged at the same time.
        """


def minimize(items: Iterable[T], first_failing: FirstFailing[tuple[T, ...]]) -> tuple[T, ...]:
    """A sublist that fails and from which no single item can be removed.

    Args:
        items: a list that fails.
        first_failing: the oracle, asked about sublists.

    Returns:
        the sublist, in the order of `items`. It is minimal, not necessarily the smallest one.
    """
    kept = tuple(items)
    if not kept or first_failing([()]) is not None:
        return ()
    length = (len(kept) + 1) // 2
    while True:
        shorter = _sweep(kept, length, first_failing)
        if length == 1 and len(shorter) == len(kept):
            return kept
        kept = shorter
        length = max(1, min(length, len(kept)) // 2)


def _sweep(kept: tuple[T, ...], length: int, first_failing: FirstFailing[tuple[T, ...]]) -> tuple[T, ...]:
    """Try to remove every run of `length` items, from the end: later items depend on earlier ones."""
    end = len(kept)
    while end > 0 and len(kept) > 1:
        ends = list(range(end, max(end - _BATCH * length, 0), -length))
        candidates = [kept[: max(e - length, 0)] + kept[e:] for e in ends]
        found = first_failing([c for c in candidates if c])
        if found is None:
            end -= _BATCH * length
            continue
        kept, end = candidates[found], max(ends[found] - length, 0)
    return kept


def minimize_tree(
    roots: Iterable[T],
    children: Callable[[T], Sequence[T]],
    first_failing: FirstFailing[frozenset[T]],
) -> frozenset[T]:
    """The nodes of a forest that must stay for the failure to show; a node goes with all below it.

    Args:
        roots: of the forest.
        children: of a node.
        first_failing: the oracle, asked about sets of nodes that hold the parent of each node.

    Returns:
        a set that fails and from which no node can be removed together with what is below it.
    """
    top = tuple(roots)
    kept = frozenset(_below(top, children))
    while True:
        before, level = kept, top
        while level:
            kept = _minimize_level(level, kept, children, first_failing)
            level = tuple(c for node in level if node in kept for c in children(node) if c in kept)
        if kept == before:
            return kept


def _minimize_level(
    level: tuple[T, ...],
    kept: frozenset[T],
    children: Callable[[T], Sequence[T]],
    first_failing: FirstFailing[frozenset[T]],
) -> frozenset[T]:
    def without(stay: tuple[T, ...]) -> frozenset[T]:
        below: list[T] = _below([node for node in level if node not in set(stay)], children)
        return kept - frozenset(below)

    stay = minimize(level, lambda candidates: first_failing([without(c) for c in candidates]))
    return without(stay)


def _below(roots: Sequence[T], children: Callable[[T], Sequence[T]]) -> list[T]:
    """`roots` and all their descendants."""
    found = list(roots)
    for node in found:
        found.extend(children(node))
    return found
