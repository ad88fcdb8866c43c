"""The kernels of one module on a GPU as steps of a plan: residents in, residents out.

A step launches generated kernels, has cuBLAS compute a dot, or has the host run what has no kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace

from hlotool.backends.base import Value
from hlotool.backends.cuda.codegen.elements import NotGenerated, array_shape
from hlotool.backends.cuda.codegen.partition import KernelProgram, of_instruction
from hlotool.backends.cuda.codegen.schedules import THREADS, Buffer, Kernel, Part, kind_of
from hlotool.backends.cuda.cublas import Cublas, Product, product_of
from hlotool.backends.cuda.device import MAX_BLOCKS, Allocation, Function
from hlotool.backends.cuda.machine import (
    Memory,
    Resident,
    Storage,
    owns_item,
    to_arrays,
    to_residents,
)
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.plan import Plan, Run, describe
from hlotool.backends.numpy.registry import Calling, Reading
from hlotool.backends.numpy.registry import Kernel as Step
from hlotool.errors import BackendFailed
from hlotool.ir.arrays import dtype_of
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, ElementType

if TYPE_CHECKING:
    from hlotool.backends.cuda.backend import CudaBackend


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


class CudaLoading:
    """The kernels of one module; values are residents. See `Loading`."""

    def __init__(self, backend: CudaBackend) -> None:
        self._backend = backend
        self.precision = backend.precision
        self._memory = backend.memory
        self._functions: dict[str, Function] = {}
        self._moved_before = self._spilled_before = 0

    @property
    def moved(self) -> int:
        return self._memory.moved - self._moved_before

    @property
    def spilled(self) -> int:
        """Bytes that had to leave the device in the last run, since it was full."""
        return self._memory.spilled - self._spilled_before

    def build(self, kernels: Iterable[Kernel]) -> None:
        self._functions.update(self._backend.load(kernels))

    def launch(self, instruction: Instruction, program: KernelProgram, positions: Sequence[int]) -> Step:
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
            read = step.function
            return Reading(lambda *values: self._back(read(*_on_host(values))), step.operands)
        # Not a plain function itself: the numpy backend evaluates these together, block by block.
        function = step.function if isinstance(step, Calling) else lambda values, run: step(*values)

        def call(values: list[Any], run: Run) -> Any:
            arguments = _on_host(values)
            values.clear()
            return self._back(function(arguments, run))

        return Calling(call)

    def _back(self, result: Any) -> Any:
        return to_residents(result, self._memory, is_of_host_step=True)

    def constant(self, value: Any) -> Any:
        return to_residents(value, self._memory)

    def residents(self, arguments: Sequence[Any]) -> list[Any]:
        """Arguments as a plan takes them."""
        return [to_residents(argument, self._memory) for argument in arguments]

    def begin(self) -> None:
        self._moved_before, self._spilled_before = self._memory.moved, self._memory.spilled

    def run(self, plan: Plan, arguments: Sequence[Any], run: Run) -> Value:
        if (probe := run.probe) is not None:
            run.probe = lambda instruction, value: probe(instruction, to_arrays(value))
        with self._memory.device.current():
            result: Value = to_arrays(plan(self.residents(arguments), run))
        return result


def _on_host(values: Iterable[Any]) -> list[Any]:
    return [to_arrays(value, for_host_step=True) for value in values]


def view_of(instruction: Instruction) -> Callable[[Resident], Resident] | None:
    """What a reshape or bitcast does to an array in row-major order; None where it has to move elements."""
    source, target = instruction.operands[0].shape, instruction.shape
    if not isinstance(source, ArrayShape) or not isinstance(target, ArrayShape):
        return None
    if source.is_dynamic or target.is_dynamic or not _same_elements(source, target):
        return None
    if instruction.opcode == "bitcast" and not (_is_row_major(source) and _is_row_major(target)):
        return None
    return partial(Resident.viewed, dims=target.dims, dtype=dtype_of(target.element_type))


def _same_elements(source: ArrayShape, target: ArrayShape) -> bool:
    """Whether the bytes that hold one array are right as they are for the other."""
    old, new = source.element_type, target.element_type
    if old is new:
        return source.size == target.size
    # Elements narrower than a byte lie in one each, and a pred of any byte but 0 is held as 1.
    whole = old.bits >= 8 and new.bits >= 8 and new is not ElementType.PRED
    return whole and source.size * old.bits == target.size * new.bits


def _is_row_major(shape: ArrayShape) -> bool:
    """Whether elements lie in memory as in row-major order; dimensions of size 1 may stand anywhere."""
    order = [d for d in shape.minor_to_major[::-1] if shape.dims[d] != 1]
    return order == sorted(order) and not (shape.layout is not None and shape.layout.tiles)


# A dot as a step of a plan that has cuBLAS compute it.


class LibraryProduct:
    """Runs one dot; operands that the library cannot take as they lie are transposed by kernels before.

    Args:
        memory: of the device.
        library: that multiplies.
        instruction: the dot.
        product: what it is.
        functions: loaded kernels by name; filled before the first run.
        waits: everything is waited for, so that errors name the right instruction.
    """

    def __init__(
        self,
        memory: Memory,
        library: Cublas,
        instruction: Instruction,
        product: Product,
        functions: Mapping[str, Function],
        waits: bool,
    ) -> None:
        self._memory = memory
        self._library = library
        self._instruction = instruction
        self._product = product
        self._waits = waits
        self._launches: list[Launch | None] = []
        self.kernels: list[Kernel] = []
        for operand, stack in zip(instruction.operands, (product.left, product.right)):
            if stack.order is None:
                self._launches.append(None)
                continue
            moved = _arranged(instruction, operand, stack.order)
            program = of_instruction(moved)
            self._launches.append(Launch(memory, moved, program, [0], functions, waits))
            self.kernels += program.kernels

    def __call__(self, values: list[Any], run: Run) -> Resident:
        try:
            result = self._multiplied(values)
        except BackendFailed as error:
            raise located(error, self._instruction) from error
        values.clear()
        storage = Storage(self._memory, self._size, allocation=result)
        return Resident(storage, self._instruction.dims, dtype_of(self._instruction.element_type))

    def _multiplied(self, values: list[Any]) -> Allocation:
        operands = [
            value if launch is None else launch([value], Run())
            for value, launch in zip(values, self._launches)
        ]
        left, right = (operand.storage.on_device() for operand in operands)
        result = self._memory.allocate(self._size)
        self._library.multiply(self._product, left, right, result)
        if self._waits:
            self._memory.device.synchronize()
        return result

    @cached_property
    def _size(self) -> int:
        """Bytes of the result."""
        shape = self._instruction.array_shape
        return shape.size * dtype_of(shape.element_type).itemsize


def _arranged(dot: Instruction, operand: Instruction, order: tuple[int, ...]) -> Instruction:
    """The transposition that brings the dimensions of an operand into the order that the library takes."""
    shape = replace(operand.array_shape, dims=tuple(operand.dims[d] for d in order), layout=None)
    return Instruction(dot.name, "transpose", shape, (operand,), {"dimensions": order}, line=dot.line)
