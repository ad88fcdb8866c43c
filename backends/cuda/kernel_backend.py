"""What all backends of generated kernels do with modules, on whatever machine.

Programs for several devices all run on one machine; collectives between them are done on the host.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property, partial

from hlotool.backends.base import Probe, Value
from hlotool.backends.cuda.codegen.precision import Precision
from hlotool.backends.cuda.executable import KernelExecutable, compiled, fallback_note
from hlotool.backends.cuda.fusing import fused
from hlotool.backends.cuda.machine import Loading, Machine
from hlotool.backends.numpy.executables import DevicesExecutable
from hlotool.ir.devices import DeviceGrid
from hlotool.ir.module import Module
from hlotool.ir.partitioning import is_one_program_with_regions


class KernelDevices:
    """A module for all devices of a grid, as plans of kernel launches.

    Args:
        module: what each device executes.
        machine: where each device runs, in a thread of its own.
        fuses: operations are fused first.
        grid: the devices.
    """

    def __init__(self, module: Module, machine: Machine, fuses: bool, grid: DeviceGrid) -> None:
        self._module = module
        self._machine = machine
        self._grid = grid
        self._loading = machine.loading()
        self._lowering, plan = compiled(fused(module) if fuses else module, self._loading, grid=grid)
        self._executable = DevicesExecutable(module, partial(self._loading.run, plan), grid)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the host executes instead of a kernel; see `fallback_note`."""
        return fallback_note(self._lowering, self._loading)

    def run_devices(
        self, arguments: Sequence[Sequence[Value]], probes: Sequence[Probe | None] | None = None
    ) -> list[Value]:
        """Execute once on all devices; see `DevicesExecutable`. Under probes, nothing is fused first."""
        executable = self._executable if probes is None else self._probed
        self._loading.begin()
        return executable.run_devices(arguments, probes)

    @cached_property
    def _probed(self) -> DevicesExecutable:
        loading = self._machine.loading()
        _, plan = compiled(self._module, loading, is_probed=True, grid=self._grid)
        return DevicesExecutable(self._module, partial(loading.run, plan), self._grid)


class KernelRegions:
    """A program on global arrays with manual regions: all partitions execute it on the same arguments.

    Args:
        module: the program, not partitioned yet.
        machine: where.
        fuses: operations are fused first.
    """

    def __init__(self, module: Module, machine: Machine, fuses: bool) -> None:
        self._count = module.num_partitions
        self._devices = KernelDevices(module, machine, fuses, DeviceGrid(1, self._count))

    @property
    def notes(self) -> tuple[str, ...]:
        """What the host executes instead of a kernel; see `fallback_note`."""
        return self._devices.notes

    def run(self, arguments: Sequence[Value], probe: Probe | None = None) -> Value:
        """Execute once; see `Executable.run`. The probe sees the first partition."""
        probes = None if probe is None else [probe, *[None] * (self._count - 1)]
        return self._devices.run_devices([arguments] * self._count, probes)[0]


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
