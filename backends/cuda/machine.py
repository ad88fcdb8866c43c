"""What runs generated kernels, a GPU or the CPU that emulates one; values on the device; plans.

A `Resident` is an array; its `Storage` is the memory behind it, which arrays of other dimensions share. What
is valid where is known, and nothing is copied twice. Memory goes back to the pool when the last array that
needs it is gone. Where the device is full, memory that has not been used for longest moves to the host.

The host keeps control flow and what has no kernel.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, Protocol
from weakref import WeakSet

import numpy as np

from hlotool.backends.base import Token, Value
from hlotool.backends.cuda.codegen.elements import NotGenerated
from hlotool.backends.cuda.codegen.expansion import Precision
from hlotool.backends.cuda.codegen.partition import KernelProgram, of_fusion, of_instruction
from hlotool.backends.cuda.codegen.schedules import Kernel
from hlotool.backends.cuda.device import Allocation, Device
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.plan import Plan, Run
from hlotool.backends.numpy.registry import Kernel as Step
from hlotool.errors import BackendOutOfMemory
from hlotool.facts.recognition import ANNOTATIONS
from hlotool.ir.arrays import Array
from hlotool.ir.devices import ONE_DEVICE, DeviceGrid
from hlotool.ir.module import Instruction, Module
from hlotool.ir.opcodes import Class, Trait, opcodes_with
from hlotool.ir.types import array_shapes
from hlotool.system.user_input import size_text


class Memory:
    """The memory of a device as far as values live in it.

    Attributes:
        device: whose it is.
        moved: bytes moved so far because the host executed something.
        spilled: bytes moved so far because the device was full.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self.moved = 0
        self.spilled = 0
        self._held: WeakSet[Storage] = WeakSet()
        self._clock = 0
        self._lock = threading.Lock()

    def allocate(self, size: int) -> Allocation:
        """Memory on the device; other values move to the host if they must.

        Raises:
            BackendOutOfMemory: even that is not enough.
        """
        try:
            return self.device.allocate(size)
        except BackendOutOfMemory as error:
            refusal = error
        while self._spill(size):
            try:
                return self.device.allocate(size)
            except BackendOutOfMemory as error:
                refusal = error
        left, total = map(size_text, (self.device.free_memory(), self.device.memory))
        raise BackendOutOfMemory(
            "cuda",
            f"a buffer of {size_text(size)} does not fit on the device, which has {left} of {total} left "
            "with everything on the host that is not in use",
        ) from refusal

    def hold(self, storage: Storage) -> None:
        """Say that a value has come to the device."""
        with self._lock:
            self._held.add(storage)

    def tick(self) -> int:
        """The time, for telling what was used before what."""
        self._clock += 1
        return self._clock

    def _spill(self, size: int) -> int:
        """Free at least so many bytes, if there are so many; copies first that need not be moved."""
        with self._lock:
            candidates = [storage for storage in self._held if storage.is_on_device]
        candidates.sort(key=lambda storage: (not storage.is_on_host, storage.used))
        freed = 0
        for storage in candidates:
            if freed >= size:
                break
            freed += storage.size
            self.spilled += 0 if storage.is_on_host else storage.size
            storage.leave_device()
        return freed


class Storage:
    """The bytes of an array, on the host, on the device, or on both.

    Args:
        memory: of the device.
        size: in bytes.
        host: the bytes, if they are on the host; they are never written to.
        allocation: the memory on the device, if they are there.

    Attributes:
        size: in bytes.
        used: when it was last used on the device, on the clock of `Memory`.
        is_of_host_step: it was computed on the host for want of a kernel.
    """

    __slots__ = ("__weakref__", "_allocation", "_host", "_memory", "is_of_host_step", "size", "used")

    def __init__(
        self, memory: Memory, size: int, host: Array | None = None, allocation: Allocation | None = None
    ) -> None:
        self.size = size
        self.used = memory.tick()
        self.is_of_host_step = False
        self._memory = memory
        self._host = host
        self._allocation = allocation
        if allocation is not None:
            memory.hold(self)

    @property
    def is_on_host(self) -> bool:
        """Whether the host has a valid copy."""
        return self._host is not None

    @property
    def is_on_device(self) -> bool:
        """Whether the device has a valid copy."""
        return self._allocation is not None

    def on_device(self) -> Allocation:
        """Its memory on the device, filled before if need be."""
        self.used = self._memory.tick()
        if self._allocation is None:
            allocation = self._memory.allocate(self.size)
            if self.size:
                self._memory.device.upload(allocation, self.on_host())
            if self.is_of_host_step:
                self._memory.moved += self.size
            self._allocation = allocation
            self._memory.hold(self)
        return self._allocation

    def on_host(self, for_host_step: bool = False) -> Array:
        """Its bytes on the host, brought down if need be.

        Args:
            for_host_step: because the host is to compute with them.
        """
        if self._host is None:
            host = np.empty(self.size, np.uint8)
            if self.size:
                self._memory.device.download(host, self._allocation)
            if for_host_step:
                self._memory.moved += self.size
            self._host = host
        return self._host

    def leave_device(self) -> None:
        """Give up the copy on the device; the host has one afterwards."""
        self.on_host()
        self._allocation = None


