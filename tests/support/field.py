"""Programs evaluated in the field on given numbers, and the numbers that come out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hlotool.backends.field import rules
from hlotool.backends.field.constants import Constants
from hlotool.backends.field.lowering import FieldLowering
from hlotool.backends.field.trial import Trial
from hlotool.backends.field.values import is_complex, is_float, pair, parts
from hlotool.backends.numpy.executables import execute, execute_devices
from hlotool.backends.numpy.plan import Run
from hlotool.ir.arrays import flatten, unflatten
from hlotool.ir.devices import DeviceGrid
from hlotool.ir.module import Module
from hlotool.ir.types import Shape

#: Importing them registers what opcodes mean.
RULES = rules


def evaluated(
    module: Module, arguments: Sequence[Sequence[Any]], grid: DeviceGrid, seed: int
) -> list[list[Any]]:
    """Per device the leaves of the result: integers and preds as they are, of floats the pseudo-real values.

    Args:
        module: the program.
        arguments: per device one value per parameter, in the parameters' own types.
        grid: the devices.
        seed: of the trial.
    """
    trial = Trial(Constants(module), seed)
    lowering = FieldLowering(module, trial, grid)
    plan = lowering.plan(module.entry)
    given = [
        [
            unflatten(p.shape, [_held(s, v, trial) for _, s, v in flatten(p.shape, value)])
            for p, value in zip(module.entry.parameters, own)
        ]
        for own in arguments
    ]
    values = execute_devices(plan, given, grid) if len(grid) > 1 else [execute(plan, given[0], Run())]
    shape = module.entry.root.shape
    return [[_shown(s, v, trial) for _, s, v in flatten(shape, value)] for value in values]


def _held(shape: Shape, value: Any, trial: Trial) -> Any:
    words = trial.constants.words
    if is_float(shape):
        return words(np.asarray(value))
    return pair(words(np.real(value)), words(np.imag(value))) if is_complex(shape) else value


def _shown(shape: Shape, value: Any, trial: Trial) -> Any:
    if is_float(shape):
        return trial.kappa(np.asarray(value))
    if is_complex(shape):
        real, imaginary = parts(value)
        return trial.kappa(real) + 1j * trial.kappa(imaginary)
    return value
