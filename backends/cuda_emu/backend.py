"""The backend `cuda-emu`: fusions formed, kernels generated, compiled by g++, run on the CPU with NumPy
arrays.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from hlotool.backends.base import Value
from hlotool.backends.cuda.codegen.elements import array_shape
from hlotool.backends.cuda.codegen.expansion import Precision
from hlotool.backends.cuda.codegen.own_kernels import multiply_adds
from hlotool.backends.cuda.codegen.partition import KernelProgram
from hlotool.backends.cuda.codegen.schedules import Buffer, Kernel, Part, kind_of
from hlotool.backends.cuda.kernel_backend import KernelBackend
from hlotool.backends.cuda.machine import SharedMemory
from hlotool.backends.cuda_emu.build import Builder, Launcher, compiler
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.ownership import owns_item
from hlotool.backends.numpy.plan import Plan, Run
from hlotool.backends.numpy.registry import Calling
from hlotool.backends.numpy.registry import Kernel as Step
from hlotool.ir.arrays import Array, dtype_of
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


# Programs of kernels as steps of a plan: NumPy arrays in, NumPy arrays out.


class Launch:
    """Runs the kernels of one instruction.

    Args:
        program: what to run.
        positions: for each input the number of the operand that it is.
        launchers: compiled kernels by name; filled before the first run.
    """

    def __init__(
        self, program: KernelProgram, positions: Sequence[int], launchers: Mapping[str, Launcher]
    ) -> None:
        self._program = program
        self._positions = dict(zip(program.inputs, positions))
        self._launchers = launchers
        self._constants: dict[Buffer, Array] = {
            b: np.ascontiguousarray(array) for b, array in program.literals.items()
        }

    def __call__(self, values: list[Any], run: Run) -> Any:
        memory: dict[Buffer, Array] = dict(self._constants)
        for kernel in self._program.kernels:
            for buffer in kernel.inputs:
                if buffer not in memory and isinstance(buffer, Instruction):
                    memory[buffer] = np.ascontiguousarray(values[self._positions[buffer]])
            for buffer in kernel.outputs:
                memory[buffer] = self._target(kernel, buffer, memory, values)
            self._launch(kernel, memory)
        if run.probe is not None:
            for instruction, place in self._program.seen.items():
                run.probe(instruction, memory[place])
        results = [memory[output] for output in self._program.outputs]
        # Plans hold scalars as NumPy scalars.
        values.clear()
        return self._program.packed(r if r.ndim else r[()] for r in results)

    def _target(
        self, kernel: Kernel, buffer: Buffer, memory: Mapping[Buffer, Array], values: list[Any]
    ) -> Array:
        base = kernel.in_place
        if base is None:
            dims = (buffer.size,) if isinstance(buffer, Part) else array_shape(buffer).dims
            return np.empty(dims, dtype_of(kind_of(buffer)))
        if base in memory:
            return memory[base].copy()
        position = self._positions[base]
        if owns_item(values, position) and values[position].flags.c_contiguous:
            owned: Array = values[position]
            return owned
        return np.array(values[position], order="C")

    def _launch(self, kernel: Kernel, memory: Mapping[Buffer, Array]) -> None:
        arrays = [memory[buffer] for buffer in (*kernel.inputs, *kernel.outputs)]
        if not any(memory[buffer].size for buffer in kernel.outputs):
            return
        pointers = (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))
        self._launchers[kernel.name](ctypes.addressof(pointers), kernel.grid)
