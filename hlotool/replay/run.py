"""Replays one module: runs its stages on the same inputs and compares what they return.

Runs in a worker process (`replay_module` is what workers call), prints nothing, returns plain records.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import msgspec

from hlotool.backends.base import SlowToStart, Value
from hlotool.backends.registry import COMPILERS, get_backend
from hlotool.dump.loading import load_stage
from hlotool.dump.records import Stage
from hlotool.errors import (
    BackendFailed,
    BackendOutOfMemory,
    HlotoolError,
    InputError,
    Location,
    Unsupported,
)
from hlotool.findings.verdict import AGREEING, Answer
from hlotool.replay.aside import Aside, Ran
from hlotool.replay.covering import CHEAP
from hlotool.replay.covering_tested import with_coverage_of_tested
from hlotool.replay.devices.runners import Outcome
from hlotool.replay.divergence_row import with_divergence
from hlotool.replay.doubts import doubt_of
from hlotool.replay.ending import ends_like
from hlotool.replay.further_sets import Compared, on_further_sets
from hlotool.replay.inheritance import inherited_row
from hlotool.replay.options import ReplayOptions
from hlotool.replay.other_inputs import more_telling
from hlotool.replay.parameters import parameter_difference
from hlotool.replay.program import Program, load_program, snapshot_program
from hlotool.replay.records import REALITY, ModuleRecord
from hlotool.replay.rows import Actual, compare_row, failed_comparison, lonely_row, structural_row
from hlotool.replay.scaling import Fitted, fitting
from hlotool.replay.stages import Selection, select_stages
from hlotool.replay.standing import EXPLAINING, FURTHER, Standing
from hlotool.replay.task import Task, failed_row, unfinished_row
from hlotool.replay.trials import Trial, trials
from hlotool.scale.wish import NEVER
from hlotool.values.keeping import Keep
from hlotool.values.on_disk import NoRoomOnDisk
from hlotool.workers.work_limit import work_done


def replay_module(task: Task) -> list[ModuleRecord]:
    """All comparisons of a module: each tested stage, and what the program really returned, on each trial.

    Errors become rows; only bugs raise, and what leaves a process that should not be used again.

    Raises:
        MemoryError: some step needed more memory than there is.
        BackendFailed: a backend is of no more use in this process.
    """
    rows: list[ModuleRecord] = []
    standing = Standing()
    began = time.perf_counter()
    is_unfinished = bool(task.module.unfinished) and not task.options.stages
    if is_unfinished and _is_readable(task):
        rows.append(unfinished_row(task))
        standing.is_finished(rows[0])
    else:
        is_unfinished = False
    try:
        _warm_up(task.options)
        for row in _rows(task, standing):
            if is_unfinished and row.verdict.answer is not Answer.BAD:
                # That the passes before the last one did no harm, as far as they go, is no answer.
                continue
            now = time.perf_counter()
            rows.append(msgspec.structs.replace(row, seconds=now - began))
            standing.is_finished(rows[-1])
            began = now
    except HlotoolError as error:
        if isinstance(error, BackendFailed) and error.here:
            if isinstance(error, BackendOutOfMemory):
                raise MemoryError(error.message) from error
            raise
        if not is_unfinished:
            rows.append(failed_row(task, error, time.perf_counter() - began))
    return rows


def _is_readable(task: Task) -> bool:
    """Whether what the compiler was given is there to be read; a file that is cut says nothing of it."""
    try:
        load_stage(task.module, task.module.stages[0])
    except (InputError, IndexError):
        return False
    except HlotoolError:
        return True  # it is whole, and not for us
    return True


def _warm_up(options: ReplayOptions) -> None:
    """Let backends with processes of their own start these while the program is read."""
    for name in {options.reference, options.backend}:
        backend = get_backend(name)
        if isinstance(backend, SlowToStart):
            backend.warm_up()


def _rows(task: Task, standing: Standing) -> Iterator[ModuleRecord]:
    selection = select_stages(task.module, task.options.stages)
    stages = [stage for stage in (selection.reference, *selection.tested) if stage is not None]
    fitted = fitting(task, stages, may_be_in_place=True)
    count, failure = 0, ""
    try:
        for row in _rows_of(fitted, selection, standing):
            yield fitted.noted(row)
            count += 1
    except (MemoryError, BackendOutOfMemory, NoRoomOnDisk) as error:
        if fitted.in_place is None or count or task.options.scale == NEVER:
            raise
        failure = str(error) or "out of memory"
    if failure:
        # Only now, when the frames of what failed have let go of what they held.
        fitted = replace(fitting(task, stages), note=f"as it is, it did not run: {failure}")
        for row in _rows_of(fitted, selection, standing):
            yield fitted.noted(row)


def _rows_of(fitted: Fitted, selection: Selection, standing: Standing) -> Iterator[ModuleRecord]:
    task, standing.noted = fitted.task, fitted.noted
    before = work_done()
    reference = _reference(task, selection.reference)
    origin = _origin(task, selection.reference, reference)
    if origin is not reference and selection.reference is not None:
        reference = load_program(task.module, selection.reference, task.options.reference, origin)
    programs: list[Program] = []
    stages = _tested(task, selection.reference, selection.tested)
    for stage in stages:
        try:
            programs.append(load_program(task.module, stage, task.options.backend, origin))
        except HlotoolError as error:
            yield failed_comparison(task, reference, stage.label, str(stage.source), error)
    loading = (work_done() - before) // max(1, len(programs))
    aside = Aside(reference, task.options)
    own = origin.runner.copies, fitted.scaled, fitted.keep
    for number, trial in enumerate(trials(task.module, origin.module, task.options, *own), start=1):
        whole = None if origin is reference else origin.runner.run(trial.arguments).value
        # Of several trials each has a name.
        is_last = trial.result is None and (not trial.name or number == len(task.module.captures))
        rows = _trial_rows(
            *(task, reference, programs, trial, whole, aside, loading),
            *(not stages, fitted.keep, standing, is_last),
        )
        if task.options.save_values is not None:
            rows = _saving(rows, task, reference, programs, trial)
        yield from map(aside.noted, rows)


def _reference(task: Task, stage: Stage | None) -> Program:
    """The program that gives the expected values."""
    if stage is not None:
        return load_program(task.module, stage, task.options.reference)
    if task.module.captures:
        return snapshot_program(task.module.captures[0], task.options.reference)
    raise Unsupported(task.module.unpaired_reason, location=Location(task.path))


def _origin(task: Task, stage: Stage | None, reference: Program) -> Program:
    """The program whose arguments a replay takes: of a partitioned stage the one on global arrays."""
    if stage is None or reference.runner.copies == 1 or stage is task.module.stages[0]:
        return reference
    first = load_program(task.module, task.module.stages[0], task.options.reference)
    return first if first.runner.copies == 1 else reference


def _tested(task: Task, reference: Stage | None, tested: Sequence[Stage]) -> Sequence[Stage]:
    """The stages to judge; the reference's own stage when another backend is in question."""
    if reference is not None and task.options.backend.partition(":")[0] in COMPILERS:
        return [reference]
    if not tested and reference is not None and task.options.backend != task.options.reference:
        return [reference]
    return tested


