"""The backend `cuda-emu`: fusions formed, kernels generated, compiled by g++, run on the CPU."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from hlotool.backends.base import Value
from hlotool.backends.cuda.codegen.partition import Program
from hlotool.backends.cuda.codegen.schedules import Kernel
from hlotool.backends.cuda.executable import KernelExecutable, check_regions
from hlotool.backends.cuda_emu.build import Builder, Launcher, compiler
from hlotool.backends.cuda_emu.devices import EmulatedDevices
from hlotool.backends.cuda_emu.launch import Launch
from hlotool.backends.numpy.registry import Calling
from hlotool.backends.numpy.registry import Kernel as Step
from hlotool.ir.devices import DeviceGrid
from hlotool.ir.module import Instruction, Module


class EmulatorLoading:
    """The kernels of one module; values are NumPy arrays. See `Loading`."""

    moved = None

    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self._launchers: dict[str, Launcher] = {}

    def build(self, kernels: Iterable[Kernel]) -> None:
        self._launchers.update(self._builder.load(kernels))

    def launch(self, instruction: Instruction, program: Program, positions: Sequence[int]) -> Step:
        return Calling(Launch(program, positions, self._launchers))

    def library_call(self, instruction: Instruction) -> tuple[Step, Sequence[Kernel]] | None:
        return None

    def same_data(self, instruction: Instruction, step: Step) -> Step | None:
        return step

    def fall_back(self, step: Step) -> Step:
        return step

    def constant(self, value: Any) -> Any:
        return value

    def take(self, arguments: Sequence[Any]) -> list[Any]:
        return list(arguments)

    def give(self, value: Any) -> Value:
        result: Value = value
        return result


class EmulatorBackend:
    """Runs generated kernels on the CPU.

    Args:
        name: as on the command line.
        backward: threads run in descending order.
        fuses: operations are fused first.
        builder: compiles the kernels; g++ as `backward` says if None.

    Raises:
        BackendUnavailable: there is no g++.
    """

    def __init__(
        self,
        name: str = "cuda-emu",
        *,
        backward: bool = False,
        fuses: bool = True,
        builder: Builder | None = None,
    ) -> None:
        self.name = name
        self._fuses = fuses
        self._builder = builder or Builder(backward)

    @property
    def version(self) -> str:
        """`cuda-emu (g++ X.Y.Z)`."""
        return f"{self.name} (g++ {compiler()[1]})"

    def loading(self) -> EmulatorLoading:
        """See `Machine`."""
        return EmulatorLoading(self._builder)

    def compile(self, module: Module) -> KernelExecutable:
        """Generate and compile all kernels of `module`.

        Raises:
            Unsupported: neither a kernel nor the numpy reference can execute an instruction.
            BackendFailed: g++ failed.
        """
        check_regions(module, "cuda-emu")
        return KernelExecutable(module, self, self._fuses)

    def compile_devices(self, module: Module, grid: DeviceGrid) -> EmulatedDevices:
        """The same for all devices of `grid`, whatever number the module's header says.

        Raises:
            Unsupported: neither a kernel nor the numpy reference can execute an instruction.
            VerificationError: a collective whose groups do not fit the devices.
            BackendFailed: g++ failed.
        """
        return EmulatedDevices(module, self, self._fuses, grid)
