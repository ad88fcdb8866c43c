"""Where a history turns bad: binary search over points some of which cannot be judged.

The number of questions about a history of n usable points that turns once is at most log2(n) + 2 for the
turning point; the rest of `QUESTIONS_PER_BIT * log2(n)`, but for `RESERVE`, goes to points in between, as a
history may turn bad, good and bad again.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from hlotool.findings.verdict import Answer

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


def search_history(count: int, ask: Callable[[int], Answer], exhaustive: bool = False) -> History:
    """Find the turns of a history.

    Args:
        count: number of points; both ends are asked about first.
        ask: the oracle; asked once about a point.
        exhaustive: ask about every point, so that no turn can hide.

    Returns:
        at least one transition if the ends differ.
    """
    asked = _Asked(count, ask)
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

    def __init__(self, count: int, ask: Callable[[int], Answer]) -> None:
        self.answers: dict[int, Answer] = {}
        self._count = count
        self._ask = ask

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
        while gap := next((t for t in self.transitions() if self._is_open(t.before, t.after)), None):
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

    def _is_open(self, low: int, high: int) -> bool:
        return any(point not in self.answers for point in range(low + 1, high))


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
