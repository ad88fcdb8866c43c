"""Modules on generated kernels, on whatever machine: fusions formed, kernels made, plans run.

Programs for several devices all run on one machine; collectives between them are done on the host.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property, partial

import numpy as np

from hlotool.amounts import size_text
from hlotool.backends.base import Probe, Value
from hlotool.backends.cuda.codegen.precision import Precision
from hlotool.backends.cuda.fusing import fused
from hlotool.backends.cuda.lowering import KernelLowering
from hlotool.backends.cuda.machine import Loading, Machine
from hlotool.backends.numpy.executables import DevicesExecutable, check_arguments
from hlotool.backends.numpy.plan import Plan
from hlotool.backends.numpy.run import Run
from hlotool.ir.devices import ONE_DEVICE, DeviceGrid
from hlotool.ir.module import Module
from hlotool.ir.partitioning import is_one_program_with_regions


class _Kernels:
    """A module as plans of kernel launches.

    Args:
        module: what each device executes.
        machine: where it runs, each device in a thread of its own.
        fuses: operations are fused first.
        grid: the devices.

    Attributes:
        module: what is executed.
    """

    def __init__(self, module: Module, machine: Machine, fuses: bool, grid: DeviceGrid = ONE_DEVICE) -> None:
        self.module = module
        self._machine = machine
        self._grid = grid
        self._loading = machine.loading()
        self._lowering, self._plan = _compiled(fused(module) if fuses else module, self._loading, False, grid)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the host executes instead of a kernel, as `host fallbacks: sort x2, 12 MiB moved`; or nothing.

        Each counts once, also in loops. The bytes are those of the last run, or where memory is shared, those
        that they read and write when each runs once.
        """
        if not self._lowering.fallbacks:
            return ()
        counts = ", ".join(f"{opcode} x{count}" for opcode, count in sorted(self._lowering.fallbacks.items()))
        moved = self._lowering.fallback_bytes if self._loading.moved is None else self._loading.moved
        return (f"host fallbacks: {counts}, {size_text(moved)} moved",)

    @cached_property
    def _probed(self) -> tuple[Loading, Plan]:
        """The same where only what the program fuses is fused: a probe sees every instruction."""
        loading = self._machine.loading()
        return loading, _compiled(self.module, loading, True, self._grid)[1]


def _compiled(
    module: Module, loading: Loading, is_probed: bool, grid: DeviceGrid
) -> tuple[KernelLowering, Plan]:
    """The plan of a module's entry, with all kernels that it launches loaded."""
    lowering = KernelLowering(module, loading, is_probed, grid)
    plan = lowering.plan(module.entry)
    loading.build(lowering.kernels)
    return lowering, plan


class KernelExecutable(_Kernels):
    """A module for one device.

    Attributes:
        kernels: that the text of the program launches, one for each place.
    """

    def __init__(self, module: Module, machine: Machine, fuses: bool) -> None:
        super().__init__(module, machine, fuses)
        self.kernels = tuple(self._lowering.kernels)

    @property
    def launches(self) -> int:
        """Number of kernels that the text of the program launches."""
        return len(self.kernels)

    def run(self, arguments: Sequence[Value], probe: Probe | None = None) -> Value:
        """Execute once; see `Executable.run`. Under a probe, only what the program fuses is fused."""
        values = check_arguments(self.module, arguments)
        loading, plan = (self._loading, self._plan) if probe is None else self._probed
        loading.begin()
        with np.errstate(all="ignore"):
            return loading.run(plan, values, Run(probe))


class KernelDevices(_Kernels):
    """A module for all devices of a grid."""

    def run_devices(
        self, arguments: Sequence[Sequence[Value]], probes: Sequence[Probe | None] | None = None
    ) -> list[Value]:
        """Execute once on all devices; see `DevicesExecutable`. Under probes, nothing is fused first."""
        loading, plan = (self._loading, self._plan) if probes is None else self._probed
        self._loading.begin()
        executable = DevicesExecutable(self.module, partial(loading.run, plan), self._grid)
        return executable.run_devices(arguments, probes)


class KernelRegions(KernelDevices):
    """A program on global arrays with manual regions: all partitions execute it on the same arguments.

    Args:
        module: the program, not partitioned yet.
        machine: where.
        fuses: operations are fused first.
    """

    def __init__(self, module: Module, machine: Machine, fuses: bool) -> None:
        super().__init__(module, machine, fuses, DeviceGrid(1, module.num_partitions))

    def run(self, arguments: Sequence[Value], probe: Probe | None = None) -> Value:
        """Execute once; see `Executable.run`. The probe sees the first partition."""
        count = len(self._grid)
        probes = None if probe is None else [probe, *[None] * (count - 1)]
        return self.run_devices([arguments] * count, probes)[0]


class KernelBackend(ABC):
    """Compiles modules to kernels; subclasses say where these run.

    Args:
        name: as on the command line.
        fuses: operations are fused first.
        precision: of narrow floats inside of fusions.
        calls_libraries: large products are left to a library, where there is one.
    """

    def __init__(self, name: str, fuses: bool, precision: Precision, calls_libraries: bool) -> None:
        self.name = name
        self.precision = precision
        self._fuses = fuses
        self._calls_libraries = calls_libraries

    @abstractmethod
    def loading(self) -> Loading:
        """The part of the machine that belongs to one module; see `Machine`."""

    def compile(self, module: Module) -> KernelExecutable | KernelRegions:
        """Generate and compile all kernels of `module`.

        A program on global arrays that is not partitioned yet is executed as one, whatever `num_partitions`
        says, but for manual regions: all partitions execute a program that has them.

        Raises:
            Unsupported: neither a kernel nor the numpy reference can execute an instruction.
            BackendUnavailable: the compiler or the device does not go with the other.
            BackendFailed: the compiler failed.
        """
        if is_one_program_with_regions(module):
            return KernelRegions(module, self, self._fuses)
        return self._executable(module)

    def _executable(self, module: Module) -> KernelExecutable:
        return KernelExecutable(module, self, self._fuses)

    def compile_devices(self, module: Module, grid: DeviceGrid) -> KernelDevices:
        """Compile for all devices of `grid`, whatever number the module's header says; one machine runs all.

        Raises:
            Unsupported: neither a kernel nor the numpy reference can execute an instruction.
            VerificationError: a collective whose groups do not fit the devices.
            BackendUnavailable: the compiler or the device does not go with the other.
            BackendFailed: the compiler failed.
        """
        return KernelDevices(module, self, self._fuses, grid)
