"""The backend `cuda`: fusions formed, kernels generated and compiled, run on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from hlotool.backends.base import Probe, Value
from hlotool.backends.cuda.build import compile_kernels
from hlotool.backends.cuda.codegen.elements import NotGenerated
from hlotool.backends.cuda.codegen.partition import Program
from hlotool.backends.cuda.codegen.precision import Precision
from hlotool.backends.cuda.codegen.schedules import Kernel
from hlotool.backends.cuda.compilers import find_compiler
from hlotool.backends.cuda.cublas import Cublas, find_library
from hlotool.backends.cuda.device import MAX_BLOCKS, Device, Function, open_device
from hlotool.backends.cuda.executable import KernelExecutable, check_regions
from hlotool.backends.cuda.launch import Launch
from hlotool.backends.cuda.library_product import LibraryProduct
from hlotool.backends.cuda.memory import Memory, Resident, to_arrays, to_residents
from hlotool.backends.cuda.products import product_of
from hlotool.backends.cuda.views import view_of
from hlotool.backends.numpy.arguments import check_arguments
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.plan import Plan
from hlotool.backends.numpy.registry import Calling, Reading
from hlotool.backends.numpy.registry import Kernel as Step
from hlotool.backends.numpy.run import Run
from hlotool.ir.module import Instruction, Module

#: Bytes of the device that a program leaves allocated for the next one.
_KEPT = 1 << 30


class CudaLoading:
    """The kernels of one module; values are residents. See `Loading`."""

    def __init__(self, backend: CudaBackend) -> None:
        self._backend = backend
        self.precision = backend.precision
        self._memory = backend.memory
        self._functions: dict[str, Function] = {}
        self._moved_before = 0

    @property
    def moved(self) -> int:
        return self._memory.moved - self._moved_before

    def build(self, kernels: Iterable[Kernel]) -> None:
        self._functions.update(self._backend.load(kernels))

    def launch(self, instruction: Instruction, program: Program, positions: Sequence[int]) -> Step:
        if any(kernel.grid > MAX_BLOCKS for kernel in program.kernels):
            raise NotGenerated("more blocks than a grid can have", instruction)
        waits = self._backend.waits
        return Calling(Launch(self._memory, instruction, program, positions, self._functions, waits))

    def library_call(self, instruction: Instruction, host: Lowering) -> tuple[Step, Sequence[Kernel]] | None:
        product = product_of(instruction) if self._backend.has_library else None
        if product is None:
            return None
        call = LibraryProduct(
            self._memory, self._backend.library, instruction, product, self._functions, self._backend.waits
        )
        return Calling(call), call.kernels

    def same_data(self, instruction: Instruction, step: Step) -> Step | None:
        return step if instruction.opcode == "copy" else view_of(instruction)

    def fall_back(self, step: Step) -> Step:
        if isinstance(step, Reading):
            return Reading(self._on_host(step.function), step.operands)
        if isinstance(step, Calling):
            return Calling(self._calling_on_host(step.function))
        # Not the function itself: the numpy backend evaluates plain ones together, block by block.
        function = self._on_host(step)
        return Calling(lambda values, run: function(*values))

    def _on_host(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*values: Any) -> Any:
            result = function(*[to_arrays(value, for_host_step=True) for value in values])
            return to_residents(result, self._memory, is_of_host_step=True)

        return call

    def _calling_on_host(self, function: Callable[[list[Any], Run], Any]) -> Callable[[list[Any], Run], Any]:
        def call(values: list[Any], run: Run) -> Any:
            arguments = [to_arrays(value, for_host_step=True) for value in values]
            values.clear()
            return to_residents(function(arguments, run), self._memory, is_of_host_step=True)

        return call

    def constant(self, value: Any) -> Any:
        return to_residents(value, self._memory)

    def take(self, arguments: Sequence[Any]) -> list[Any]:
        self._memory.device.check_thread()
        self._moved_before = self._memory.moved
        return [to_residents(argument, self._memory) for argument in arguments]

    def give(self, value: Any) -> Value:
        result: Value = to_arrays(value)
        return result


class CudaExecutable(KernelExecutable):
    """A module on a GPU."""

    def __init__(self, module: Module, backend: CudaBackend, fuses: bool) -> None:
        super().__init__(module, backend, fuses)
        self._backend = backend

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
        values = self._loading.take(check_arguments(self.module, arguments))
        return Prepared(self._backend.memory, self._plan, values)


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


class CudaBackend:
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
        BackendUnavailable: pycuda, the driver, the device or a compiler is missing.
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
        self.name = name
        self.precision = precision
        self.waits = waits
        self._calls_libraries = calls_libraries
        self._fuses = fuses
        self._device: Device = open_device(number)
        self._compiler = find_compiler(compiler)
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
        return self._calls_libraries and find_library() is not None

    @cached_property
    def library(self) -> Cublas:
        """cuBLAS on the device."""
        found = find_library()
        assert found is not None
        return Cublas(found, self._device)

    def loading(self) -> CudaLoading:
        """See `Machine`."""
        return CudaLoading(self)

    def load(self, kernels: Iterable[Kernel]) -> dict[str, Function]:
        """Kernels by name, compiled where they have not been before, and loaded."""
        compiled = compile_kernels(kernels, self._device.architecture, self._compiler)
        functions: dict[str, Function] = {}
        for cubin in {c.cubin for c in compiled.values()}:
            names = [name for name, c in compiled.items() if c.cubin == cubin]
            functions |= self._device.load(cubin.read_bytes(), names)
        return functions

    def compile(self, module: Module) -> CudaExecutable:
        """Generate and compile all kernels of `module`.

        Raises:
            Unsupported: neither a kernel nor the numpy reference can execute an instruction.
            BackendUnavailable: the compiler or the device does not go with the other.
            BackendFailed: the compiler failed.
        """
        check_regions(module, "cuda")
        return CudaExecutable(module, self, self._fuses)
