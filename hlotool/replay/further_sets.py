"""What agrees on the plain inputs is run on further ones, as many as the budget allows.

A set that shows a difference takes the place of the plain one: its row is the module's, and its values are
saved, so that everything after starts from there. What a further set cannot tell (a run that takes too long,
an overflow on one side only) is no verdict on the module: the plain row stands, and names the sets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

import msgspec

from hlotool.backends.base import Value
from hlotool.directed.plan import directed_sets
from hlotool.directed.sets import InputSet
from hlotool.errors import BackendFailed, HlotoolError, UsageError
from hlotool.findings.verdict import Answer, Verdict
from hlotool.replay.devices.runners import OneDevice, Outcome
from hlotool.replay.options import ReplayOptions
from hlotool.replay.program import Program
from hlotool.replay.records import ModuleRecord, SetRecord
from hlotool.replay.saved_outputs import output_folder, same_bits
from hlotool.replay.set_budget import Allowed, Limits, allowed_for_sets
from hlotool.replay.task import Task
from hlotool.replay.trials import GENERATED, Trial
from hlotool.values.npz import npz_bytes
from hlotool.workers.time_limit import TooSlow
from hlotool.workers.work_limit import TooMuchWork, work_done
from hlotool.workers.worker import tell

#: The folder that gets the sets which show a difference.
FOLDER = "hlotool-inputs"

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
    if not is_wanted(task.options, reference, program, trial) or row.verdict.answer is Answer.BAD:
        return row, trial
    limits = Limits(allowed_for_sets(task.options, spent, programs))
    tried: list[SetRecord] = []
    is_news = row.verdict is Verdict.IDENTICAL
    for one, verdict, found in _tried(reference, program, trial, task.options, limits, judge, ran, is_news):
        tried.append(SetRecord(name=one.name, odd=list(one.odd), aims=list(one.aims), verdict=verdict))
        if found is not None and found[0].verdict.answer is Answer.BAD:
            wrong, its_trial = found
            file = _saved(task, its_trial)
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
    if not is_wanted(task.options, reference, program, trial):
        return ""

    def ignored(_: Trial, __: int) -> None:
        """Nobody asks what these runs exercise."""

    limits = Limits(allowed)
    for _, _, found in _tried(reference, program, trial, task.options, limits, judge, ignored, False):
        if found is not None and found[0].verdict.answer is Answer.BAD:
            return _saved(task, found[1])
    return ""


def is_wanted(options: ReplayOptions, reference: Program, program: Program, trial: Trial) -> bool:
    """Whether further sets say something: of generated inputs, for programs on one device."""
    one_device = isinstance(reference.runner, OneDevice) and isinstance(program.runner, OneDevice)
    is_generated = trial.inputs.origin == GENERATED and options.input_range is None
    # Tolerances and comparisons of the user suit the plain values.
    by_user = options.output_rtol or options.output_atol or options.compare_with
    is_judged = options.rtol is None and options.atol is None and not by_user
    return options.further_sets and is_generated and is_judged and one_device and trial.result is None


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
    sets = directed_sets(reference.module, trial.arguments, options.seed)
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
                expected = reference.runner.run(one.values).value
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
    odd = f", with {' and '.join(one.odd)}" if one.odd else ""
    aims = f" ({', '.join(one.aims)})" if one.aims else ""
    inputs = msgspec.structs.replace(
        plain.inputs, description=f"set `{one.name}`{aims}{odd}, generated with seed {options.seed}", rules=[]
    )
    return Trial(one.values, inputs)


def set_file(task: Task) -> Path:
    """Where a set goes that shows a difference in a module."""
    return Path(FOLDER, f"{task.module.title.replace('/', '_')}.npz")


def _saved(task: Task, trial: Trial) -> str:
    """The file that gets the arguments; empty where it cannot be written."""
    path = set_file(task)
    try:
        output_folder(FOLDER)
        path.write_bytes(npz_bytes(trial.arguments))
    except (OSError, UsageError):
        return ""
    return str(path)
