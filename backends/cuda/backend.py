"""The backend `cuda`: fusions formed, kernels generated and compiled, run on a GPU."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from hlotool.backends.base import Probe, Value
from hlotool.backends.cuda.build import compile_kernels
from hlotool.backends.cuda.codegen.expansion import Precision
from hlotool.backends.cuda.codegen.schedules import Kernel
from hlotool.backends.cuda.cublas import Cublas, find_library
from hlotool.backends.cuda.device import Device, Function, open_device
from hlotool.backends.cuda.kernel_backend import KernelBackend, KernelExecutable
from hlotool.backends.cuda.loading import CudaLoading
from hlotool.backends.cuda.memory import Memory, Resident
from hlotool.backends.cuda.toolchain import find_compiler
from hlotool.backends.numpy.executables import check_arguments
from hlotool.backends.numpy.plan import Plan, Run
from hlotool.ir.module import Module
from hlotool.system.user_input import size_text

#: Bytes of the device that a program leaves allocated for the next one.
_KEPT = 1 << 30


class CudaExecutable(KernelExecutable):
    """A module on a GPU."""

    def __init__(self, module: Module, backend: CudaBackend, fuses: bool) -> None:
        super().__init__(module, backend, fuses)
        self._backend = backend
        self._loading: CudaLoading

    @property
    def notes(self) -> tuple[str, ...]:
        """What the host executes instead of a kernel, and what the last run moved there for want of room."""
        spilled = self._loading.spilled
        note = f"the device was full: {size_text(spilled)} moved to the host"
        return (*super().notes, note) if spilled else super().notes

    def run(self, arguments: Sequence[Value], probe: Probe | None = None) -> Value:
        """Execute once; see `Executable.run`."""
        result = super().run(arguments, probe)
        # Other processes may need the device, too.
        self._backend.memory.device.release(_KEPT)
        return result

    def prepare(self, arguments: Sequence[Value]) -> Prepared:
        """The program with its arguments on the device, to run and time it there.

        Raises:
            InputDataError: an argument does not fit its parameter.
            BackendFailed: they do not fit into the device's memory, or it died.
        """
        values = self._loading.residents(check_arguments(self.module, arguments))
        return Prepared(self._backend.memory, self._plan, values)


class CudaBackend(KernelBackend):
    """Runs generated kernels on a GPU.

    Args:
        name: as on the command line.
        number: of the device.
        compiler: `nvrtc` or `nvcc`; what is there if empty.
        fuses: operations are fused first.
        waits: every kernel is waited for, so that errors name the right instruction.
        calls_libraries: cuBLAS multiplies large matrices, where it is installed.
        precision: of narrow floats inside of fusions.

    Attributes:
        memory: of the device.

    Raises:
        BackendUnavailable: pycuda, the driver, the device or a compiler is missing, or too old for
            the others.
    """

    def __init__(
        self,
        name: str = "cuda",
        number: int = 0,
        compiler: str = "",
        *,
        fuses: bool = True,
        waits: bool = False,
        calls_libraries: bool = True,
        precision: Precision = Precision.HLO,
    ) -> None:
        super().__init__(name, fuses, precision, calls_libraries)
        self.waits = waits
        self._device: Device = open_device(number)
        self._compiler = find_compiler(compiler, self._device.architecture, self._device.cuda)
        self.memory = Memory(self._device)

    @property
    def version(self) -> str:
        """`cuda (sm_90, pycuda 2026.1, driver for CUDA 13.0, NVRTC 13.0)`."""
        device = self._device
        return f"{self.name} ({device.architecture}, {device.versions}, {self._compiler.version})"

    @property
    def device(self) -> str:
        """As the driver calls it."""
        return self._device.name

    @property
    def has_library(self) -> bool:
        """Whether cuBLAS multiplies large matrices."""
        return self._calls_libraries and find_library(self._device.cuda[0]) is not None

    @cached_property
    def library(self) -> Cublas:
        """cuBLAS on the device."""
        found = find_library(self._device.cuda[0])
        assert found is not None
        return Cublas(found, self._device)

    def loading(self) -> CudaLoading:
        """The kernels of one module on this device."""
        return CudaLoading(self)

    def load(self, kernels: Iterable[Kernel]) -> dict[str, Function]:
        """Kernels by name, compiled where they have not been before, and loaded."""
        compiled = compile_kernels(kernels, self._device.architecture, self._compiler)
        functions: dict[str, Function] = {}
        for cubin in {c.cubin for c in compiled.values()}:
            names = [name for name, c in compiled.items() if c.cubin == cubin]
            functions |= self._device.load(cubin.read_bytes(), names, self._compiler.version)
        return functions

    def _executable(self, module: Module) -> CudaExecutable:
        return CudaExecutable(module, self, self._fuses)


class Prepared:
    """A program with its arguments on the device.

    Args:
        memory: of the device.
        plan: of the program.
        values: its arguments as residents.
    """

    def __init__(self, memory: Memory, plan: Plan, values: Sequence[Any]) -> None:
        self._memory = memory
        self._plan = plan
        self._values = values
        for value in values:
            _send(value)

    def run(self) -> Any:
        """Queue one execution; the result stays on the device (`to_arrays` brings it down).

        Arguments are not modified: what the program would update in place is copied.
        """
        with np.errstate(all="ignore"):
            return self._plan(list(self._values), Run())

    def time(self, repeats: int, inner: int = 1) -> list[float]:
        """Milliseconds of one execution by the device's clock, measured `repeats` times.

        Args:
            repeats: how many measurements.
            inner: executions within each, so that what the host does between them does not count for as much.
        """
        device = self._memory.device

        def work() -> None:
            for _ in range(inner):
                self.run()

        return [device.time(work) / inner for _ in range(repeats)]


def _send(value: Any) -> None:
    if isinstance(value, tuple):
        for part in value:
            _send(part)
    elif isinstance(value, Resident):
        value.storage.on_device()
