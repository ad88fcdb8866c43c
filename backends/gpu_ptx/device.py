"""The memory of one execution: buffers as the compiler assigned them, and the values in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

import numpy as np

from hlotool.backends.base import TOKEN, Value
from hlotool.backends.gpu_ptx.assignment import Assignment, Slice
from hlotool.backends.gpu_ptx.images import array_in, image_of
from hlotool.backends.gpu_ptx.memory import Memory
from hlotool.errors import ElidedConstant
from hlotool.ir.arrays import Array, dtype_of, flatten, unflatten
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ArrayShape, ShapeIndex, leaves


class Device:
    """The memory of a GPU in which a program runs once; nothing of it was written but constants.

    Args:
        module: the program.
        assignment: where its values lie.

    Attributes:
        memory: what kernels read and write.

    Raises:
        Unsupported: a constant whose place or value is not known.
    """

    def __init__(self, module: Module, assignment: Assignment) -> None:
        self.memory = Memory()
        self._assignment = assignment
        self._addresses = {
            each.number: self.memory.allocate(each.size)
            for each in assignment.allocations.values()
            if not each.is_in_kernels
        }
        for instruction in module.instructions():
            if instruction.opcode == "constant" and self._is_placed(instruction):
                self._write_constant(module, instruction)

    def _is_placed(self, constant: Instruction) -> bool:
        place = self._assignment.defined(constant.name)
        return place is not None and self._assignment.allocations[place.allocation].is_constant

    def _write_constant(self, module: Module, constant: Instruction) -> None:
        literal = constant.literal
        if literal is None or literal.elided:
            raise ElidedConstant(constant.name, module.location(constant))
        self.write(constant, literal.array)

    def address(self, place: Slice) -> int:
        """Where a slice begins."""
        return self._addresses[place.allocation] + place.offset

    def slices(self, instruction: Instruction) -> list[Slice]:
        """Where the arrays of a result lie; raises Unsupported where the dump does not say."""
        return self._assignment.slices_of(instruction)

    def write(self, instruction: Instruction, value: Value) -> None:
        """Put a value where the result of an instruction lies.

        Raises:
            Unsupported: the dump does not say where that is, or its shape has none.
        """
        for index, shape, part in flatten(instruction.shape, value):
            if isinstance(shape, ArrayShape) and shape.size:
                array = np.asarray(part, dtype_of(shape.element_type)).reshape(shape.dims)
                place = self._assignment.slice_of(instruction, index)
                self.memory.write(self.address(place), image_of(array, shape))

    def read(self, instruction: Instruction) -> Value:
        """The value that lies where the result of an instruction does; raises as `write`."""
        parts = [
            self._array(instruction, index, shape) if isinstance(shape, ArrayShape) else TOKEN
            for index, shape in leaves(instruction.shape)
        ]
        return cast(Value, unflatten(instruction.shape, parts))

    def _array(self, instruction: Instruction, index: ShapeIndex, shape: ArrayShape) -> Array:
        if not shape.size:
            return np.zeros(shape.dims, dtype_of(shape.element_type))
        place = self._assignment.slice_of(instruction, index)
        return array_in(self.memory.read(self.address(place), place.size).tobytes(), shape)

    def unwritten(self, instruction: Instruction) -> bool:
        """Whether nothing has ever written some byte of a result."""
        return any(
            not self.memory.written(self.address(place), place.size).all()
            for place in self.slices(instruction)
        )

    def zero(self, place: Slice) -> None:
        """Fill a slice with zeros."""
        self.memory.write(self.address(place), bytes(place.size))

    def copy(self, source: Slice, target: Slice) -> None:
        """Copy the bytes of a slice; those that were never written stay so."""
        size = min(source.size, target.size)
        begin, to = self.address(source), self.address(target)
        written = self.memory.written(begin, size)
        self.memory.write(to, self.memory.read(begin, size))
        for first, last in _runs(~written):
            self.memory.forget(to + first, last - first)


def _runs(mask: Array) -> Iterator[Sequence[int]]:
    """Beginning and end of each run of True."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], mask, [False]))))
    yield from edges.reshape(-1, 2).tolist()
