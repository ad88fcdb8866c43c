"""The steps of a search: asked by key, computed once, journaled, repeated until they are believed.

Of failures that show only sometimes: Wald's sequential probability ratio test. Repeat until the record is 1
/ (1 - confidence) times likelier under the one hypothesis than under the other; a wrong answer then has at
most the probability 1 - confidence. With a rate of 0 for healthy points one failure decides, and the number
of repeats without any follows from the rate of failing ones.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from hlotool.judge.verdicts import Answer
from hlotool.system.cache import Journal

#: Computes the values of several steps at once: pairs of position and value, in any order.
Evaluate = Callable[[Sequence[int]], Iterator[tuple[int, Any]]]


class Listener(Protocol):
    """Receives the progress of a search."""

    def step(self, text: str, verdict: str, seconds: float, again: bool) -> None:
        """A step is done: what it was about, what came out; `again` when it was known, not asked."""

    def phase(self, text: str, steps: int | None = None) -> None:
        """A new part of the search begins; `steps` is its length, where that is known."""

    def left(self, points: int) -> None:
        """The part halves a history in which so many points are open."""


class Silent:
    """A listener that does not care."""

    def step(self, text: str, verdict: str, seconds: float, again: bool) -> None:
        """See `Listener`."""

    def phase(self, text: str, steps: int | None = None) -> None:
        """See `Listener`."""

    def left(self, points: int) -> None:
        """See `Listener`."""


class Steps:
    """Remembers what was asked.

    Values are plain data: what JSON can hold.

    Args:
        journal: keeps the answers; None for the memory of this process only.
        listener: receives each step.

    Attributes:
        computed: steps that were computed in this process.
        recalled: steps that the journal knew.
        listener: see above.
    """

    def __init__(self, journal: Journal | None = None, listener: Listener | None = None) -> None:
        self.listener: Listener = listener or Silent()
        self.computed = 0
        self.recalled = 0
        self._journal = journal
        self._known: dict[str, Any] = journal.read() if journal else {}
        self._old = set(self._known)
        self._seconds: dict[str, float] = {}

    @property
    def problem(self) -> str:
        """Why answers are no longer kept; empty as long as they are."""
        return self._journal.problem if self._journal else ""

    def ask(
        self,
        key: str,
        text: str,
        compute: Callable[[], Any],
        show: Callable[[Any], str] = str,
        lasts: Callable[[Any], bool] = lambda value: True,
    ) -> Any:
        """The value of one step.

        Args:
            key: everything that the value depends on.
            text: what the step is about, for the listener.
            compute: called unless the value is known.
            show: the value in a few words.
            lasts: whether another run of the command should believe it, too.
        """
        start = time.perf_counter()
        again = key in self._known and key not in self._seconds
        if not self._recall(key):
            value = compute()
            self._keep(key, value, lasts(value))
            self.computed += 1
        value = self._known[key]
        took = self._seconds.pop(key, time.perf_counter() - start)
        self.listener.step(text, show(value), took, again)
        return value

    def keep(self, key: str, value: Any, seconds: float, lasts: bool = True) -> None:
        """Remember a step that took `seconds` elsewhere; `ask` then notifies the listener."""
        self._keep(key, value, lasts)
        self._seconds[key] = seconds
        self.computed += 1

    def missing(self, keys: Iterable[str]) -> list[str]:
        """Those of `keys` whose values are not known."""
        return [key for key in dict.fromkeys(keys) if key not in self._known]

    def _recall(self, key: str) -> bool:
        if key in self._old:
            self._old.discard(key)
            self.recalled += 1
        return key in self._known

    def _keep(self, key: str, value: Any, lasts: bool) -> None:
        self._known[key] = value
        if lasts and self._journal is not None:
            self._journal.add(key, value)


@dataclass(frozen=True, slots=True)
class Rate:
    """A measured failure rate.

    Attributes:
        failures: seen.
        runs: made.
    """

    failures: int
    runs: int

    @property
    def estimate(self) -> float:
        """The share of runs that failed, 0 where there were none."""
        return self.failures / self.runs if self.runs else 0.0

    def interval(self, confidence: float) -> tuple[float, float]:
        """The exact (Clopper-Pearson) interval that holds the true rate with at least this confidence."""
        from scipy.stats import beta

        tail = (1 - confidence) / 2
        low = float(beta.ppf(tail, self.failures, self.runs - self.failures + 1)) if self.failures else 0.0
        is_certain = self.failures == self.runs
        high = 1.0 if is_certain else float(beta.ppf(1 - tail, self.failures + 1, self.runs - self.failures))
        return low, high

    def __str__(self) -> str:
        return f"{self.failures} of {self.runs} runs"


@dataclass(frozen=True, slots=True)
class SequentialTest:
    """Tells points that fail at `failing_rate` or more from points that fail at `healthy_rate` or less.

    Attributes:
        failing_rate: of a point where the failure is; 1 means that one run decides.
        confidence: each of the two wrong answers has at most the probability 1 - confidence.
        healthy_rate: of a point without the failure.
        limit: of runs; beyond it there is no answer.
    """

    failing_rate: float = 1.0
    confidence: float = 0.99
    healthy_rate: float = 0.0
    limit: int = 1000

    def __post_init__(self) -> None:
        if not 0 <= self.healthy_rate < self.failing_rate <= 1:
            raise ValueError(f"rates {self.healthy_rate} and {self.failing_rate} cannot be distinguished")
        if not 0.5 <= self.confidence < 1:
            raise ValueError(f"a confidence of {self.confidence} says nothing")

    @property
    def repeats(self) -> int:
        """Runs without a failure after which a point is called good."""
        per_pass = _log_ratio(1 - self.failing_rate, 1 - self.healthy_rate)
        return 1 if per_pass == -math.inf else math.ceil(self._bound / -per_pass)

    def decide(self, failures: int, passes: int) -> Answer | None:
        """The answer after so many runs, None when there must be more."""
        score = _times(failures, _log_ratio(self.failing_rate, self.healthy_rate)) + _times(
            passes, _log_ratio(1 - self.failing_rate, 1 - self.healthy_rate)
        )
        if math.isnan(score) or score >= self._bound:
            return Answer.BAD
        if score <= -self._bound:
            return Answer.GOOD
        return Answer.UNUSABLE if failures + passes >= self.limit else None

    def run(self, fails: Callable[[], bool]) -> tuple[Answer, Rate]:
        """Repeat `fails` until the answer is clear."""
        failures = runs = 0
        while True:
            failures += fails()
            runs += 1
            answer = self.decide(failures, runs - failures)
            if answer is not None:
                return answer, Rate(failures, runs)

    @property
    def _bound(self) -> float:
        return -math.log(1 - self.confidence)


def _log_ratio(one: float, other: float) -> float:
    if one == 0:
        return -math.inf
    return math.inf if other == 0 else math.log(one / other)


def _times(count: int, value: float) -> float:
    return count * value if count else 0.0
