"""What a stage of triage may take: a search that ends early keeps what it has found."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from hlotool.findings.verdict import Answer
from hlotool.search.reduction.case import Case
from hlotool.search.reduction.case_worker import Outcome
from hlotool.search.reduction.oracle import Judge


class OutOfTime(Exception):
    """A stage has had its time."""


class LimitedJudge:
    """A judge that answers until its time is over; afterwards no program fails any more.

    A reduction then keeps the smallest program that did fail.

    Args:
        judge: that is asked.
        seconds: from now.

    Attributes:
        name: as for `Judge`.
        width: likewise.
        is_over: a program was not judged for want of time.
    """

    def __init__(self, judge: Judge, seconds: float) -> None:
        self.name = judge.name
        self.width = judge.width
        self.is_over = False
        self._judge = judge
        self._end = time.monotonic() + seconds

    def run(self, cases: Sequence[Case]) -> Iterator[tuple[int, Outcome]]:
        """What each program does, in any order."""
        if time.monotonic() < self._end:
            yield from self._judge.run(cases)
            return
        self.is_over = True
        for index in range(len(cases)):
            yield index, Outcome(answer=Answer.UNUSABLE, reason="no time is left")


class Deadline:
    """Listens to the steps of a search and ends it with OutOfTime when its time is over.

    Args:
        seconds: from now.
    """

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    def step(self, text: str, verdict: str, seconds: float, again: bool) -> None:
        """A step is done; raises OutOfTime after the last one that there is time for."""
        self._look()

    def phase(self, text: str, steps: int | None = None) -> None:
        """A new part of the search begins; raises likewise."""
        self._look()

    def _look(self) -> None:
        if time.monotonic() > self._end:
            raise OutOfTime
