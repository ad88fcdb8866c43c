"""A dot as a step of a plan that has cuBLAS compute it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from hlotool.backends.cuda.codegen.partition import of_instruction
from hlotool.backends.cuda.codegen.schedules import Kernel
from hlotool.backends.cuda.cublas import Cublas
from hlotool.backends.cuda.device import Allocation, Function
from hlotool.backends.cuda.launch import Launch, located
from hlotool.backends.cuda.memory import Memory, Resident, Storage
from hlotool.backends.cuda.products import Product, Stack
from hlotool.backends.numpy.run import Run
from hlotool.errors import BackendFailed
from hlotool.ir.dtypes import dtype_of
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape


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
        self._arranged = [
            _arranged(instruction, n, stack) for n, stack in enumerate((product.left, product.right))
        ]
        programs = [None if moved is None else of_instruction(moved) for moved in self._arranged]
        self._launches = [
            None
            if moved is None or program is None
            else Launch(memory, moved, program, [0], functions, waits)
            for moved, program in zip(self._arranged, programs)
        ]
        self.kernels: list[Kernel] = [k for program in programs if program for k in program.kernels]

    def __call__(self, values: list[Any], run: Run) -> Resident:
        try:
            result = self._multiplied(values)
        except BackendFailed as error:
            raise located(error, self._instruction) from error
        values.clear()
        storage = Storage(self._memory, self._size, allocation=result)
        return Resident(storage, self._shape.dims, np.dtype(dtype_of(self._shape.element_type)))

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
    def _shape(self) -> ArrayShape:
        assert isinstance(self._instruction.shape, ArrayShape)
        return self._instruction.shape

    @cached_property
    def _size(self) -> int:
        """Bytes of the result."""
        return self._shape.size * dtype_of(self._shape.element_type).itemsize


def _arranged(dot: Instruction, number: int, stack: Stack) -> Instruction | None:
    """The transposition that an operand needs first, if any."""
    operand = dot.operands[number]
    if stack.order is None or not isinstance(operand.shape, ArrayShape):
        return None
    dims = tuple(operand.shape.dims[d] for d in stack.order)
    shape = replace(operand.shape, dims=dims, layout=None)
    attributes = {"dimensions": stack.order}
    return Instruction(dot.name, "transpose", shape, (operand,), attributes, line=dot.line)
