"""Replays one module: runs its stages on the same inputs and compares what they return.

Runs in a worker process (`replay_module` is what workers call), prints nothing, returns plain records.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import msgspec
from msgspec import structs

from hlotool.backends.base import SlowToStart, Value
from hlotool.backends.registry import get_backend, takes_first_stage
from hlotool.errors import (
    BackendFailed,
    BackendOutOfMemory,
    HlotoolError,
    InputError,
    Location,
    Unsupported,
)
from hlotool.ir.arrays import NoRoomOnDisk
from hlotool.judge.verdicts import AGREEING, Answer
from hlotool.rewrite.scale.records import NEVER
from hlotool.runs.divergence_row import with_divergence, with_origin_of_spread
from hlotool.runs.further_sets import Compared, Judge, on_further_sets
from hlotool.runs.observations import CHEAP, Aside, Ran, with_coverage_of_tested
from hlotool.runs.options.kept import ReplayOptions
from hlotool.runs.other_inputs import ends_like, more_telling
from hlotool.runs.program import Program, load_program, snapshot_program
from hlotool.runs.records import REALITY, ModuleRecord
from hlotool.runs.rows import (
    Actual,
    compare_row,
    doubt_of,
    failed_comparison,
    inherited_row,
    structural_row,
    uncompared_row,
)
from hlotool.runs.runners import Outcome, parameter_difference
from hlotool.runs.scaling import Fitted, fitting
from hlotool.runs.task import (
    EXPLAINING,
    FURTHER,
    Selection,
    Standing,
    Task,
    failed_row,
    select_stages,
    unfinished_row,
)
from hlotool.runs.trials import Trial, trials
from hlotool.sources.loading import load_stage
from hlotool.sources.records import Stage
from hlotool.system.resources import work_done


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
        for row in _Replay(fitted, selection, standing).rows():
            yield fitted.noted(row)
            count += 1
    except (MemoryError, BackendOutOfMemory, NoRoomOnDisk) as error:
        if fitted.in_place is None or count or task.options.scale == NEVER:
            raise
        failure = str(error) or "out of memory"
    if failure:
        # Only now, when the frames of what failed have let go of what they held.
        fitted = structs.replace(fitting(task, stages), note=f"as it is, it did not run: {failure}")
        for row in _Replay(fitted, selection, standing).rows():
            yield fitted.noted(row)


class _Replay:
    """The replay of a module whose programs fit into this machine.

    Args:
        fitted: the module.
        selection: its stages that are compared.
        standing: is told of verdicts.
    """

    def __init__(self, fitted: Fitted, selection: Selection, standing: Standing) -> None:
        self._fitted, self._standing = fitted, standing
        self._task = task = fitted.task
        standing.noted = fitted.noted
        before = work_done()
        stage = selection.reference
        self._reference = _reference(task, stage)
        self._origin = _origin(task, stage, self._reference)
        if self._origin is not self._reference and stage is not None:
            self._reference = load_program(task.module, stage, task.options.reference, self._origin)
        self._stages = _tested(task, stage, selection.tested)
        self._programs: list[Program] = []
        #: Work of reading: of all programs so far, then of one.
        self._loading = work_done() - before
        self._aside = Aside(self._reference, task.options)
        #: What the last program gave that ran on the reference's backend in this trial, and its row.
        self._last: tuple[Program, Value, ModuleRecord] | None = None

    def rows(self) -> Iterator[ModuleRecord]:
        """The rows of all programs, trial by trial; those of programs that cannot be read come first."""
        module, options, origin = self._task.module, self._task.options, self._origin
        before = work_done()
        for stage in self._stages:
            try:
                self._programs.append(load_program(module, stage, options.backend, origin))
            except HlotoolError as error:
                yield self._failed(stage.label, str(stage.source), error)
        self._loading = (self._loading + work_done() - before) // max(1, len(self._programs))
        own = origin.runner.copies, self._fitted.scaled, self._fitted.keep
        for number, trial in enumerate(trials(module, origin.module, options, *own), start=1):
            whole = None if origin is self._reference else origin.runner.run(trial.arguments).value
            # Of several trials each has a name.
            is_last = trial.result is None and (not trial.name or number == len(module.captures))
            rows = self._rows_on(trial, whole, is_last)
            yield from map(
                self._aside.noted, rows if options.save_values is None else self._saving(rows, trial)
            )

    def _rows_on(self, trial: Trial, whole: Value | None, is_last: bool) -> Iterator[ModuleRecord]:
        """The reference runs once; a tested program that fails costs its own row only.

        `whole` is the result on global arrays, where the reference is a partitioned stage; `is_last`: the row
        of the last program is the last one of the module.
        """
        began = time.perf_counter()
        ran = self._reference_on(trial, whole)
        self._aside.ran(ran)
        for program in self._programs:
            yield self._row(program, ran, is_last and program is self._programs[-1], began)
        task, trial, last = self._task, ran.trial, self._last
        self._last = None
        if trial.result is not None and self._reference.module.generated:
            why = f"the result ({trial.origin}) is of the true constants, and some are generated here"
            yield self._failed(REALITY, task.path, Unsupported(why, location=Location(task.path)))
        elif trial.result is not None:
            real = Actual.given(self._reference, trial.result, trial.origin, task.path, ran.work)
            row = compare_row(task, self._reference, trial, ran.value, real)
            yield row if row.verdict in AGREEING or last is None else _explained(task, row, trial, *last)
        elif not self._stages:
            yield uncompared_row(task, self._reference, trial, ran.value)

    def _reference_on(self, trial: Trial, whole: Value | None) -> Ran:
        """The run of the reference: on other inputs where it returns nothing but NaN on these."""
        task, reference, keep = self._task, self._reference, self._fitted.keep
        before = work_done()
        expected = keep(reference.runner.run(trial.arguments, whole).value)
        if whole is None:
            other = more_telling(task, reference, self._programs, trial, expected, keep)
            if other is not None:
                trial, before = other, work_done()
                expected = keep(reference.runner.run(trial.arguments).value)
        return Ran(reference, trial, expected, work_done() - before)

    def _row(self, program: Program, ran: Ran, is_last: bool, began: float) -> ModuleRecord:
        """The row of a tested program: on the trial of the reference's run, and then on further sets."""
        task, reference, trial, aside = self._task, self._reference, ran.trial, self._aside
        if difference := parameter_difference(reference.runner, program.runner):
            return structural_row(task, reference, program, difference)
        before = work_done()
        try:
            with ends_like(reference, program, ran.work):
                outcome = program.runner.run(trial.arguments, ran.value)
        except HlotoolError as error:
            # The process itself is broken: what it said of other programs would be worth nothing.
            if isinstance(error, BackendFailed) and error.here:
                raise
            return self._failed(program.label, program.path, error)
        both = ran.work + work_done() - before

        def judge(trial: Trial, expected: Value, found: Outcome, in_full: bool = True) -> ModuleRecord:
            return self._judged(program, trial, expected, found, both, in_full)

        row = judge(trial, ran.value, outcome)
        if task.options.repeat > 1:
            try:
                row = self._repeated(row, program, ran, outcome, judge)
                elapsed = time.perf_counter() - began
                row = with_origin_of_spread(row, task.options, reference, program, trial, both, elapsed)
            except HlotoolError as error:
                return self._failed(program.label, program.path, error)
        if program.backend == reference.backend:
            self._last = program, outcome.value, row
        doubt = partial(doubt_of, reference=reference.module, tested=program.module)
        # What might be taken back below is not handed to the first process.
        if not doubt(row.verdict):
            self._standing.stands(aside.briefly_noted(row), FURTHER, is_last)
        elapsed, spent = time.perf_counter() - began, ran.work + work_done() - before
        ordinary = [trial] if ran.work <= CHEAP else []

        def ran_on(other: Trial, units: int) -> None:
            aside.ran_on_further(other, units)
            if units <= CHEAP:
                ordinary.append(other)

        compared = Compared(task, reference, program, trial, judge)
        so_far = self._loading + spent
        row, shown = on_further_sets(compared, row, so_far, len(self._programs), ran.work, ran_on)
        row = with_coverage_of_tested(row, task.options, reference, program, ordinary)
        if why := doubt(row.verdict):
            return self._failed(
                program.label, program.path, Unsupported(why, location=Location(program.path))
            )
        self._standing.stands(aside.briefly_noted(row), EXPLAINING, is_last)
        row = with_divergence(row, task.options, reference, program, shown, spent, elapsed)
        return aside.with_origins(row, Ran(program, trial, outcome.value, both))

    def _repeated(
        self, row: ModuleRecord, program: Program, ran: Ran, first: Outcome, judge: Judge
    ) -> ModuleRecord:
        """The row after several runs; raises HlotoolError where the program dies in one of them."""
        from hlotool.runs.repeated import with_repeats

        def again() -> Outcome:
            return program.runner.run(ran.trial.arguments, ran.value)

        def judged(outcome: Outcome) -> ModuleRecord:
            return judge(ran.trial, ran.value, outcome, False)

        shape, count = program.runner.result, self._task.options.repeat
        return with_repeats(row, shape, first, again, judged, count)

    def _judged(
        self, program: Program, trial: Trial, expected: Value, outcome: Outcome, work: int, in_full: bool
    ) -> ModuleRecord:
        """The row of what a program returned, wherever it ran; `work` is that of the runs of both sides.

        Unless it is wanted `in_full`, what the programs mean as functions is left out: no set changes that.
        If the program gives on the reference what it gives on its backend, it inherits the verdict on that.
        """
        task, reference = self._task, self._reference
        actual = Actual.computed(program, outcome, work)
        row = compare_row(task, reference, trial, expected, actual, in_full=in_full)
        is_other = program.backend != reference.backend and (
            program.path != reference.path or bool(program.made_by)
        )
        if row.verdict in AGREEING or not is_other:
            return row
        try:
            runner = program.compiled_by(get_backend(task.options.reference))
            stage = replace(program, runner=runner, backend=reference.backend)
            value = runner.run(trial.arguments, expected)
        except HlotoolError:
            return row
        beside = compare_row(task, stage, trial, value.value, Actual.computed(program, outcome), saves=False)
        judged = compare_row(task, reference, trial, expected, Actual.computed(stage, value), saves=False)
        # The backend does with this text what the reference does: what differs was wrong before, in the text.
        if beside.verdict in AGREEING:
            return inherited_row(row, judged)
        if judged.verdict not in AGREEING:
            return row
        note = f"this HLO is right on {reference.backend}: the code that was generated of it is wrong"
        return msgspec.structs.replace(row, notes=[*row.notes, note])

    def _failed(self, label: str, path: str, error: HlotoolError) -> ModuleRecord:
        return failed_comparison(self._task, self._reference, label, path, error)

    def _saving(self, rows: Iterator[ModuleRecord], trial: Trial) -> Iterator[ModuleRecord]:
        """The rows, of which the first says where the values of all programs are."""
        # Imported where it is needed: every worker would pay for it as it starts.
        from hlotool.runs.saved_values import save_values

        different = {program.path: program for program in (*self._programs, self._reference)}
        programs = sorted(different.values(), key=lambda program: program is not self._reference)
        notes = [
            note
            for program in programs
            for note in save_values(self._task, trial, program, program is self._reference)
        ]
        for row in rows:
            yield msgspec.structs.replace(row, notes=[*row.notes, *notes])
            notes = []


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
    if reference is not None and takes_first_stage(task.options.backend):
        return [reference]
    if not tested and reference is not None and task.options.backend != task.options.reference:
        return [reference]
    return tested


def _explained(
    task: Task, row: ModuleRecord, trial: Trial, program: Program, value: Value, stage: ModuleRecord
) -> ModuleRecord:
    """The row of a result that does not agree; if the last stage gives the same, it is judged as that is."""
    real = Actual.given(program, trial.result, trial.origin, task.path)
    beside = compare_row(task, program, trial, value, real, saves=False)
    return inherited_row(row, stage) if beside.verdict in AGREEING else row