def _trial_rows(
    task: Task,
    reference: Program,
    programs: Sequence[Program],
    trial: Trial,
    whole: Value | None,
    aside: Aside,
    loading: int,
    is_alone: bool,
    keep: Keep,
    standing: Standing,
    is_last: bool,
) -> Iterator[ModuleRecord]:
    """The reference runs once; a tested program that fails costs its own row only.

    `whole` is the result on global arrays, where the reference is a partitioned stage; `aside` is told of
    runs; `loading` is the work of reading a program; `keep` is given the expected result; `standing` is told
    of verdicts; `is_last`: the row of the last program is the last one of the module.
    """
    began, before = time.perf_counter(), work_done()
    expected = keep(reference.runner.run(trial.arguments, whole).value)
    other = None if whole is not None else more_telling(task, reference, programs, trial, expected, keep)
    if other is not None:
        trial = other
        before = work_done()
        expected = keep(reference.runner.run(trial.arguments).value)
    work = work_done() - before
    aside.ran(Ran(reference, trial, expected, work))
    last: tuple[Program, Value, ModuleRecord] | None = None
    for program in programs:
        if difference := parameter_difference(reference.runner, program.runner):
            yield structural_row(task, reference, program, difference)
            continue
        before = work_done()
        try:
            with ends_like(reference, program, work):
                outcome = program.runner.run(trial.arguments, expected)
        except HlotoolError as error:
            if isinstance(error, BackendFailed) and error.here:
                raise
            yield failed_comparison(task, reference, program.label, program.path, error)
        else:
            both = work + work_done() - before
            row = _judged(task, reference, program, trial, expected, outcome, both)
            if program.backend == reference.backend:
                last = program, outcome.value, row
            doubt = partial(doubt_of, reference=reference.module, tested=program.module)
            ends = is_last and program is programs[-1]
            if not doubt(row.verdict):
                standing.stands(aside.briefly_noted(row), FURTHER, ends)

            judge = partial(_judged_on_other, task, reference, program, both)
            compared = Compared(task, reference, program, trial, judge)

            elapsed, spent = time.perf_counter() - began, work + work_done() - before
            ordinary = [trial] if work <= CHEAP else []

            def ran(other: Trial, units: int, ordinary: list[Trial] = ordinary) -> None:
                aside.ran_on_further(other, units)
                ordinary += [other] if units <= CHEAP else []

            row, shown = on_further_sets(compared, row, loading + spent, len(programs), work, ran)
            row = with_coverage_of_tested(row, task.options, reference, program, ordinary)
            if why := doubt(row.verdict):
                problem = Unsupported(why, location=Location(program.path))
                yield failed_comparison(task, reference, program.label, program.path, problem)
                continue
            standing.stands(aside.briefly_noted(row), EXPLAINING, ends)
            row = with_divergence(row, task.options, reference, program, shown, spent, elapsed)
            yield aside.with_origins(row, Ran(program, trial, outcome.value, both))
    if trial.result is not None and reference.module.generated:
        why = f"the result ({trial.origin}) is of the true constants, and some are generated here"
        problem = Unsupported(why, location=Location(task.path))
        yield failed_comparison(task, reference, REALITY, task.path, problem)
    elif trial.result is not None:
        real = Actual.given(reference, trial.result, trial.origin, task.path, work)
        row = compare_row(task, reference, trial, expected, real)
        yield row if row.verdict in AGREEING or last is None else _explained(task, row, trial, *last)
    elif is_alone:
        yield lonely_row(task, reference, trial, expected)


