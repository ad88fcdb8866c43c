"""A dot as a step of a plan that has cuBLAS compute it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

from hlotool.backends.cuda.codegen.partition import of_instruction
from hlotool.backends.cuda.codegen.schedules import Kernel
from hlotool.backends.cuda.cublas import Cublas
from hlotool.backends.cuda.device import Allocation, Function
from hlotool.backends.cuda.launch import Launch, located
from hlotool.backends.cuda.memory import Memory, Resident, Storage
from hlotool.backends.cuda.products import Product
from hlotool.backends.numpy.run import Run
from hlotool.errors import BackendFailed
from hlotool.ir.dtypes import dtype_of
from hlotool.ir.module import Instruction


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
