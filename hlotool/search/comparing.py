"""Comparisons outside of a replay: of programs that are already at hand, on arguments that are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hlotool.dump.records import DumpModule
from hlotool.replay.devices.device_runners import Outcome
from hlotool.replay.options import ReplayOptions
from hlotool.replay.program import Program
from hlotool.replay.records import REALITY, InputsRecord, ModuleRecord
from hlotool.replay.rows import Actual, compare_row, parameter_difference, structural_row
from hlotool.replay.task import Task
from hlotool.replay.trials import Trial


def actual_of(program: Program, outcome: Outcome) -> Actual:
    """What a program returned, to be judged."""
    return Actual(
        program.label,
        program.path,
        program.backend,
        program.module,
        program.facts,
        outcome,
        program.runner,
        program,
    )


def result_of(reference: Program, value: Any, origin: str) -> Actual:
    """What the real program returned for the arguments of `reference`, to be judged."""
    return Actual(
        REALITY,
        reference.path,
        origin,
        reference.module,
        reference.facts,
        Outcome(value),
        reference.runner,
    )


def compare_programs(
    reference: Program,
    tested: Program,
    arguments: Sequence[Any],
    options: ReplayOptions | None = None,
    name: str = "",
) -> ModuleRecord:
    """Run both programs on the same arguments and judge the second by the first.

    Raises:
        HlotoolError: as the two raise it.
    """
    task, trial = _given(arguments, options, name)
    if difference := parameter_difference(reference.runner, tested.runner):
        return structural_row(task, reference, tested, difference)
    expected = reference.runner.run(trial.arguments).value
    outcome = tested.runner.run(trial.arguments, expected)
    return compare_row(task, reference, trial, expected, actual_of(tested, outcome))


def compare_result(reference: Program, arguments: Sequence[Any], value: Any, origin: str) -> ModuleRecord:
    """Judge what the real program returned by what `reference` returns."""
    task, trial = _given(arguments, None, "")
    expected = reference.runner.run(trial.arguments).value
    return compare_row(task, reference, trial, expected, result_of(reference, value, origin))


def _given(arguments: Sequence[Any], options: ReplayOptions | None, name: str) -> tuple[Task, Trial]:
    record = InputsRecord(origin="given", description="values that occurred")
    return Task(DumpModule(None, name, name), options or ReplayOptions()), Trial(tuple(arguments), record)