class Resident:
    """An array of a plan, in row-major order, wherever it lies.

    Args:
        storage: its memory.
        dims: its actual dimensions.
        dtype: of its elements.
    """

    __slots__ = ("dims", "dtype", "storage")

    def __init__(self, storage: Storage, dims: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.storage = storage
        self.dims = dims
        self.dtype = dtype

    def array(self, for_host_step: bool = False) -> Any:
        """The values as a NumPy array, or as a NumPy scalar without dimensions; see `Storage.on_host`."""
        array = self.storage.on_host(for_host_step).view(self.dtype).reshape(self.dims)
        return array if self.dims else array[()]

    def viewed(self, dims: tuple[int, ...], dtype: np.dtype[Any]) -> Resident:
        """The same bytes as an array of other dimensions."""
        return Resident(self.storage, dims, dtype)

    # Loops and branches of the numpy backend ask their predicates so: only they come down.
    def __bool__(self) -> bool:
        return bool(self.array())

    def __int__(self) -> int:
        return int(self.array())

    __index__ = __int__


def to_residents(value: Any, memory: Memory, is_of_host_step: bool = False) -> Any:
    """A value of the numpy backend as a plan on the device holds it."""
    if isinstance(value, tuple):
        return tuple(to_residents(part, memory, is_of_host_step) for part in value)
    if isinstance(value, (Token, Resident)):
        return value
    array = np.asarray(value)
    raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    storage = Storage(memory, raw.nbytes, raw)
    storage.is_of_host_step = is_of_host_step
    return Resident(storage, array.shape, array.dtype)


def to_arrays(value: Any, for_host_step: bool = False) -> Any:
    """A value of a plan on the device as NumPy arrays; tokens stay what they are."""
    if isinstance(value, tuple):
        return tuple(to_arrays(part, for_host_step) for part in value)
    return value.array(for_host_step) if isinstance(value, Resident) else value


def owns_item(values: list[Any], position: int) -> bool:
    """Whether the list holds the only reference to an array, and the array the only one to its memory."""
    return _references(values, position) <= _exclusive_references()


def _references(values: list[Any], position: int) -> int:
    return max(sys.getrefcount(values[position]), sys.getrefcount(values[position].storage))


@cache
def _exclusive_references() -> int:
    """What `_references` says of an array that only the list holds."""
    return _references([Resident(Storage.__new__(Storage), (), np.dtype(np.uint8))], 0)


class Loading(Protocol):
    """The part of a machine that belongs to one compiled module.

    Attributes:
        precision: of narrow floats inside of fusions.
    """

    precision: Precision

    @property
    def moved(self) -> int | None:
        """Bytes that the last run moved for what the host executes; None where memory is shared."""

    def build(self, kernels: Iterable[Kernel]) -> None:
        """Compile and load what the steps made so far launch.

        Raises:
            BackendCrashed: the compiler refuses a kernel.
            BackendTimeout: it takes too long.
        """

    def launch(self, instruction: Instruction, program: KernelProgram, positions: Sequence[int]) -> Step:
        """The step that runs a program.

        Args:
            instruction: that it executes.
            program: its kernels.
            positions: for each input of the program the number of the operand that it is.

        Raises:
            NotGenerated: the machine cannot run it.
        """

    def library_call(self, instruction: Instruction, host: Lowering) -> tuple[Step, Sequence[Kernel]] | None:
        """The step that has a library compute it, and the kernels that it launches besides.

        Args:
            instruction: what is to be computed.
            host: makes steps of the numpy backend.

        Returns:
            None where generated kernels are to do it.
        """

    def same_data(self, instruction: Instruction, step: Step) -> Step | None:
        """The step of an operation that moves no data (reshape, bitcast, copy).

        Args:
            instruction: such an operation.
            step: what the numpy backend does.

        Returns:
            None where a kernel has to move data after all.
        """

    def fall_back(self, step: Step) -> Step:
        """The step that has the host execute `step` of the numpy backend."""

    def constant(self, value: Any) -> Any:
        """What a slot holds of a constant."""

    def begin(self) -> None:
        """A run begins: `moved` counts from here."""

    def run(self, plan: Plan, arguments: Sequence[Any], run: Run) -> Value:
        """Execute a plan in this thread; arguments and result are NumPy arrays, and so is what probes see."""


class SharedMemory:
    """What a machine does whose values are the numpy backend's: nothing moves."""

    moved: int | None = None

    def same_data(self, instruction: Instruction, step: Step) -> Step | None:
        return step

    def fall_back(self, step: Step) -> Step:
        return step

    def constant(self, value: Any) -> Any:
        return value

    def begin(self) -> None:
        pass


class Machine(Protocol):
    """Where kernels run."""

    def loading(self) -> Loading:
        """The part of it that belongs to one module."""


#: What only runs other computations, or orders and regroups values.
_CONTROL = opcodes_with(Trait.FORWARDS, Trait.ORDERS, Trait.ASYNC, Trait.CONTROL_FLOW, Class.TUPLE) | {
    "copy-done",
    "copy-start",
}

#: What gives the same data another shape.
_SAME_DATA = opcodes_with(Trait.SAME_ORDER)


class KernelLowering(Lowering):
    """Compiles the computations of one module to kernels.

    Args:
        module: what to compile.
        loading: makes the steps, and runs them.
        is_probed: the values inside of fusions are to be seen, too.
        grid: the devices that will execute it.

    Attributes:
        kernels: generated so far, for all computations.
        fallbacks: what the host executes, by opcode, and how many there are of each.
        fallback_bytes: that these read and write when each runs once.
    """

    def __init__(
        self, module: Module, loading: Loading, is_probed: bool = False, grid: DeviceGrid = ONE_DEVICE
    ) -> None:
        super().__init__(module, grid)
        self.kernels: list[Kernel] = []
        self.fallbacks: Counter[str] = Counter()
        self.fallback_bytes = 0
        self._loading = loading
        self._is_probed = is_probed
        self._host = Lowering(module, grid)

    def kernel(self, instruction: Instruction) -> Step:
        """A launch of generated kernels; the host's kernel where there is none."""
        if instruction.opcode in _CONTROL or instruction.attributes.get("custom_call_target") in ANNOTATIONS:
            return super().kernel(instruction)
        if instruction.opcode in _SAME_DATA:
            step = self._loading.same_data(instruction, super().kernel(instruction))
            if step is not None:
                return step
        if (call := self._loading.library_call(instruction, self._host)) is not None:
            step, kernels = call
            self.kernels += kernels
            return step
        try:
            return self._launch(instruction)
        except NotGenerated:
            if instruction.opcode == "fusion":
                return super().kernel(instruction)
            return self._fall_back(instruction)

    def _launch(self, instruction: Instruction) -> Step:
        program = self._program(instruction)
        positions = list(range(len(program.inputs)))
        if instruction.opcode != "fusion":
            positions = [instruction.operands.index(i) for i in program.inputs]
        step = self._loading.launch(instruction, program, positions)
        self.kernels += program.kernels
        return step

    def _program(self, instruction: Instruction) -> KernelProgram:
        if instruction.opcode == "fusion":
            return of_fusion(instruction.computation("calls"), self._is_probed, self._loading.precision)
        return of_instruction(instruction)

    def _fall_back(self, instruction: Instruction) -> Step:
        step = self._host.kernel(instruction)
        self.fallbacks[instruction.opcode] += 1
        self.fallback_bytes += _bytes([instruction, *instruction.operands])
        return self._loading.fall_back(step)

    def known_value(self, instruction: Instruction) -> Any:
        """See `Lowering`; constants lie on the device."""
        value = super().known_value(instruction)
        return None if value is None else self._loading.constant(value)


def _bytes(instructions: Iterable[Instruction]) -> int:
    return sum(shape.byte_size for instruction in instructions for shape in array_shapes(instruction.shape))
