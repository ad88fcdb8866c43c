"""The backend `cuda-emu`: fusions formed, kernels generated, compiled by g++, run on the CPU."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from hlotool.backends.base import Value
from hlotool.backends.cuda.codegen.own_kernels import multiply_adds
from hlotool.backends.cuda.codegen.partition import KernelProgram
from hlotool.backends.cuda.codegen.precision import Precision
from hlotool.backends.cuda.codegen.schedules import Kernel
from hlotool.backends.cuda.kernel_backend import KernelBackend
from hlotool.backends.cuda.machine import SharedMemory
from hlotool.backends.cuda_emu.build import Builder, Launcher, compiler
from hlotool.backends.cuda_emu.launch import Launch
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.plan import Plan
from hlotool.backends.numpy.registry import Calling
from hlotool.backends.numpy.registry import Kernel as Step
from hlotool.backends.numpy.run import Run
from hlotool.ir.module import Instruction

#: Multiplications and additions from which on BLAS is faster than a generated kernel: 52 against 28
#: microseconds for f32 at this size, and 3 times as fast and more beyond.
_LARGE_PRODUCT = 1 << 18


class EmulatorLoading(SharedMemory):
    """The kernels of one module; values are NumPy arrays. See `Loading`."""

    def __init__(
        self, builder: Builder, precision: Precision = Precision.HLO, calls_libraries: bool = True
    ) -> None:
        self.precision = precision
        self._builder = builder
        self._calls_libraries = calls_libraries
        self._launchers: dict[str, Launcher] = {}

    def build(self, kernels: Iterable[Kernel]) -> None:
        self._launchers.update(self._builder.load(kernels))

    def launch(self, instruction: Instruction, program: KernelProgram, positions: Sequence[int]) -> Step:
        return Calling(Launch(program, positions, self._launchers))

    def library_call(self, instruction: Instruction, host: Lowering) -> tuple[Step, Sequence[Kernel]] | None:
        if not self._calls_libraries or multiply_adds(instruction) < _LARGE_PRODUCT:
            return None
        return host.kernel(instruction), ()

    def run(self, plan: Plan, arguments: Sequence[Any], run: Run) -> Value:
        result: Value = plan(list(arguments), run)
        return result


class EmulatorBackend(KernelBackend):
    """Runs generated kernels on the CPU.

    Args:
        name: as on the command line.
        fuses: operations are fused first.
        precision: of narrow floats inside of fusions.
        calls_libraries: large products are left to BLAS.
        builder: compiles the kernels; for this machine, with threads in ascending order, if None.

    Raises:
        BackendUnavailable: there is no g++.
    """

    def __init__(
        self,
        name: str = "cuda-emu",
        *,
        fuses: bool = True,
        precision: Precision = Precision.HLO,
        calls_libraries: bool = True,
        builder: Builder | None = None,
    ) -> None:
        super().__init__(name, fuses, precision, calls_libraries)
        self._builder = builder or Builder()

    @property
    def version(self) -> str:
        """`cuda-emu (g++ X.Y.Z)`."""
        return f"{self.name} (g++ {compiler()[1]})"

    def loading(self) -> EmulatorLoading:
        """The kernels of one module on this CPU."""
        return EmulatorLoading(self._builder, self.precision, self._calls_libraries)
