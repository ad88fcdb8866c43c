"""The numpy reference: the definition of what an HLO module computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from hlotool.backends.numpy import kernels
from hlotool.backends.numpy.executables import DevicesExecutable, LogicalExecutable, NumpyExecutable
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.registry import NO_OPTIONS, Options, check_options
from hlotool.ir.devices import DeviceGrid
from hlotool.ir.module import Module
from hlotool.ir.partitioning import is_one_program_with_regions

if TYPE_CHECKING:
    from hlotool.backends.numpy.executions.varied import VariedBackend

__all__ = [
    "DevicesExecutable",
    "LogicalExecutable",
    "NumpyBackend",
    "NumpyExecutable",
    "RewritingBackend",
    "create",
    "kernels",
]


class NumpyBackend:
    """Executes HLO with NumPy; needs nothing but the installed packages."""

    name = "numpy"

    @property
    def version(self) -> str:
        """`numpy X.Y.Z`."""
        return f"numpy {np.__version__}"

    def compile(self, module: Module) -> NumpyExecutable | LogicalExecutable:
        """Compile every computation that the entry reaches.

        A program on global arrays that is not partitioned yet is executed as one, whatever `num_partitions`
        says; its manual regions are executed on all partitions.
        """
        if is_one_program_with_regions(module):
            return LogicalExecutable(module)
        return NumpyExecutable(module, Lowering(module).plan(module.entry))

    def compile_devices(self, module: Module, grid: DeviceGrid) -> DevicesExecutable:
        """Compile for all devices of `grid`, whatever number the module's header says.

        Raises:
            Unsupported: naming the first instruction that cannot be executed.
            VerificationError: a collective whose groups do not fit the devices.
        """
        return DevicesExecutable(module, Lowering(module, grid).plan(module.entry), grid)


class RewritingBackend(NumpyBackend):
    """Executes what a function makes of programs.

    Args:
        rewritten: the function; leaves what it is given as it is.
    """

    def __init__(self, rewritten: Callable[[Module], Module]) -> None:
        self._rewritten = rewritten

    def compile(self, module: Module) -> NumpyExecutable | LogicalExecutable:
        """See `NumpyBackend.compile`."""
        return super().compile(self._rewritten(module))

    def compile_devices(self, module: Module, grid: DeviceGrid) -> DevicesExecutable:
        """See `NumpyBackend.compile_devices`."""
        return super().compile_devices(self._rewritten(module), grid)


#: Options of the backend's spec, by form, with their meaning.
OPTIONS: dict[str, str] = {
    "wide": "everything is computed in f64",
    "perturbed=SEED": "every operation is off by as much as it may be",
    "flush": "denormal results are zero",
    "excess": "nothing is rounded to less than f32 inside fusions",
}


def create(options: Options = NO_OPTIONS) -> NumpyBackend | VariedBackend:
    """Entry point of group `hlotool.backends`.

    Raises:
        UsageError: unknown options, more than one of them, or a seed that is no number.
    """
    check_options("numpy", options, OPTIONS)
    if not options:
        return NumpyBackend()
    from hlotool.backends.numpy.executions.varied import variant

    return variant(options)
