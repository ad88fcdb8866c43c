"""The memory of one execution: buffers as the compiler assigned them, and the values in them.

Behind each buffer are bytes that may be read, as XLA's kernels do: a thread that has nothing to do loads
before it asks whether it has. What is read there, and what was never written, are the bytes 0xCD: a result
that depends on them is wrong. Nothing may be written there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from hlotool.backends.base import TOKEN, Value
from hlotool.backends.gpu_ptx.assignment import Allocation, Assignment, Slice
from hlotool.backends.gpu_ptx.images import array_in, image_of
from hlotool.backends.gpu_ptx.memory import Memory
from hlotool.backends.numpy.lockstep import Device as Place
from hlotool.errors import ElidedConstant
from hlotool.ir.arrays import Array, dtype_of, flatten, unflatten
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ArrayShape, ShapeIndex, leaves

#: Bytes behind each buffer: a block of 1024 threads that load words.
_BEHIND = 4096
#: What `Memory` fills new buffers with.
_NEVER_WRITTEN = 0xCD


class Device:
    """The memory of a GPU in which a program runs once; nothing of it was written but constants.

    Args:
        module: the program.
        assignment: where its values lie.
        place: which of several devices it is; None where there is one.

    Attributes:
        memory: what kernels read and write.
        place: as given.

    Raises:
        Unsupported: a constant whose place or value is not known.
    """

    def __init__(self, module: Module, assignment: Assignment, place: Place | None = None) -> None:
        self.place = place
        self.memory = Memory(check_uninitialised=False)
        self._assignment = assignment
        self._addresses = {
            each.number: self.memory.allocate(each.size + _BEHIND)
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

    def overrun(self) -> Allocation | None:
        """The first buffer behind which something was written."""
        for number, address in self._addresses.items():
            size = self._assignment.allocations[number].size
            if (self.memory.read(address + size, _BEHIND) != _NEVER_WRITTEN).any():
                return self._assignment.allocations[number]
        return None

    def address(self, place: Slice) -> int:
        """Where a slice begins."""
        return self._addresses[place.allocation] + place.offset

    def span(self, places: Sequence[Slice]) -> tuple[int, int]:
        """Addresses between which all of these slices lie."""
        begins = [self.address(place) for place in places]
        return min(begins), max(begin + place.size for begin, place in zip(begins, places))

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

    def zero(self, place: Slice) -> None:
        """Fill a slice with zeros."""
        self.memory.write(self.address(place), bytes(place.size))

    def copy(self, source: Slice, target: Slice) -> None:
        """Copy the bytes of a slice."""
        content = self.memory.read(self.address(source), min(source.size, target.size))
        self.memory.write(self.address(target), content)
