"""Which pass: the history of one module from the program as given to the program as compiled."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
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
#: What a dump names as the next pass when its pipeline ends.
_END = "pipeline-end"


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
        stages = self.task.module.stages
        found = [_candidate(stages, number) for number in range(self.good + 1, self.bad + 1)]
        return [one for one in found if one.name] or found[-1:]


def _candidate(stages: Sequence[Stage], number: int) -> CandidateRecord:
    """The pass that ran before a stage was dumped."""
    stage = stages[number]
    if stage.kind is Kind.PASS and not stage.before_pass and stage.pipeline:
        # A step inside a pass, such as `copy-insertion.after_adding_copies`.
        return CandidateRecord(name=stage.pipeline, pipeline="", stage=stage.label)
    if stage.after_pass != _START:
        return CandidateRecord(name=stage.after_pass, pipeline=stage.pipeline, stage=stage.title)
    before = stages[number - 1]
    name = _pass_around(stages, number)
    return CandidateRecord(name=name, pipeline=before.pipeline if name else stage.pipeline, stage=stage.title)


def _pass_around(stages: Sequence[Stage], number: int) -> str:
    """The pass that ran when a pipeline began: mostly one that runs this pipeline as a part of itself.

    After it, XLA dumps the pipeline around again, under the name of this pass. Where it does not, the stage
    before names the pass that ran next.
    """
    before, stage = stages[number - 1], stages[number]
    around = next((s for s in stages[number:] if s.pipeline == before.pipeline), None)
    names = (around.after_pass if around else "", before.before_pass)
    return next((name for name in names if name not in ("", _START, _END, stage.pipeline)), "")


@dataclass(slots=True)
class PassSearch:
    """The search through one module's stages.

    Attributes:
        task: the module and the options.
        ask: judges a stage.
        exhaustive: look at every stage, so that no fault that was repaired can hide.
        stop: number of the stage to search up to, None for the last one.
        hints: labels of a right and a wrong stage to try before anything is searched.
        history: what is known of the stages, against the first one; None before `run`.
        rows: the comparisons made, by number of the stage.
    """

    task: Task
    ask: Ask
    exhaustive: bool = False
    stop: int | None = None
    hints: Sequence[tuple[str, str]] = ()
    history: History | None = None
    rows: dict[int, ModuleRecord] = field(default_factory=dict)

    def run(self) -> list[Turn]:
        """All faults found, each confirmed; independent ones behind the first are looked for, too."""
        if not self.exhaustive and (hinted := self._hinted()):
            return [hinted, *self._behind(hinted.bad)]
        self.history = self._search(0, self.rows)
        turns = [self._turn(0, t, self.rows[t.after]) for t in self.history.breaks]
        if self.history.is_sound and len(turns) == 1:
            turns += self._behind(turns[0].bad)
        return turns

    @property
    def _count(self) -> int:
        return len(self.task.module.stages) if self.stop is None else self.stop + 1

    def _hinted(self) -> Turn | None:
        """The turn between two neighbours that a hint names, if it is there, too."""
        titles = [stage.title for stage in self.task.module.stages[: self._count]]
        for good, pair in enumerate(itertools.pairwise(titles)):
            if pair in self.hints and self._turns_after(good):
                return self._turn(0, Transition(good, good + 1, True), self.rows[good + 1])
        return None

    def _turns_after(self, good: int) -> bool:
        answers = [self._ask(good + step, 0, self.rows) for step in (0, 1)]
        return answers == [Answer.GOOD, Answer.BAD]

    def _search(self, start: int, rows: dict[int, ModuleRecord]) -> History:
        """The history from stage `start` on, judged by that stage; its points count from `start`."""
        return search_history(
            self._count - start, lambda point: self._ask(start + point, start, rows), self.exhaustive
        )

    def _ask(self, number: int, reference: int, rows: dict[int, ModuleRecord]) -> Answer:
        rows[number] = self.ask(Question(self.task, number, reference), self._text(number))
        return rows[number].verdict.answer

    def _behind(self, start: int) -> Iterator[Turn]:
        """Faults that came in after stage `start`, which is wrong itself: the rest is judged by it."""
        while start < self._count - 1:
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
        return self.task.module.stages[number].numbered
