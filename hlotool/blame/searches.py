"""Pure searches: the smallest failing part, all minimal sets, where a history turns bad.

They get a space and an oracle and know nothing of HLO, files or terminals.

The smallest part of a list, or of a tree, that still fails: Zeller and Hildebrandt, Simplifying and
Isolating Failure-Inducing Input (2002); the hierarchical form is Misherghi and Su (2006). Only removals are
tried, in sweeps of halving length, as reducers of programs do: a success goes on where it stands instead of
starting over.

All minimal sets with a property, such as the passes that must be off for the failure to vanish: one minimal
set hides the others. Every other one lacks at least one of its members, so the search is repeated without
each of them in turn (Reiter, A Theory of Diagnosis from First Principles, 1987).

Where a history turns bad: binary search over points some of which cannot be judged. The number of questions
about a history of n usable points that turns once is at most log2(n) + 2 for the turning point; the rest of
`QUESTIONS_PER_BIT * log2(n)`, but for `RESERVE`, goes to points in between, as a history may turn bad, good
and bad again.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from hlotool.judge.verdicts import Answer

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


#: Questions per binary digit of the number of points, as long as one turn is all there is.
QUESTIONS_PER_BIT = 3

#: Of these, what is left to the caller, to confirm the answer and to look behind it.
RESERVE = 4


@dataclass(frozen=True, slots=True)
class Transition:
    """Neighbours with different answers; the points between them cannot be judged.

    Attributes:
        before: the last point with the one answer.
        after: the first point with the other one.
        breaks: `before` is good and `after` is bad; otherwise the failure vanishes here.
    """

    before: int
    after: int
    breaks: bool


@dataclass(frozen=True, slots=True)
class History:
    """What is known of a history.

    Attributes:
        first: answer of the first usable point, `UNUSABLE` when there is none.
        last: answer of the last usable point.
        transitions: that were found, in order. All of them only if every point was asked about.
        answers: of all points asked about.
    """

    first: Answer
    last: Answer
    transitions: tuple[Transition, ...]
    answers: dict[int, Answer]

    @property
    def is_sound(self) -> bool:
        """Both ends are as a search needs them: the first is good, the last is bad."""
        return self.first is Answer.GOOD and self.last is Answer.BAD

    @property
    def breaks(self) -> tuple[Transition, ...]:
        """The turns from good to bad."""
        return tuple(t for t in self.transitions if t.breaks)

    @property
    def is_monotonic(self) -> bool:
        """Nothing known contradicts a single turn from good to bad."""
        return len(self.transitions) <= 1


def search_history(
    count: int,
    ask: Callable[[int], Answer],
    exhaustive: bool = False,
    left: Callable[[int], None] = lambda points: None,
) -> History:
    """Find the turns of a history.

    Args:
        count: number of points; both ends are asked about first.
        ask: the oracle; asked once about a point.
        exhaustive: ask about every point, so that no turn can hide.
        left: called before a gap is halved, with the points that are open in it.

    Returns:
        at least one transition if the ends differ.
    """
    asked = _Asked(count, ask, left)
    first = asked.nearest(range(count))
    last = asked.nearest(range(count - 1, -1, -1))
    if first is None or last is None:
        return History(Answer.UNUSABLE, Answer.UNUSABLE, (), asked.answers)
    asked.settle()
    if exhaustive:
        asked.all()
    elif asked.answers[first] is not asked.answers[last]:
        asked.spread(math.floor(QUESTIONS_PER_BIT * math.log2(count)) - RESERVE if count > 1 else 0)
    return History(asked.answers[first], asked.answers[last], tuple(asked.transitions()), asked.answers)


class _Asked:
    """The answers so far."""

    def __init__(self, count: int, ask: Callable[[int], Answer], left: Callable[[int], None]) -> None:
        self.answers: dict[int, Answer] = {}
        self._count = count
        self._ask = ask
        self._left = left

    def __call__(self, point: int) -> Answer:
        if point not in self.answers:
            self.answers[point] = self._ask(point)
        return self.answers[point]

    def nearest(self, order: range) -> int | None:
        """The first usable point in `order`."""
        return next((point for point in order if self(point) is not Answer.UNUSABLE), None)

    def transitions(self) -> Iterator[Transition]:
        """Neighbours among the known usable points whose answers differ."""
        usable = sorted(p for p, answer in self.answers.items() if answer is not Answer.UNUSABLE)
        for before, after in itertools.pairwise(usable):
            if self.answers[before] is not self.answers[after]:
                yield Transition(before, after, self.answers[after] is Answer.BAD)

    def settle(self) -> None:
        """Halve every gap between different answers until nothing usable is left in it."""
        while gap := next((t for t in self.transitions() if self._open(t.before, t.after)), None):
            self._left(self._open(gap.before, gap.after))
            for point in _middle_first(gap.before, gap.after):
                if self(point) is not Answer.UNUSABLE:
                    break

    def spread(self, questions: int) -> None:
        """Spend what is left of `questions` on the middles of the largest gaps; settle what that shows."""
        while len(self.answers) < questions:
            known = sorted(self.answers)
            low, high = max(itertools.pairwise(known), key=lambda gap: gap[1] - gap[0])
            if high - low < 2:
                return
            self((low + high) // 2)
        self.settle()

    def all(self) -> None:
        for point in range(self._count):
            self(point)

    def _open(self, low: int, high: int) -> int:
        """How many points strictly between were not asked about."""
        return sum(point not in self.answers for point in range(low + 1, high))


def _middle_first(low: int, high: int) -> Iterator[int]:
    """The points strictly between, the middle first, then away from it in growing leaps, then the others.

    Points that cannot be judged come in runs: leaps get out of them.
    """
    middle = (low + high) // 2
    seen = set()
    leaps = [0, *(sign << n for n in range((high - low).bit_length()) for sign in (1, -1))]
    rest = sorted(range(low + 1, high), key=lambda point: abs(point - middle))
    for point in (*(middle + leap for leap in leaps), *rest):
        if low < point < high and point not in seen:
            seen.add(point)
            yield point
