"""Which pass: the history of one module from the program as given to the program as compiled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from hlotool.dump.names import Kind
from hlotool.dump.records import Stage
from hlotool.findings.verdict import Answer
from hlotool.replay.records import ModuleRecord
from hlotool.replay.task import Task
from hlotool.search.bisection.records import CandidateRecord
from hlotool.search.bisection.stage_worker import Question
from hlotool.search.history import History, Transition, search_history

#: Judges one stage; the text says why it is asked.
Ask = Callable[[Question, str], ModuleRecord]

#: The label of a dump that no pass made: a pipeline begins.
_START = "pipeline-start"


@dataclass(frozen=True, slots=True)
class Turn:
    """A place in a history where a fault came in.

    Attributes:
        task: the module.
        reference: number of the stage that gave the expected values.
        good: number of the last stage that is right.
        bad: number of the first one that is wrong.
        comparison: of the wrong stage.
        confirmed: asked again, both answers were the same.
    """

    task: Task
    reference: int
    good: int
    bad: int
    comparison: ModuleRecord
    confirmed: bool

    @property
    def candidates(self) -> list[CandidateRecord]:
        """The passes that ran between the two stages, as far as dumps tell; the likeliest is the last."""
        stages = self.task.module.stages[self.good + 1 : self.bad + 1]
        found = [_candidate(stage) for stage in stages]
        return [one for one in found if one.name] or found[-1:]


def _candidate(stage: Stage) -> CandidateRecord:
    name = "" if stage.after_pass == _START else stage.after_pass
    if stage.kind is Kind.PASS and not stage.before_pass and stage.pipeline:
        # A step inside a pass, such as `copy-insertion.after_adding_copies`.
        return CandidateRecord(name=stage.pipeline, pipeline="", stage=stage.label)
    return CandidateRecord(name=name, pipeline=stage.pipeline, stage=stage.title)


@dataclass(slots=True)
class PassSearch:
    """The search through one module's stages.

    Attributes:
        task: the module and the options.
        ask: judges a stage.
        exhaustive: look at every stage, so that no fault that was repaired can hide.
        history: what is known of the stages, against the first one; None before `run`.
        rows: the comparisons made, by number of the stage.
    """

    task: Task
    ask: Ask
    exhaustive: bool = False
    history: History | None = None
    rows: dict[int, ModuleRecord] = field(default_factory=dict)

    def run(self) -> list[Turn]:
        """All faults found, each confirmed; independent ones behind the first are looked for, too."""
        self.history = self._search(0, self.rows)
        turns = [self._turn(0, t, self.rows[t.after]) for t in self.history.breaks]
        if self.history.is_sound and len(turns) == 1:
            turns += self._behind(turns[0].bad)
        return turns

    def _search(self, start: int, rows: dict[int, ModuleRecord]) -> History:
        """The history from stage `start` on, judged by that stage; its points count from `start`."""
        count = len(self.task.module.stages) - start

        def ask(point: int) -> Answer:
            number = start + point
            rows[number] = self.ask(Question(self.task, number, start), self._text(number))
            return rows[number].verdict.answer

        return search_history(count, ask, self.exhaustive)

    def _behind(self, start: int) -> Iterator[Turn]:
        """Faults that came in after stage `start`, which is wrong itself: the rest is judged by it."""
        while start < len(self.task.module.stages) - 1:
            rows: dict[int, ModuleRecord] = {}
            history = self._search(start, rows)
            if not history.is_sound:
                return
            turns = [self._turn(start, t, rows[start + t.after], start) for t in history.breaks]
            yield from turns
            start = turns[-1].bad

    def _turn(self, reference: int, t: Transition, row: ModuleRecord, offset: int = 0) -> Turn:
        good, bad = offset + t.before, offset + t.after
        # The reference agrees with itself, that need not be asked again.
        is_good = good == reference or self._again(good, reference) is Answer.GOOD
        is_bad = self._again(bad, reference) is Answer.BAD
        return Turn(self.task, reference, good, bad, row, is_good and is_bad)

    def _again(self, number: int, reference: int) -> Answer:
        question = Question(self.task, number, reference, attempt=1)
        return self.ask(question, f"again {self._text(number)}").verdict.answer

    def _text(self, number: int) -> str:
        stage = self.task.module.stages[number]
        sequence = "" if stage.sequence is None else f"{stage.sequence:04d} "
        return f"{sequence}{stage.title}"
