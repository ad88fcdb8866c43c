"""How far a module agrees that can neither be called healthy nor wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hlotool.findings.verdict import AGREEING, FAILED, Answer, Verdict
from hlotool.replay.records import ModuleRecord
from hlotool.replay.task import Task
from hlotool.search.bisection.stage_worker import Question


@dataclass(frozen=True, slots=True)
class Bracket:
    """The two stages between which a module stops to agree.

    Attributes:
        task: the module.
        good: number of a stage that agrees with the first one.
        stop: number of a later stage that does not; the next one, unless it is wrong.
        row: what is said of it.
    """

    task: Task
    good: int
    stop: int
    row: ModuleRecord

    @property
    def is_wrong(self) -> bool:
        """A wrong stage was met on the way: there is something to search after all."""
        return self.row.verdict.answer is Answer.BAD

    def __str__(self) -> str:
        stages = self.task.module.stages
        return f"right up to {stages[self.good].numbered}, from {stages[self.stop].numbered} on {self._why}"

    @property
    def _why(self) -> str:
        verdict = self.row.verdict
        if verdict in FAILED or verdict in (Verdict.UNSUPPORTED, Verdict.BAD_INPUT):
            return f"it cannot be run: {self.row.reason}"
        return f"{verdict.value}: {self.row.reason}"


def find_bracket(task: Task, ask: Callable[[Question, str], ModuleRecord]) -> Bracket | None:
    """Halve the history of a module whose last stage does not agree; None when the first one cannot be run.

    Args:
        task: a module of several stages.
        ask: judges a stage.
    """

    def judged(number: int) -> ModuleRecord:
        return ask(Question(task, number), task.module.stages[number].numbered)

    low, high = 0, len(task.module.stages) - 1
    if judged(low).verdict not in AGREEING:
        return None
    row = judged(high)
    while high - low > 1 and row.verdict.answer is not Answer.BAD:
        middle = (low + high) // 2
        found = judged(middle)
        if found.verdict in AGREEING:
            low = middle
        else:
            high, row = middle, found
    return Bracket(task, low, high, row)
