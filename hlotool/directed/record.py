"""The values of one run that inverse arithmetic goes by: those of the first time that an instruction ran."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from hlotool.analysis.work import of_lowering
from hlotool.backends.base import Value
from hlotool.backends.numpy import NumpyBackend
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Instruction, Module
from hlotool.workers.work_limit import spend

#: Elements of an array that is kept; larger ones are not solved for.
_LARGEST: Final = 1 << 16


class FirstValues:
    """A probe that keeps copies of small arrays.

    Attributes:
        values: by instruction.
    """

    def __init__(self) -> None:
        self.values: dict[Instruction, Array] = {}

    def __call__(self, instruction: Instruction, value: Value) -> None:
        """See `Probe`."""
        if instruction in self.values or not isinstance(value, np.ndarray | np.generic):
            return
        array = np.asarray(value)
        if array.size <= _LARGEST:
            self.values[instruction] = np.array(array)


def first_values(module: Module, arguments: Sequence[Value]) -> dict[Instruction, Array]:
    """What every instruction of a program for one device returned first; raises as `Executable.run`."""
    probe = FirstValues()
    for parameter, value in zip(module.entry.parameters, arguments):
        probe(parameter, value)
    spend(of_lowering(module))
    NumpyBackend().compile(module).run(arguments, probe)
    return probe.values
