"""A fusion as kernels: one, and one more for each set of long reductions that something else reads.

What is elementwise or moves data is computed where it is read. A long reduction would be repeated for every
element that reads it, so it gets a kernel of its own, and its result lies in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from hlotool.backends.cuda.codegen.elements import NotGenerated, array_shape
from hlotool.backends.cuda.codegen.expansion import expanded, leaves_of, parts_of, simplified
from hlotool.backends.cuda.codegen.own_kernels import MAKERS, is_long
from hlotool.backends.cuda.codegen.precision import Precision, widened
from hlotool.backends.cuda.codegen.reductions import combiner
from hlotool.backends.cuda.codegen.rules import OPCODES
from hlotool.backends.cuda.codegen.schedules import Kernel, loop, update
from hlotool.backends.cuda.codegen.trees import SERIAL, Geometry, geometry, reduction
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.types import ArrayShape, TupleShape


@dataclass(frozen=True, slots=True)
class Program:
    """Kernels in the order in which they run.

    Attributes:
        inputs: values that come from outside.
        outputs: values that go there, in the order of the result's leaves.
        kernels: what computes them; each writes what later ones read.
        is_tuple: the result is a tuple of the outputs, not the only one of them.
        seen: instructions that a probe sees, and what kernels write of them besides.
    """

    inputs: tuple[Instruction, ...]
    outputs: tuple[Instruction, ...]
    kernels: tuple[Kernel, ...]
    is_tuple: bool
    seen: Mapping[Instruction, Instruction] = field(default_factory=dict)


def of_fusion(
    computation: Computation, is_probed: bool = False, precision: Precision = Precision.HLO
) -> Program:
    """The kernels of a fused computation; its parameters are the inputs.

    Args:
        computation: that the fusion calls.
        is_probed: kernels write the values of all instructions inside, too.
        precision: of floats narrower than f32 between the operations.

    Raises:
        NotGenerated: something in it cannot be written.
    """
    parameters = computation.parameters
    if precision is Precision.WIDE:
        values, outputs = widened(computation)
    else:
        values = expanded(computation, parameters)
        outputs = leaves_of(values[computation.root])
    seen = {i: v for i, v in values.items() if _can_be_seen(i) and isinstance(v, Instruction)}
    return _program(computation.root, outputs, tuple(parameters), seen if is_probed else {})


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
    outputs = leaves_of(simplified(instruction, instruction.operands))
    return _program(instruction, outputs, tuple(dict.fromkeys(instruction.operands)), {})


def _program(
    root: Instruction,
    outputs: Sequence[Instruction],
    inputs: tuple[Instruction, ...],
    seen: Mapping[Instruction, Instruction],
) -> Program:
    is_tuple = isinstance(root.shape, TupleShape)
    if isinstance(root.shape, TupleShape) and any(isinstance(e, TupleShape) for e in root.shape.elements):
        raise NotGenerated("a tuple of tuples", root)
    copies = {o: _copy(o) for o in (*outputs, *seen.values()) if o in inputs or o.opcode == "constant"}
    outputs = tuple(copies.get(o, o) for o in outputs)
    seen = {i: copies.get(place, place) for i, place in seen.items()}
    builder = _Builder([*outputs, *seen.values()], inputs)
    return Program(inputs, outputs, tuple(builder.kernels()), is_tuple, seen)


def _copy(instruction: Instruction) -> Instruction:
    """What is given out of a program lies in memory of its own."""
    return Instruction(
        f"{instruction.name}.copy", "copy", instruction.shape, (instruction,), line=instruction.line
    )


@dataclass(slots=True)
class _Group:
    """Reductions that one kernel does, or one operation of another kind (it has no geometry)."""

    geometry: Geometry | None
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
            parts = [part for r in group.members for part in parts_of(r, self._takers(r, order))]
            made += self._of_group(group.members, parts)
            self._available.update(dict.fromkeys(parts))
        written = {output for kernel in made for output in kernel.outputs}
        if left := [output for output in self._outputs if output not in written]:
            made.append(self._elementwise(left))
        return made

    def _of_group(self, members: Sequence[Instruction], parts: Sequence[Instruction]) -> list[Kernel]:
        inputs = self._inputs([operand for r in members for operand in r.operands])
        if (made := MAKERS.get(members[0].opcode)) is not None:
            return made(members[0], parts, inputs)
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

    def _takers(self, reduced: Instruction, order: Iterable[Instruction]) -> dict[int, Instruction]:
        """What takes out the results of an instruction, by number."""
        takers = [i for i in order if i.operands[:1] == (reduced,) and i.opcode == "get-tuple-element"]
        return {n: i for i in takers if isinstance(n := i.attributes["index"], int)}

    def _groups(self, order: Sequence[Instruction]) -> list[_Group]:
        """Long reductions; those of equal geometry together, unless one needs what the other computes."""
        groups: list[_Group] = []
        depth: dict[Instruction, int] = {}
        for instruction in order:
            operands = () if self._in_memory(instruction) else instruction.operands
            depth[instruction] = max((depth[o] for o in operands), default=0)
            if self._in_memory(instruction):
                continue
            if instruction.opcode in MAKERS and is_long(instruction):
                groups.append(_Group(None, [instruction]))
                depth[instruction] = len(groups)
            if instruction.opcode != "reduce" or (shape := geometry(instruction)).length <= SERIAL:
                continue
            first = depth[instruction]
            joined = next((n for n in range(first, len(groups)) if groups[n].geometry == shape), len(groups))
            if joined == len(groups):
                groups.append(_Group(shape))
            groups[joined].members.append(instruction)
            depth[instruction] = joined + 1
        return groups
