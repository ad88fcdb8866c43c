"""Comparisons outside of a replay: of programs that are already at hand, on arguments that are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hlotool.backends.base import Value
from hlotool.dump.records import DumpModule
from hlotool.replay.devices.runners import Outcome, parameter_difference
from hlotool.replay.options import ReplayOptions
from hlotool.replay.program import Program
from hlotool.replay.records import InputsRecord, ModuleRecord
from hlotool.replay.rows import Actual, compare_row, structural_row
from hlotool.replay.task import Task
from hlotool.replay.trials import Trial


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
    return compare_row(task, reference, trial, expected, Actual.computed(tested, outcome))


def compare_results(
    reference: Program,
    tested: Program,
    arguments: Sequence[Any],
    expected: Value,
    outcome: Outcome,
    options: ReplayOptions | None = None,
) -> ModuleRecord:
    """Judge what `tested` returned by what `reference` did, both for the same arguments."""
    task, trial = _given(arguments, options, "")
    return compare_row(task, reference, trial, expected, Actual.computed(tested, outcome))


def compare_result(
    reference: Program,
    arguments: Sequence[Any],
    value: Any,
    origin: str,
    options: ReplayOptions | None = None,
) -> ModuleRecord:
    """Judge what the real program returned by what `reference` returns."""
    task, trial = _given(arguments, options, "")
    expected = reference.runner.run(trial.arguments).value
    return compare_row(task, reference, trial, expected, Actual.given(reference, value, origin))


def _given(arguments: Sequence[Any], options: ReplayOptions | None, name: str) -> tuple[Task, Trial]:
    record = InputsRecord(origin="given", description="values that occurred")
    return Task(DumpModule(None, name, name), options or ReplayOptions()), Trial(tuple(arguments), record)
