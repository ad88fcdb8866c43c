"""Programs of kernels as steps of a plan: residents in, residents out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hlotool.backends.cuda.codegen.elements import array_shape
from hlotool.backends.cuda.codegen.partition import KernelProgram
from hlotool.backends.cuda.codegen.schedules import THREADS, Buffer, Kernel, Part, kind_of
from hlotool.backends.cuda.device import Allocation, Function
from hlotool.backends.cuda.memory import Memory, Resident, Storage, owns_item, to_residents
from hlotool.backends.numpy.failures import describe
from hlotool.backends.numpy.run import Run
from hlotool.errors import BackendFailed
from hlotool.ir.dtypes import dtype_of
from hlotool.ir.module import Instruction


def located(error: BackendFailed, instruction: Instruction) -> BackendFailed:
    """An error of the device that names the instruction that was executed."""
    message = f"{error.message}, at {describe(instruction)}"
    return type(error)(error.backend, message, error.log, error.here)


class Launch:
    """Runs the kernels of one instruction.

    Args:
        memory: of the device.
        instruction: that it executes.
        program: what to run.
        positions: for each input the number of the operand that it is.
        functions: loaded kernels by name; filled before the first run.
        waits: every kernel is waited for, so that errors name the right instruction.
    """

    def __init__(
        self,
        memory: Memory,
        instruction: Instruction,
        program: KernelProgram,
        positions: Sequence[int],
        functions: Mapping[str, Function],
        waits: bool,
    ) -> None:
        self._memory = memory
        self._instruction = instruction
        self._program = program
        self._positions = dict(zip(program.inputs, positions))
        self._functions = functions
        self._waits = waits
        # They go to the device once.
        self._constants: dict[Buffer, Storage] = {
            b: to_residents(a, memory).storage for b, a in program.literals.items()
        }
        self._dying = _last_uses(program)
        made = [buffer for kernel in program.kernels for buffer in kernel.outputs]
        self._sizes = {buffer: _size(buffer) for buffer in made}
        self._arrays = {b: (array_shape(b).dims, _dtype(b)) for b in made if isinstance(b, Instruction)}

    def __call__(self, values: list[Any], run: Run) -> Any:
        try:
            found = self._run(values)
        except BackendFailed as error:
            raise located(error, self._instruction) from error
        if run.probe is not None:
            for instruction, place in self._program.seen.items():
                run.probe(instruction, self._resident(place, found[place]))
        values.clear()
        return self._program.packed(self._resident(output, found[output]) for output in self._program.outputs)

    def _resident(self, place: Instruction, storage: Storage) -> Any:
        return Resident(storage, *self._arrays[place])

    def _run(self, values: list[Any]) -> dict[Buffer, Storage]:
        found = dict(self._constants)
        for kernel, dying in zip(self._program.kernels, self._dying):
            for buffer in kernel.inputs:
                if buffer not in found and isinstance(buffer, Instruction):
                    found[buffer] = values[self._positions[buffer]].storage
            # What is held here stays on the device until the kernel is queued, whatever has to leave it.
            inputs = [found[buffer].on_device() for buffer in kernel.inputs]
            outputs = [self._target(kernel, buffer, found, values) for buffer in kernel.outputs]
            self._launch(kernel, [*inputs, *outputs])
            for buffer, target in zip(kernel.outputs, outputs):
                found[buffer] = Storage(self._memory, self._sizes[buffer], allocation=target)
            for buffer in dying:
                del found[buffer]
        return found

    def _target(
        self, kernel: Kernel, buffer: Buffer, found: Mapping[Buffer, Storage], values: list[Any]
    ) -> Allocation:
        """Where an output goes; where it is an updated input, that input's memory or a copy of it."""
        size = self._sizes[buffer]
        base = kernel.in_place
        if base is None:
            return self._memory.allocate(size)
        if base in found:
            source = found[base].on_device()
        else:
            position = self._positions[base]
            source = values[position].storage.on_device()
            if owns_item(values, position):
                return source
        copied = self._memory.allocate(size)
        self._memory.device.copy(copied, source, size)
        return copied

    def _launch(self, kernel: Kernel, pointers: Sequence[Allocation]) -> None:
        if not any(self._sizes[buffer] for buffer in kernel.outputs):
            return
        device = self._memory.device
        device.launch(self._functions[kernel.name], kernel.grid, THREADS, pointers)
        if self._waits:
            device.synchronize()


def _last_uses(program: KernelProgram) -> list[list[Buffer]]:
    """For each kernel, what it is the last to use of what earlier ones computed."""
    kept = {*program.outputs, *program.seen.values(), *program.inputs}
    last = {b: n for n, kernel in enumerate(program.kernels) for b in _used(kernel)}
    made = {b for kernel in program.kernels for b in kernel.outputs} - kept
    return [[b for b in made if last[b] == number] for number in range(len(program.kernels))]


def _used(kernel: Kernel) -> tuple[Buffer, ...]:
    """What it reads and writes, and what its output starts as."""
    updated = () if kernel.in_place is None else (kernel.in_place,)
    return *kernel.inputs, *kernel.outputs, *updated


def _dtype(buffer: Buffer) -> np.dtype[Any]:
    return dtype_of(kind_of(buffer))


def _size(buffer: Buffer) -> int:
    """The size of a buffer in bytes."""
    count = buffer.size if isinstance(buffer, Part) else array_shape(buffer).size
    return count * _dtype(buffer).itemsize
