"""Is a stage of a module right? Asked of worker processes, no question twice, not even in another run.

Every stage is judged on the same arguments, those of the module's first stage, against a reference stage:
the first one, or a later one when a second fault is looked for behind the first.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec

from hlotool._version import __version__
from hlotool.backends.base import Value
from hlotool.blame.steps import Steps
from hlotool.errors import BackendFailed, BackendOutOfMemory, HlotoolError, Location, Unsupported
from hlotool.inputs.given import arrays_in
from hlotool.judge.verdicts import OF_THE_MACHINE, Answer, Verdict
from hlotool.runs import further_sets
from hlotool.runs.fleet.contents import context_key, stage_key
from hlotool.runs.other_inputs import Allowed
from hlotool.runs.program import Program, load_program
from hlotool.runs.records import REALITY, ModuleRecord
from hlotool.runs.rows import Actual, compare_row, doubt_of, structural_row
from hlotool.runs.runners import Outcome, parameter_difference
from hlotool.runs.scaling import Fitted, fitting
from hlotool.runs.task import Task, failed_row
from hlotool.runs.trials import Trial, trials
from hlotool.sources.records import Stage
from hlotool.system.executor import Done, Executor
from hlotool.system.files import digest
from hlotool.system.resources import UNITS_PER_SECOND

#: Instead of the number of a stage: what the program really returned.
RESULT = -1

#: What the search for inputs that show a fault may cost: bisections are long.
_ALLOWED = Allowed(work=10 * UNITS_PER_SECOND, seconds=200.0)

#: What a worker calls.
FUNCTION = "hlotool.blame.bisection.stages:judge_stage"
INPUTS_FUNCTION = "hlotool.blame.bisection.stages:inputs_that_show"
FLAKY_FUNCTION = "hlotool.blame.bisection.stages:differing_results"


@dataclass(frozen=True, slots=True)
class Question:
    """One comparison of a bisection.

    Attributes:
        task: the module and the options of the replay.
        tested: number of the stage to judge, or RESULT.
        reference: number of the stage that gives the expected values.
        attempt: counts the times that the same is asked again to confirm it.
    """

    task: Task
    tested: int
    reference: int = 0
    attempt: int = 0

    @property
    def stage(self) -> Stage:
        """The stage in question; of a result the last one, which should have given it."""
        return self.task.module.stages[self.tested]

    @property
    def label(self) -> str:
        """What is judged, in words."""
        return REALITY if self.tested == RESULT else self.stage.title


def judge_stage(question: Question) -> ModuleRecord:
    """The worst comparison over all trials; errors become a record, too.

    Raises:
        MemoryError: some step needed more memory than there is.
    """
    try:
        rows = [_fitted(question.task).noted(row) for row in _rows(question)]
    except BackendOutOfMemory as error:
        raise MemoryError(error.message) from error
    except HlotoolError as error:
        return failed_row(question.task, error, 0.0, str(question.stage.source))
    return max(rows, key=lambda row: row.verdict.rank)


def _rows(question: Question) -> Iterator[ModuleRecord]:
    task = question.task
    reference = stage_program(task, question.reference)
    if question.tested == RESULT:
        yield from _result_rows(task, question.reference, reference)
        return
    tested = stage_program(task, question.tested)
    if difference := parameter_difference(reference.runner, tested.runner):
        yield structural_row(task, reference, tested, difference)
        return
    for trial, expected in zip(stage_trials(task), _expected(task, question.reference)):
        outcome = tested.runner.run(trial.arguments, expected)
        row = compare_row(task, reference, trial, expected, Actual.computed(tested, outcome))
        if why := doubt_of(row.verdict, reference.module, tested.module):
            raise Unsupported(why, location=Location(tested.path))
        yield row


def _result_rows(task: Task, number: int, reference: Program) -> Iterator[ModuleRecord]:
    if reference.module.generated:
        why = "it returned what the true constants make, and some are generated here"
        raise Unsupported(why, location=Location(task.path))
    known = False
    for trial, expected in zip(stage_trials(task), _expected(task, number)):
        if trial.result is not None:
            known = True
            real = Actual.given(reference, trial.result, trial.origin, task.path)
            yield compare_row(task, reference, trial, expected, real)
    if not known:
        raise Unsupported("what the program returned is not known", location=Location(task.path))


@lru_cache(maxsize=4)
def stage_program(task: Task, number: int) -> Program:
    """A compiled stage, on global arrays where the first stage is; raises as `load_program`."""
    origin = stage_program(task, 0) if number else None
    module = _fitted(task).task.module
    return load_program(module, module.stages[number], task.options.reference, origin)


@lru_cache(maxsize=2)
def _fitted(task: Task) -> Fitted:
    """The task with all stages as large as this machine can compare them."""
    return fitting(task, task.module.stages)


def inputs_that_show(task: Task) -> str:
    """The file of inputs on which the last stage is wrong, where it agrees with the first on the plain ones.

    Empty where no further set shows anything, in the time that they have.
    """
    last = len(task.module.stages) - 1
    reference, tested = stage_program(task, 0), stage_program(task, last)
    [trial, *others] = stage_trials(task)
    if others:
        return ""

    def judge(other: Trial, expected: Value, outcome: Outcome, in_full: bool) -> ModuleRecord:
        actual = Actual.computed(tested, outcome)
        return compare_row(task, reference, other, expected, actual, in_full=in_full)

    compared = further_sets.Compared(task, reference, tested, trial, judge)
    return further_sets.inputs_that_show(compared, _ALLOWED)


def differing_results(task: Task) -> int:
    """How many captured executions returned something else than one before them with equal arguments."""
    known: dict[bytes, bytes] = {}
    others = 0
    for trial in stage_trials(task):
        if trial.result is not None:
            given, got = _bytes(trial.arguments), _bytes(trial.result)
            others += known.setdefault(given, got) != got
    return others


def _bytes(value: Any) -> bytes:
    return b"".join(array.tobytes() for array in arrays_in(value))


@lru_cache(maxsize=1)
def stage_trials(task: Task) -> tuple[Trial, ...]:
    """The arguments that all stages are judged on."""
    origin = stage_program(task, 0)
    fitted = _fitted(task)
    return tuple(trials(task.module, origin.module, task.options, origin.runner.copies, fitted.scaled))


@lru_cache(maxsize=3)
def _expected(task: Task, reference: int) -> tuple[Value, ...]:
    """What a stage returns in each trial; the first stage's values show how partitions make up a result."""
    program = stage_program(task, reference)
    known = _expected(task, 0) if reference else itertools.repeat(None)
    runs = zip(stage_trials(task), known)
    return tuple(program.runner.run(trial.arguments, value).value for trial, value in runs)


