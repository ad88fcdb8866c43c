"""Which pass: the history of one module, first its ends, then where it turns between them.

The history goes from the program as given to the program as compiled; what is established about its ends
comes before anything is searched.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec
from msgspec import structs

from hlotool.blame.bisection.records import CandidateRecord
from hlotool.blame.bisection.stages import (
    INPUTS_FUNCTION,
    RESULT,
    Question,
    StageOracle,
    question_key,
)
from hlotool.blame.searches import History, Transition, search_history
from hlotool.judge.verdicts import AGREEING, DIFFERING, Answer
from hlotool.runs.records import ModuleRecord
from hlotool.runs.rows import inherited_row
from hlotool.runs.task import Task
from hlotool.sources.file_names import Kind
from hlotool.sources.records import Stage
from hlotool.system.files import digest


@dataclass(frozen=True, slots=True)
class Ends:
    """What a module's first and last stage show.

    Attributes:
        task: the module.
        stages: the last stage against the first; None when there is only one.
        result: what the program really returned against the first stage; None when it is not known.
        beside: what the program really returned against the last stage, where that was asked.
        stop: number of the stage that `stages` is about, where it is another than the last one.
    """

    task: Task
    stages: ModuleRecord | None
    result: ModuleRecord | None
    beside: ModuleRecord | None = None
    stop: int | None = None

    @property
    def wrong(self) -> ModuleRecord | None:
        """The comparison that shows a failure whose cause can be searched, if any."""
        if self.stages is not None and self.stages.verdict in DIFFERING:
            return self.stages
        return self.result if self.blames_code else None

    @property
    def blames_code(self) -> bool:
        """What the program returned is wrong, and not because the last stage is.

        That is established when the last stage gives something else on the same arguments.
        """
        if self.result is None or self.result.verdict not in DIFFERING:
            return False
        if self.stages is None:
            return True
        is_after = self.beside is not None and self.beside.verdict in DIFFERING
        return is_after and self.stages.verdict not in DIFFERING

    @property
    def rows(self) -> list[ModuleRecord]:
        """The comparisons with the first stage."""
        return [row for row in (self.stages, self.result) if row is not None]

    @property
    def decisive(self) -> ModuleRecord | None:
        """The comparison that speaks for the module: of two, the worse one."""
        return max(self.rows, key=lambda row: row.verdict.rank, default=None)

    @property
    def agree(self) -> bool:
        """Every end that is known was compared and agrees."""
        return bool(self.rows) and all(row.verdict in AGREEING for row in self.rows)

    @property
    def missing(self) -> str:
        """The end of the history that the dump lacks, in words; empty when both are there."""
        module = self.task.module
        if module.number is None:
            return ""
        if module.before is None:
            return "the program as given is not in the dump"
        if module.after is None and self.result is None:
            return "the program as compiled is not in the dump"
        return ""


def ends_of(tasks: Sequence[Task], oracle: StageOracle) -> list[Ends]:
    """The ends of every module, judged at the same time.

    Modules that agree on plain inputs are judged again on such that show a difference, where there are any.
    """
    found = _judged(tasks, oracle)
    other = {n: task for n, ends in enumerate(found) if (task := _on_other_inputs(ends, oracle)) is not None}
    again = iter(_judged(list(other.values()), oracle))
    return [next(again) if number in other else ends for number, ends in enumerate(found)]


def _on_other_inputs(ends: Ends, oracle: StageOracle) -> Task | None:
    """The task with inputs that show what the plain ones do not; None where there are none."""
    task = ends.task
    options = task.options
    is_plain = options.inputs is None and options.further_sets and not task.module.captures
    if not is_plain or ends.result is not None or ends.stages is None or not ends.agree:
        return None
    key = digest("inputs", question_key(Question(task, len(task.module.stages) - 1)))
    file = oracle.call(key, f"{task.module.title}: extra inputs", INPUTS_FUNCTION, task)
    # An answer that is remembered may name a file that is gone.
    if not file or not Path(file).is_file():
        return None
    return structs.replace(task, options=msgspec.structs.replace(options, inputs=file))


def _judged(tasks: Sequence[Task], oracle: StageOracle) -> list[Ends]:
    last = oracle.ask_some([_last_question(task) for task in tasks])
    results = oracle.ask_some([_result_question(task) for task in tasks])
    ends = [Ends(*parts) for parts in zip(tasks, last, results)]
    beside = oracle.ask_some([_beside_question(one) for one in ends])
    return [one if row is None else _with_beside(one, row) for one, row in zip(ends, beside)]


def _last_question(task: Task) -> Question | None:
    count = len(task.module.stages)
    return Question(task, count - 1) if count > 1 else None


def _result_question(task: Task) -> Question | None:
    has_result = task.options.outputs is not None or task.module.captures
    return Question(task, RESULT) if has_result and task.module.stages else None


def _beside_question(ends: Ends) -> Question | None:
    """A result that is not what the first stage gives may be what the last one gives."""
    if ends.stages is None or ends.result is None or ends.result.verdict in AGREEING:
        return None
    return Question(ends.task, RESULT, len(ends.task.module.stages) - 1)


def _with_beside(ends: Ends, beside: ModuleRecord) -> Ends:
    assert ends.stages is not None
    assert ends.result is not None
    if beside.verdict not in AGREEING:
        return replace(ends, beside=beside)
    return replace(ends, beside=beside, result=inherited_row(ends.result, ends.stages))


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
        """The passes that ran between the two stages, as far as dumps show; the likeliest is the last."""
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
        left: called with the number of open stages before each halving.
    """

    task: Task
    ask: Ask
    exhaustive: bool = False
    stop: int | None = None
    hints: Sequence[tuple[str, str]] = ()
    history: History | None = None
    rows: dict[int, ModuleRecord] = field(default_factory=dict)
    left: Callable[[int], None] = lambda points: None

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
        count = self._count - start
        return search_history(
            count, lambda point: self._ask(start + point, start, rows), self.exhaustive, self.left
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
