"""Other generated inputs where the ordinary ones say nothing: some output is nothing but NaN on both sides.

The inputs of people's programs are finite and make finite results. Numbers between 0 and 1 meet what no
analysis of the program found out: a sum that goes into a square root, a base of a power.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec
import numpy as np

from hlotool.errors import HlotoolError
from hlotool.ir.types import ShapeIndex
from hlotool.replay.devices.runners import Runner, parameter_difference
from hlotool.replay.leaf_records import array_leaves
from hlotool.replay.options import ReplayOptions
from hlotool.replay.program import Program
from hlotool.replay.task import Task
from hlotool.replay.trials import GENERATED, Trial, generated
from hlotool.values.array_files import Keep

#: Not 0, near which quotients and logarithms become large.
_POSITIVE: Final = (0.125, 1.0)


def more_telling(
    task: Task, reference: Program, programs: Sequence[Program], trial: Trial, expected: Any, keep: Keep
) -> Trial | None:
    """A trial with fewer outputs that are nothing but NaN; None where this one has none, or none has fewer.

    Args:
        task: with the user's options. An `input_range` of the user's stays.
        reference: the program that gave `expected`.
        programs: that are tested. Where one of them has a number for what is NaN in `expected`, that is a
            difference, and no other inputs are asked for.
        trial: on generated inputs; any other one stays.
        expected: what the reference returned.
        keep: what becomes of large arrays.
    """
    if trial.inputs.origin != GENERATED or trial.result is not None:
        return None
    empty = _nothing_but_nan(reference.runner, expected)
    if not empty or not all(_is_as_empty(reference, program, trial, expected, empty) for program in programs):
        return None
    best, fewest = None, len(empty)
    for options in _others(task.options):
        other = generated(reference.module, options, reference.runner.copies, keep)
        count = len(_nothing_but_nan(reference.runner, reference.runner.run(other.arguments).value))
        if count < fewest:
            best, fewest = _noted(other, options, task.options, len(empty)), count
        if not count:
            break
    return best


def _others(options: ReplayOptions) -> Iterator[ReplayOptions]:
    if options.input_range is None:
        yield msgspec.structs.replace(options, input_range=_POSITIVE)
    yield from (msgspec.structs.replace(options, seed=options.seed + n) for n in (1, 2))


def _noted(trial: Trial, options: ReplayOptions, asked: ReplayOptions, count: int) -> Trial:
    bounds = options.input_range if options.input_range != asked.input_range else None
    outputs = "1 output is" if count == 1 else f"{count} outputs are"
    description = f"{trial.inputs.description} (with seed {asked.seed} alone {outputs} nothing but NaN)"
    record = msgspec.structs.replace(trial.inputs, description=description, input_range=bounds)
    return Trial(trial.arguments, record, trial.name, trial.result, trial.origin)


def _is_as_empty(
    reference: Program, program: Program, trial: Trial, expected: Any, empty: set[ShapeIndex]
) -> bool:
    """Whether a tested program has no number either where the reference has none."""
    if parameter_difference(reference.runner, program.runner):
        return False
    try:
        return empty <= _nothing_but_nan(program.runner, program.runner.run(trial.arguments, expected).value)
    except HlotoolError:
        return False


def _nothing_but_nan(runner: Runner, value: Any) -> set[ShapeIndex]:
    """The outputs that have elements, and no number."""
    return {
        index
        for index, shape, array in array_leaves(runner.result, value)
        if shape.element_type.is_inexact and array.size and bool(np.isnan(array).all())
    }
