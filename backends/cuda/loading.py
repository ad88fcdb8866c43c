"""The kernels of one module on a GPU, and the steps that run them or have the host run something instead."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from hlotool.backends.base import Value
from hlotool.backends.cuda.codegen.elements import NotGenerated
from hlotool.backends.cuda.codegen.partition import KernelProgram, of_instruction
from hlotool.backends.cuda.codegen.schedules import Kernel
from hlotool.backends.cuda.cublas import Cublas
from hlotool.backends.cuda.device import MAX_BLOCKS, Allocation, Function
from hlotool.backends.cuda.launch import Launch, located
from hlotool.backends.cuda.memory import Memory, Resident, Storage, to_arrays, to_residents
from hlotool.backends.cuda.products import Product, product_of
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.plan import Plan
from hlotool.backends.numpy.registry import Calling, Reading
from hlotool.backends.numpy.registry import Kernel as Step
from hlotool.backends.numpy.run import Run
from hlotool.errors import BackendFailed
from hlotool.ir.dtypes import dtype_of
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, ElementType

if TYPE_CHECKING:
    from hlotool.backends.cuda.backend import CudaBackend


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
