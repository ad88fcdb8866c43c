"""What a replay asks the judge: how each side can be executed again, and until when."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from hlotool.backends.base import Backend, Executable, Value
from hlotool.facts.dataflow import Leaves
from hlotool.judge.comparison import Comparison
from hlotool.judge.rules.freedoms import Freedoms, freedoms, freedoms_on
from hlotool.judge.rules.judgement import (
    CompareExactly,
    CompareWith,
    Judgement,
    Side,
    once_for_each,
    watching,
)
from hlotool.judge.tolerance import chosen_by_output, chosen_by_user
from hlotool.runs.options.kept import ReplayOptions, RunOptions, budget_limits
from hlotool.runs.program import Program
from hlotool.runs.runners import OneDevice
from hlotool.runs.task import Task
from hlotool.runs.trials import Trial
from hlotool.system.worker import tell

if TYPE_CHECKING:
    from hlotool.runs.exact.result import ExactResult
    from hlotool.runs.rows import Actual

#: Of the time limit per module: what one judgement may take. Both sides have run by then, and the search for
#: the first divergence takes a fifth of what is left three times.
_SHARE = 0.4


def judged(
    task: Task,
    reference: Program,
    trial: Trial,
    expected: Value,
    actual: Actual,
    facts: Leaves,
    allowed: Freedoms,
    in_full: bool = True,
) -> Comparison:
    """The verdict on `actual`.

    Args:
        task: whose options decide.
        reference: the program that gave `expected`.
        trial: what both sides ran on.
        expected: the reference's result.
        actual: the result in question.
        facts: of the leaves, joined over both sides.
        allowed: what the target may do (`freedoms_of`).
        in_full: ask what both programs mean, too, where that says anything; the user who wants the same
            function always has it asked.
    """
    tell(f"judging {actual.label}")
    options, tested = task.options, actual.program
    is_other = tested is not None and _is_other_program(tested, reference)
    compare_exactly = None
    is_exact = (in_full or options.exact) and _is_interpreted(options)
    if tested is not None and is_other and tested.backend == reference.backend and is_exact:
        compare_exactly = _comparing(reference, tested, trial, options)
    work, seconds = _limits(task, actual.work)
    chosen = chosen_by_user(options.rtol, options.atol, options.either)
    judgement = Judgement(
        reference=_reference_side(reference, trial, expected),
        expected=expected,
        actual=actual.outcome.value,
        facts=facts,
        tested=_side(tested, trial, expected) if tested is not None and is_other else None,
        seed=options.seed,
        tolerance=chosen,
        tolerances=chosen_by_output(options.output_rtol, options.output_atol, chosen, options.either),
        deadline=time.monotonic() + seconds,
        work=work,
        thorough=options.thorough,
        freedoms=allowed,
        compare_with=None if options.compare_with is None else _comparison(options.compare_with),
        compare_exactly=compare_exactly,
        exact=options.exact,
    )
    if judgement.is_identical:
        return judgement.compared
    # What weighs differences takes time to import, and most results have none.
    from hlotool.judge.rules.judge import judge

    return judge(judgement)


def freedoms_of(task: Task, reference: Program, actual: Actual) -> Freedoms:
    """What the target may do that gave `actual`; nothing, where another backend executed the reference."""
    tested = actual.program
    if tested is not None and not _is_other_program(tested, reference):
        return freedoms_on(tested.target, reference.module)
    if tested is None:
        return freedoms(task.module, reference.module, None)
    return freedoms(task.module, reference.module, tested.module, bool(tested.made_by), tested.target)


@lru_cache(maxsize=4)
def _comparison(place: str) -> CompareWith:
    """The user's function, loaded once; raises InputDataError as `load_function`."""
    from hlotool.inputs.given import load_function

    path, _, function = place.rpartition(":")
    return load_function(Path(path), function)


def _is_other_program(tested: Program, reference: Program) -> bool:
    """Whether two programs are two texts; one that another backend executes is read from the same file."""
    if tested.made_by != reference.made_by:
        return True
    if tested.path or reference.path:
        return tested.path != reference.path
    return tested.module is not reference.module


def _is_interpreted(options: ReplayOptions) -> bool:
    """Whether the reference is the interpreter, which does what a program says and no more."""
    return options.reference.partition(":")[0] == "numpy"


def _comparing(reference: Program, tested: Program, trial: Trial, options: ReplayOptions) -> CompareExactly:
    """How both programs are compared as functions of real numbers."""

    def compare_exactly(seconds: float, trials: int) -> ExactResult:
        # Imported where it is needed: most modules are identical, and every worker would pay for it.
        from hlotool.runs.exact.within import comparing

        tell(f"comparing {tested.label} exactly")
        ask = comparing(
            reference,
            tested,
            seed=options.seed,
            arguments=trial.arguments,
            is_limited=not options.exact,
        )
        return ask(seconds, trials)

    return compare_exactly


def _limits(task: Task, ran: int) -> tuple[float, float]:
    """The work and the seconds of the judge, so that the module ends with a verdict and not with a timeout.

    Args:
        task: whose options decide.
        ran: units of work that the runs of both sides were.
    """
    options = task.options
    share = _SHARE * options.timeout if isinstance(options, RunOptions) else math.inf
    if options.budget is None:
        return math.inf, share
    work, seconds = budget_limits(options.budget, ran)
    return work, min(share, seconds)


def _reference_side(program: Program, trial: Trial, expected: Value) -> Side:
    """As `_side`; the same for all results that are judged on a trial with one from the device."""
    if trial.result is None:
        return _side(program, trial, expected)
    if program not in trial.sides:
        trial.sides[program] = _side(program, trial, expected)
    return trial.sides[program]


def _side(program: Program, trial: Trial, expected: Value) -> Side:
    """`program` on the arguments of a trial; `expected` helps to put results of several devices together."""

    compiled = once_for_each(program.compiled_by)

    def execute(backend: Backend) -> Callable[[], Value]:
        runner = compiled(backend)
        return lambda: runner.run(trial.arguments, expected).value

    def executable(backend: Backend) -> Executable:
        runner = compiled(backend)
        assert isinstance(runner, OneDevice)
        return runner.executable

    shape = program.runner.result
    if not isinstance(program.runner, OneDevice):
        return Side(program.module, shape, execute)
    watch = watching(program.module, trial.arguments, executable)
    return Side(program.module, shape, execute, watch, trial.arguments)
