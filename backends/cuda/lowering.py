"""Plans whose steps are generated kernels; the host keeps control flow and what has no kernel.

Calls, branches and loops are the numpy backend's, which frees values at their last use. An operation without
a kernel (sort, custom calls, …) runs on the numpy reference and is counted; a fusion that holds one runs as
one kernel per instruction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from hlotool.analysis.custom_calls import ANNOTATIONS
from hlotool.backends.cuda.codegen.elements import NotGenerated
from hlotool.backends.cuda.codegen.partition import KernelProgram, of_fusion, of_instruction
from hlotool.backends.cuda.codegen.schedules import Kernel
from hlotool.backends.cuda.machine import Loading
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.registry import Kernel as Step
from hlotool.ir.devices import ONE_DEVICE, DeviceGrid
from hlotool.ir.module import Instruction, Module
from hlotool.ir.opcodes import Class, Trait, opcodes_with
from hlotool.ir.types import array_shapes

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