def _judged(
    task: Task,
    reference: Program,
    program: Program,
    trial: Trial,
    expected: Value,
    outcome: Outcome,
    work: int,
    in_full: bool = True,
) -> ModuleRecord:
    """The row of what a program returned, wherever it ran; `work` is that of the runs of both sides.

    Where it is not wanted `in_full`, what the programs mean as functions is left out: no set changes that.
    """
    actual = Actual.computed(program, outcome, work)
    row = compare_row(task, reference, trial, expected, actual, in_full=in_full)
    if program.backend == reference.backend:
        return row
    return _as_on_reference(task, row, reference, program, trial, expected, outcome)


def _judged_on_other(
    task: Task,
    reference: Program,
    program: Program,
    work: int,
    trial: Trial,
    value: Value,
    found: Outcome,
    in_full: bool,
) -> ModuleRecord:
    """The row of a further set; see `_judged`."""
    return _judged(task, reference, program, trial, value, found, work, in_full)


def _saving(
    rows: Iterator[ModuleRecord], task: Task, reference: Program, programs: Sequence[Program], trial: Trial
) -> Iterator[ModuleRecord]:
    """The rows, of which the first says where the values of all programs are."""
    from hlotool.replay.saved_values import save_values

    different = {program.path: program for program in (reference, *programs)}
    notes = [note for program in different.values() for note in save_values(task, trial, program)]
    for row in rows:
        yield msgspec.structs.replace(row, notes=[*row.notes, *notes])
        notes = []


def _explained(
    task: Task, row: ModuleRecord, trial: Trial, program: Program, value: Value, stage: ModuleRecord
) -> ModuleRecord:
    """The row of a result that does not agree; if the last stage gives the same, it is judged as that is."""
    real = Actual.given(program, trial.result, trial.origin, task.path)
    beside = compare_row(task, program, trial, value, real, saves=False)
    return inherited_row(row, stage) if beside.verdict in AGREEING else row


def _as_on_reference(
    task: Task,
    row: ModuleRecord,
    reference: Program,
    program: Program,
    trial: Trial,
    expected: Value,
    outcome: Outcome,
) -> ModuleRecord:
    """The row of what a backend returned; if the stage gives that on the reference, it inherits the verdict.

    Args:
        task: the module.
        row: of the backend's result against the reference's.
        reference: the program that gave `expected`.
        program: the stage on the backend.
        trial: what both ran on.
        expected: the reference's result.
        outcome: the backend's.
    """
    if row.verdict in AGREEING or program.path == reference.path:
        return row
    try:
        runner = program.compiled_by(get_backend(task.options.reference))
        stage = replace(program, runner=runner, backend=reference.backend)
        value = runner.run(trial.arguments, expected)
    except HlotoolError:
        return row
    beside = compare_row(task, stage, trial, value.value, Actual.computed(program, outcome), saves=False)
    if beside.verdict not in AGREEING:
        return row
    judged = compare_row(task, reference, trial, expected, Actual.computed(stage, value), saves=False)
    return inherited_row(row, judged)
