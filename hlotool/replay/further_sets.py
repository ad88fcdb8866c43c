"""What agrees on the plain inputs is run on further ones, as many as the budget allows.

A set that shows a difference takes the place of the plain one: its row is the module's, and its values are
saved, so that everything after starts from there. What a further set cannot tell (a run that takes too long,
an overflow on one side only) is no verdict on the module: the plain row stands, and names the sets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext

import msgspec

from hlotool.backends.base import Value
from hlotool.directed.sets import InputSet, in_words
from hlotool.errors import BackendFailed, HlotoolError
from hlotool.findings.verdict import Answer, Verdict
from hlotool.replay.devices.runners import Outcome
from hlotool.replay.devices.sets import further_sets
from hlotool.replay.options import ReplayOptions
from hlotool.replay.program import Program
from hlotool.replay.records import ModuleRecord, SetRecord
from hlotool.replay.saved_inputs import save_inputs
from hlotool.replay.saved_outputs import same_bits
from hlotool.replay.set_budget import Allowed, Limits, allowed_for_sets
from hlotool.replay.task import Task
from hlotool.replay.trials import GENERATED, Trial
from hlotool.workers.time_limit import TooSlow
from hlotool.workers.work_limit import TooMuchWork, work_done
from hlotool.workers.worker import tell

#: Judges the outcome of a tested program: the trial, what the reference returned, what the program did.
Judge = Callable[[Trial, Value, Outcome], ModuleRecord]


def on_further_sets(
    task: Task,
    reference: Program,
    program: Program,
    trial: Trial,
    row: ModuleRecord,
    spent: int,
    judge: Judge,
    programs: int,
    ran: Callable[[Trial, int], None],
) -> tuple[ModuleRecord, Trial]:
    """The row of a module that agrees on the plain set, after the further ones.

    Args:
        task: whose options decide how long it may take.
        reference: gives the expected values.
        program: is tested.
        trial: the plain one.
        row: of the plain one.
        spent: units of work that the module was so far.
        judge: says what a difference means.
        programs: of the module that are tested, and share its time limit.
        ran: told of the runs of the reference on ordinary inputs, with the work that each was.

    Returns:
        the row of the first set that shows that the program is wrong, with the trial of that set; otherwise
        the plain row, which names the sets, and the plain trial.
    """
    if not is_wanted(task.options, trial) or row.verdict.answer is Answer.BAD:
        return row, trial
    limits = Limits(allowed_for_sets(task.options, spent, programs))
    tried: list[SetRecord] = []
    is_news = row.verdict is Verdict.IDENTICAL
    for one, verdict, found in _tried(reference, program, trial, task.options, limits, judge, ran, is_news):
        tried.append(SetRecord(name=one.name, odd=list(one.odd), aims=list(one.aims), verdict=verdict))
        if found is not None and found[0].verdict.answer is Answer.BAD:
            wrong, its_trial = found
            file = save_inputs(task.module.title, its_trial.arguments, reference.runner.copies)
            inputs = msgspec.structs.replace(its_trial.inputs, file=file, sets=tried)
            return msgspec.structs.replace(wrong, inputs=inputs), its_trial
    if row.inputs is None:
        return row, trial
    inputs = msgspec.structs.replace(row.inputs, sets=tried, sets_cut=limits.cut)
    return msgspec.structs.replace(row, inputs=inputs), trial


def inputs_that_show(
    task: Task, reference: Program, program: Program, trial: Trial, allowed: Allowed, judge: Judge
) -> str:
    """The file of a set that shows that a program is wrong which agrees on the plain one; empty without one.

    Args:
        task: the module.
        reference: gives the expected values.
        program: is tested.
        trial: the plain one.
        allowed: what it may cost.
        judge: says what a difference means.
    """
    if not is_wanted(task.options, trial):
        return ""

    def ignored(_: Trial, __: int) -> None:
        """Nobody asks what these runs exercise."""

    limits = Limits(allowed)
    for _, _, found in _tried(reference, program, trial, task.options, limits, judge, ignored, False):
        if found is not None and found[0].verdict.answer is Answer.BAD:
            return save_inputs(task.module.title, found[1].arguments, reference.runner.copies)
    return ""


def is_wanted(options: ReplayOptions, trial: Trial) -> bool:
    """Whether further sets say something: of generated inputs, judged as we judge."""
    is_generated = trial.inputs.origin == GENERATED
    # Tolerances and comparisons of the user suit the plain values.
    by_user = options.output_rtol or options.output_atol or options.compare_with
    is_judged = options.rtol is None and options.atol is None and not by_user
    return options.further_sets and is_generated and is_judged and trial.result is None


def _tried(
    reference: Program,
    program: Program,
    trial: Trial,
    options: ReplayOptions,
    limits: Limits,
    judge: Judge,
    ran: Callable[[Trial, int], None],
    is_news: bool,
) -> Iterator[tuple[InputSet, Verdict, tuple[ModuleRecord, Trial] | None]]:
    """Each set on which the reference runs, the verdict on it and, where the bits differ, the row.

    Args:
        reference: see `on_further_sets`, as for all but the last.
        program: that is tested.
        trial: the plain one.
        options: of the user.
        limits: end it.
        judge: of a difference.
        ran: told of runs.
        is_news: whether a difference is worth more than the limits: the plain set has none.
    """
    tell("further inputs")
    # Waiting for another process must not be interrupted.
    is_here = program.backend == reference.backend
    copies, whole = reference.runner.copies, reference.whole
    module = (whole or reference).module
    sets = further_sets(module, trial.arguments, options.seed, options.input_range, copies)
    while not limits.are_reached():
        try:
            with limits.hold():
                one = next(sets, None)
        except (TooMuchWork, TooSlow):
            continue
        if one is None:
            return
        if not is_here and not one.suits_other_backends:
            continue
        other = _trial(one, trial, options)
        try:
            with limits.hold() if is_here else nullcontext():
                before = work_done()
                global_value = None if whole is None else whole.runner.run(one.values).value
                expected = reference.runner.run(one.values, global_value).value
                if not one.odd:
                    ran(other, work_done() - before)
                outcome = program.runner.run(one.values, expected)
                is_same = same_bits(reference.runner.result, expected, outcome.value)
            row = None
            if not is_same:
                with nullcontext() if is_news or not is_here else limits.hold():
                    row = judge(other, expected, outcome)
        except BackendFailed as error:
            if error.here:
                return
            continue
        except (HlotoolError, TooMuchWork, TooSlow):
            continue
        yield one, Verdict.IDENTICAL if row is None else row.verdict, None if row is None else (row, other)


def _trial(one: InputSet, plain: Trial, options: ReplayOptions) -> Trial:
    """A set as a trial of the module."""
    description = f"{in_words(one)}, generated with seed {options.seed}"
    inputs = msgspec.structs.replace(plain.inputs, description=description, rules=[])
    return Trial(one.values, inputs)
