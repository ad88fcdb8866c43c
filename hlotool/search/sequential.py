"""Failures that show only sometimes: how often to repeat before an answer is believed.

Wald's sequential probability ratio test: repeat until the record is 1 / (1 - confidence) times likelier under
the one hypothesis than under the other; a wrong answer then has at most the probability 1 - confidence. With
a rate of 0 for healthy points one failure decides, and the number of repeats without any follows from the
rate of failing ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from hlotool.findings.verdict import Answer


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
            raise ValueError(f"rates {self.healthy_rate} and {self.failing_rate} cannot be told apart")
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
