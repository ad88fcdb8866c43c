"""Is a stage of a module right? Runs in worker processes, as replays do.

Every stage is judged on the same arguments, those of the module's first stage, against a reference stage: the
first one, or a later one when a second fault is looked for behind the first.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from hlotool.backends.base import Value
from hlotool.dump.records import Stage
from hlotool.errors import BackendOutOfMemory, HlotoolError, Location, Unsupported
from hlotool.replay import further_sets
from hlotool.replay.devices.runners import Outcome, parameter_difference
from hlotool.replay.doubts import doubt_of
from hlotool.replay.program import Program, load_program
from hlotool.replay.records import REALITY, ModuleRecord
from hlotool.replay.rows import Actual, compare_row, structural_row
from hlotool.replay.scaling import Fitted, fitting
from hlotool.replay.set_budget import Allowed
from hlotool.replay.task import Task, failed_row
from hlotool.replay.trials import Trial, trials
from hlotool.values.npz import arrays_in
from hlotool.workers.work_limit import UNITS_PER_SECOND

#: Instead of the number of a stage: what the program really returned.
RESULT = -1

#: What the search for inputs that show a fault may cost: bisections are long.
_ALLOWED = Allowed(work=10 * UNITS_PER_SECOND, seconds=200.0)

#: What a worker calls.
FUNCTION = "hlotool.search.bisection.stage_worker:judge_stage"
INPUTS_FUNCTION = "hlotool.search.bisection.stage_worker:inputs_that_show"
FLAKY_FUNCTION = "hlotool.search.bisection.stage_worker:differing_results"


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
    """What a stage returns in each trial; the first stage's values tell how partitions make up a result."""
    program = stage_program(task, reference)
    known = _expected(task, 0) if reference else itertools.repeat(None)
    runs = zip(stage_trials(task), known)
    return tuple(program.runner.run(trial.arguments, value).value for trial, value in runs)
