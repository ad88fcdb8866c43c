"""A fusion as kernels: one, and one more for each set of long reductions that something else reads.

What is elementwise or moves data is computed where it is read. A long reduction would be repeated for every
element that reads it, so it gets a kernel of its own, and its result lies in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from hlotool.backends.cuda.codegen.elements import NotGenerated, array_shape
from hlotool.backends.cuda.codegen.reductions import combiner
from hlotool.backends.cuda.codegen.rules import OPCODES
from hlotool.backends.cuda.codegen.schedules import Kernel, loop, update
from hlotool.backends.cuda.codegen.trees import SERIAL, Geometry, geometry, reduction
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.types import ArrayShape, Shape, TupleShape


@dataclass(frozen=True, slots=True)
class Program:
    """Kernels in the order in which they run.

    Attributes:
        inputs: values that come from outside.
        outputs: values that go there, in the order of the result's leaves.
        kernels: what computes them; each writes what later ones read.
        is_tuple: the result is a tuple of the outputs, not the only one of them.
        seen: what kernels write besides, for a probe.
    """

    inputs: tuple[Instruction, ...]
    outputs: tuple[Instruction, ...]
    kernels: tuple[Kernel, ...]
    is_tuple: bool
    seen: tuple[Instruction, ...] = ()


def of_fusion(computation: Computation, is_probed: bool = False) -> Program:
    """The kernels of a fused computation; its parameters are the inputs.

    Args:
        computation: that the fusion calls.
        is_probed: kernels write the values of all instructions inside, too.

    Raises:
        NotGenerated: something in it cannot be written.
    """
    seen = tuple(filter(_can_be_seen, computation.instructions)) if is_probed else ()
    return _program(computation.root, tuple(computation.parameters), seen)


def _can_be_seen(instruction: Instruction) -> bool:
    """Whether a fused instruction has a value that is an array and not known anyway."""
    is_source = instruction.opcode in ("parameter", "constant")
    return isinstance(instruction.shape, ArrayShape) and not is_source


def of_instruction(instruction: Instruction) -> Program:
    """The kernels of a single operation; its operands are the inputs.

    Raises:
        NotGenerated: it cannot be written.
    """
    if instruction.opcode not in OPCODES:
        raise NotGenerated("kernels do not know this operation", instruction)
    return _program(instruction, tuple(dict.fromkeys(instruction.operands)))


def _program(
    root: Instruction, inputs: tuple[Instruction, ...], seen: tuple[Instruction, ...] = ()
) -> Program:
    is_tuple = isinstance(root.shape, TupleShape)
    if root.opcode == "tuple":
        outputs = root.operands
    else:
        outputs = tuple(_parts(root, ())) if is_tuple else (root,)
    builder = _Builder([*outputs, *seen], inputs)
    return Program(inputs, outputs, tuple(builder.kernels()), is_tuple, seen)


def _parts(instruction: Instruction, known: Iterable[Instruction]) -> list[Instruction]:
    """The results of an operation with several, as those that take it apart, or made up where nobody does."""
    if not isinstance(instruction.shape, TupleShape):
        return [instruction]
    takers = {i.attributes["index"]: i for i in known if i.opcode == "get-tuple-element"}
    shapes = enumerate(instruction.shape.elements)
    return [takers.get(number) or _part(instruction, number, shape) for number, shape in shapes]


def _part(instruction: Instruction, number: int, shape: Shape) -> Instruction:
    name = f"{instruction.name}.{number}"
    index = {"index": number}
    return Instruction(name, "get-tuple-element", shape, (instruction,), index, line=instruction.line)


@dataclass(slots=True)
class _Group:
    """Reductions that one kernel does."""

    geometry: Geometry
    members: list[Instruction] = field(default_factory=list)


class _Builder:
    """Finds the long reductions of one program and writes all kernels."""

    def __init__(self, outputs: Sequence[Instruction], inputs: Sequence[Instruction]) -> None:
        self._outputs = tuple(dict.fromkeys(outputs))
        self._available = dict.fromkeys(inputs)

    def kernels(self) -> list[Kernel]:
        """In the order of execution."""
        order = self._needed(self._outputs)
        made: list[Kernel] = []
        for group in self._groups(order):
            parts = [part for r in group.members for part in _parts(r, self._takers(r, order))]
            made += self._reduce(group.members, parts)
            self._available.update(dict.fromkeys(parts))
        written = {output for kernel in made for output in kernel.outputs}
        if left := [output for output in self._outputs if output not in written]:
            made.append(self._elementwise(left))
        return made

    def _reduce(self, members: Sequence[Instruction], parts: Sequence[Instruction]) -> list[Kernel]:
        inputs = self._inputs([operand for r in members for operand in r.operands])
        if all(combiner(r).monoids is not None for r in members):
            return reduction(parts, members, inputs)
        return [loop(parts, inputs)]

    def _elementwise(self, outputs: Sequence[Instruction]) -> Kernel:
        root = outputs[0]
        if len(outputs) == 1 and root.opcode == "dynamic-update-slice":
            inputs = self._inputs(root.operands[1:])
            if root.operands[0] in self._available and root.operands[0] not in inputs:
                return update(root, inputs)
        return loop(outputs, self._inputs(outputs))

    def _needed(self, roots: Iterable[Instruction]) -> list[Instruction]:
        """What computes the roots from what is available, operands first; ends at values in memory."""
        order: dict[Instruction, None] = {}
        pending = [(root, False) for root in roots]
        while pending:
            instruction, is_left = pending.pop()
            if is_left:
                order[instruction] = None
            elif instruction not in order:
                pending.append((instruction, True))
                if not self._in_memory(instruction):
                    pending += [(operand, False) for operand in instruction.operands]
        return list(order)

    def _in_memory(self, instruction: Instruction) -> bool:
        """Whether a kernel reads it from a buffer; constants that are arrays have one, too."""
        is_constant = instruction.opcode == "constant" and array_shape(instruction).rank > 0
        return is_constant or instruction in self._available

    def _inputs(self, roots: Iterable[Instruction]) -> list[Instruction]:
        return [i for i in self._needed(roots) if self._in_memory(i)]

    def _takers(self, reduced: Instruction, order: Iterable[Instruction]) -> list[Instruction]:
        return [i for i in order if i.operands[:1] == (reduced,)]

    def _groups(self, order: Sequence[Instruction]) -> list[_Group]:
        """Long reductions; those of equal geometry together, unless one needs what the other computes."""
        groups: list[_Group] = []
        depth: dict[Instruction, int] = {}
        for instruction in order:
            operands = () if self._in_memory(instruction) else instruction.operands
            depth[instruction] = max((depth[o] for o in operands), default=0)
            if instruction.opcode != "reduce" or self._in_memory(instruction):
                continue
            shape = geometry(instruction)
            if shape.length <= SERIAL:
                continue
            first = depth[instruction]
            joined = next((n for n in range(first, len(groups)) if groups[n].geometry == shape), len(groups))
            if joined == len(groups):
                groups.append(_Group(shape))
            groups[joined].members.append(instruction)
            depth[instruction] = joined + 1
        return groups