class StageOracle:
    """Judges stages in worker processes.

    Args:
        pool: of workers.
        steps: remembers the answers.

    Attributes:
        questions: number of different questions asked, known ones included.
        unanswered: keys of the steps that gave no answer: what crashed, and what cannot be judged.
    """

    def __init__(self, pool: Executor, steps: Steps) -> None:
        self.steps = steps
        self.questions = 0
        self.unanswered: set[str] = set()
        self._pool = pool

    def ask(self, question: Question, text: str = "") -> ModuleRecord:
        """The comparison that answers a question."""
        self.questions += 1
        key = question_key(question)
        value = self.steps.ask(key, text or question.label, lambda: self._compute(question), _verdict, _lasts)
        row = _of_stage(msgspec.convert(value, ModuleRecord), question)
        if row.verdict.answer is Answer.UNUSABLE:
            self.unanswered.add(key)
        return row

    def ask_all(self, questions: Sequence[Question]) -> list[ModuleRecord]:
        """The answers to many questions, computed at the same time."""
        keys = [question_key(question) for question in questions]
        missing = self.steps.missing(keys)
        first = {key: questions[keys.index(key)] for key in missing}
        began = time.perf_counter()
        for index, value in self._compute_all(list(first.values())):
            now = time.perf_counter()
            self.steps.keep(missing[index], value, now - began, _lasts(value))
            began = now
        return [self.ask(question, question.task.module.title) for question in questions]

    def ask_some(self, questions: Sequence[Question | None]) -> list[ModuleRecord | None]:
        """As `ask_all`; where there is no question, there is no answer."""
        rows = iter(self.ask_all([question for question in questions if question is not None]))
        return [None if question is None else next(rows) for question in questions]

    def call(self, key: str, text: str, function: str, argument: object) -> Any:
        """The value of another function of the workers, in plain data; None when the worker died."""
        value = self.steps.ask(
            key,
            text,
            lambda: self._call(function, argument),
            lambda value: "",
            lambda value: value is not None,
        )
        if value is None:
            self.unanswered.add(key)
        return value

    def _call(self, function: str, argument: object) -> Any:
        [end] = self._pool.call_all(function, [argument])
        return (
            msgspec.to_builtins(msgspec.msgpack.decode(end.value)) if isinstance(end.value, bytes) else None
        )

    def _compute(self, question: Question) -> Any:
        [(_, value)] = self._compute_all([question])
        return value

    def _compute_all(self, questions: Sequence[Question]) -> Iterator[tuple[int, Any]]:
        for event in self._pool.run(FUNCTION, questions):
            if isinstance(event, Done):
                yield event.index, _plain(questions[event.index], event)


def _plain(question: Question, done: Done) -> Any:
    if isinstance(done.value, BackendFailed):
        row = failed_row(question.task, done.value, done.seconds, str(question.stage.source))
        return msgspec.to_builtins(row)
    return msgspec.msgpack.decode(done.value)


def _verdict(value: Any) -> str:
    return str(value["verdict"])


def _lasts(value: Any) -> bool:
    return Verdict(value["verdict"]) not in OF_THE_MACHINE


def _of_stage(row: ModuleRecord, question: Question) -> ModuleRecord:
    """The answer to a question about equal texts, as one about this stage."""
    path = row.path if question.tested == RESULT else str(question.stage.source)
    return msgspec.structs.replace(row, path=path, name=question.task.module.title)


def question_key(question: Question) -> str:
    """Everything that the answer depends on: texts, not names."""
    task = question.task
    tested = "result" if question.tested == RESULT else stage_key(task.module, question.tested)
    return digest(
        __version__,
        "stage",
        context_key(task.module, task.options),
        stage_key(task.module, question.reference),
        tested,
        str(question.attempt),
    )
