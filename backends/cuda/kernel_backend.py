"""What all backends of generated kernels do with modules, on whatever machine."""

from __future__ import annotations

from abc import ABC, abstractmethod

from hlotool.backends.cuda.codegen.precision import Precision
from hlotool.backends.cuda.devices import KernelDevices, KernelRegions
from hlotool.backends.cuda.executable import KernelExecutable
from hlotool.backends.cuda.machine import Loading
from hlotool.ir.devices import DeviceGrid
from hlotool.ir.module import Module
from hlotool.ir.partitioning import is_one_program_with_regions


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
