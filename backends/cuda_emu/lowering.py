"""Plans whose steps are generated kernels; the host keeps control flow and what has no kernel.

Calls, branches and loops are the numpy backend's, which frees buffers at their last use. An operation without
a kernel (dot, sort, convolution, custom calls, …) runs on the numpy reference and is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from hlotool.backends.cuda.codegen.elements import NotGenerated
from hlotool.backends.cuda.codegen.elementwise import ELEMENTWISE
from hlotool.backends.cuda.codegen.emit import RULES
from hlotool.backends.cuda.codegen.partition import Program, of_fusion, of_instruction
from hlotool.backends.cuda.codegen.schedules import Kernel
from hlotool.backends.cuda_emu.build import Builder, Launcher
from hlotool.backends.cuda_emu.launch import Launch
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.registry import Calling
from hlotool.backends.numpy.registry import Kernel as HostKernel
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.types import ArrayShape, leaves

#: What moves no data, or only runs other computations: no work for a kernel.
_ON_HOST = frozenset(
    {
        "add-dependency", "after-all", "bitcast", "call", "conditional", "copy", "copy-done", "copy-start",
        "domain", "get-tuple-element", "opt-barrier", "reshape", "tuple", "while",
    }
)  # fmt: skip


class KernelLowering(Lowering):
    """Compiles the computations of one module to kernels.

    Attributes:
        kernels: generated so far, for all computations.
        launchers: the compiled kernels; empty until `build` is called.
        fallbacks: what the host executes, by opcode, and how many there are of each.
        fallback_bytes: that these read and write when each runs once.
    """

    def __init__(self, module: Module) -> None:
        super().__init__(module)
        self.kernels: list[Kernel] = []
        self.launchers: dict[str, Launcher] = {}
        self.fallbacks: Counter[str] = Counter()
        self.fallback_bytes = 0
        self._host = Lowering(module)

    def build(self, builder: Builder) -> None:
        """Compile all kernels."""
        self.launchers.update(builder.load(self.kernels))

    def kernel(self, instruction: Instruction) -> HostKernel:
        """A launch of generated kernels; the host's kernel where there is none."""
        if instruction.opcode in _ON_HOST:
            return super().kernel(instruction)
        try:
            program = _program(instruction)
        except NotGenerated:
            return self._fall_back(instruction)
        self.kernels += program.kernels
        positions = list(range(len(program.inputs)))
        if instruction.opcode != "fusion":
            positions = [instruction.operands.index(i) for i in program.inputs]
        return Calling(Launch(program, positions, self.launchers))

    def _fall_back(self, instruction: Instruction) -> HostKernel:
        kernel = self._host.kernel(instruction)
        self.fallbacks[instruction.opcode] += 1
        self.fallback_bytes += _bytes([instruction, *instruction.operands])
        return kernel


def _program(instruction: Instruction) -> Program:
    if instruction.opcode == "fusion":
        (computation,) = (c for c in instruction.called if isinstance(c, Computation))
        return of_fusion(computation)
    if instruction.opcode not in ELEMENTWISE and instruction.opcode not in RULES:
        raise NotGenerated("kernels do not know this operation", instruction)
    return of_instruction(instruction)


def _bytes(instructions: Iterable[Instruction]) -> int:
    shapes = (shape for instruction in instructions for _, shape in leaves(instruction.shape))
    return sum(shape.byte_size for shape in shapes if isinstance(shape, ArrayShape))
