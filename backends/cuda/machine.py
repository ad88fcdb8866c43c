"""What runs generated kernels, a GPU or the CPU that emulates one, and the plans whose steps they are.

The host keeps control flow and what has no kernel.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from hlotool.backends.base import Value
from hlotool.backends.cuda.codegen.elements import NotGenerated
from hlotool.backends.cuda.codegen.expansion import Precision
from hlotool.backends.cuda.codegen.partition import KernelProgram, of_fusion, of_instruction
from hlotool.backends.cuda.codegen.schedules import Kernel
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.plan import Plan, Run
from hlotool.backends.numpy.registry import Kernel as Step
from hlotool.facts.recognition import ANNOTATIONS
from hlotool.ir.devices import ONE_DEVICE, DeviceGrid
from hlotool.ir.module import Instruction, Module
from hlotool.ir.opcodes import Class, Trait, opcodes_with
from hlotool.ir.types import array_shapes


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
