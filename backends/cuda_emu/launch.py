"""Programs of kernels as steps of a plan: NumPy arrays in, NumPy arrays out."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hlotool.backends.cuda.codegen.elements import array_shape
from hlotool.backends.cuda.codegen.partition import KernelProgram
from hlotool.backends.cuda.codegen.schedules import Buffer, Kernel, Part, kind_of
from hlotool.backends.cuda_emu.build import Launcher
from hlotool.backends.numpy.ownership import owns_item
from hlotool.backends.numpy.run import Run
from hlotool.ir.dtypes import Array, dtype_of
from hlotool.ir.module import Instruction


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
