"""A fusion as kernels: one, and one more for each set of long reductions that something else reads.

What is elementwise or moves data is computed where it is read. A long reduction would be repeated for every
element that reads it, so it gets a kernel of its own, and its result lies in memory; but reductions of rows
and what is computed along the same rows from their results are one kernel.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from hlotool.backends.cuda.codegen.block_reductions import Choices, State, geometry, reads_rows, states_of
from hlotool.backends.cuda.codegen.elements import NotGenerated, array_shape
from hlotool.backends.cuda.codegen.expansion import (
    Precision,
    expanded,
    leaves_of,
    parts_of,
    simplified,
    widened,
)
from hlotool.backends.cuda.codegen.own_kernels import MAKERS
from hlotool.backends.cuda.codegen.own_kernels import is_long as is_own_kernel
from hlotool.backends.cuda.codegen.product_tiles import transposition
from hlotool.backends.cuda.codegen.reductions import combiner
from hlotool.backends.cuda.codegen.rows import Columns, Rows
from hlotool.backends.cuda.codegen.rules import OPCODES
from hlotool.backends.cuda.codegen.schedules import Kernel, loop, update
from hlotool.backends.numpy.lowering import literal_value
from hlotool.ir.arrays import Array
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.types import ArrayShape, Shape, TupleShape
from hlotool.rewrite.passes.fusion_facts import Geometry


@dataclass(frozen=True, slots=True)
class KernelProgram:
    """Kernels in the order in which they run.

    Attributes:
        inputs: values that come from outside.
        outputs: values that go there, in the order of the result's leaves.
        kernels: what computes them; each writes what later ones read.
        shape: of the result.
        seen: instructions that a probe sees, and what kernels write of them besides.
    """

    inputs: tuple[Instruction, ...]
    outputs: tuple[Instruction, ...]
    kernels: tuple[Kernel, ...]
    shape: Shape
    seen: Mapping[Instruction, Instruction] = field(default_factory=dict)

    @property
    def literals(self) -> dict[Instruction, Array]:
        """The arrays that kernels read and that the text of the program holds."""
        read = (buffer for kernel in self.kernels for buffer in kernel.inputs)
        return {
            buffer: literal_value(buffer.literal)
            for buffer in read
            if isinstance(buffer, Instruction) and buffer.literal is not None
        }

    def packed(self, values: Iterable[Any]) -> Any:
        """The values of the outputs as the one value of the result."""
        return _packed(self.shape, iter(values))


def _packed(shape: Shape, values: Iterator[Any]) -> Any:
    if isinstance(shape, TupleShape):
        return tuple(_packed(element, values) for element in shape.elements)
    return next(values)


def of_fusion(
    computation: Computation, is_probed: bool = False, precision: Precision = Precision.HLO
) -> KernelProgram:
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


def of_instruction(instruction: Instruction) -> KernelProgram:
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
) -> KernelProgram:
    copies = {o: _copy(o) for o in (*outputs, *seen.values()) if o in inputs or o.opcode == "constant"}
    outputs = tuple(copies.get(o, o) for o in outputs)
    seen = {i: copies.get(place, place) for i, place in seen.items()}
    builder = _Builder([*outputs, *seen.values()], inputs)
    try:
        kernels = tuple(builder.kernels())
    except RecursionError as error:
        raise NotGenerated("too many operations wait for each other", root) from error
    return KernelProgram(inputs, outputs, kernels, root.shape, seen)


def _copy(instruction: Instruction) -> Instruction:
    """What is given out of a program lies in memory of its own."""
    return Instruction(
        f"{instruction.name}.copy", "copy", instruction.shape, (instruction,), line=instruction.line
    )


def is_long(reduction: Instruction) -> bool:
    """Whether a reduction is not left to one thread for each result."""
    shape = geometry(reduction)
    return not shape.is_serial and shape.results > 0


#: A choice between more values at once takes more shared memory than there is.
_MOST_CHOSEN = 8


def _is_shared(reduction: Instruction) -> bool:
    """Whether threads may share the elements of a result."""
    combine = combiner(reduction)
    return combine.is_tree or (combine.is_choice and len(combine.kinds) <= _MOST_CHOSEN)


def _are_joined(first: Instruction, second: Instruction) -> bool:
    """Whether one kernel does reductions of one geometry; choices have kernels of their own."""
    one, other = combiner(first), combiner(second)
    return one.is_tree is other.is_tree and not (one.is_choice or other.is_choice)


#: What stands for the results of each reduction.
_Parts: TypeAlias = Mapping[Instruction, Sequence[Instruction]]


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
        """The kernels in the order of execution."""
        order = self._needed(self._outputs)
        groups = self._groups(order)
        parts = {r: parts_of(r, self._takers(r, order)) for group in groups for r in group.members}
        made = self._whole_rows(groups, parts)
        left = list(groups) if made is None else []
        made = made or []
        while left:
            group = left.pop(0)
            made += self._reduce(group, parts, [r for other in left for r in other.members])
            self._available.update(dict.fromkeys(p for r in group.members for p in parts[r]))
        if rest := self._unwritten(made):
            made.append(self._elementwise(rest))
        return made

    def _unwritten(self, made: Iterable[Kernel]) -> list[Instruction]:
        written = {output for kernel in made for output in kernel.outputs}
        return [output for output in self._outputs if output not in written]

    def _whole_rows(self, groups: Sequence[_Group], parts: _Parts) -> list[Kernel] | None:
        """One kernel for all reductions and all that is computed from them, if all are of the same rows."""
        shapes = [group.geometry for group in groups if group.geometry is not None]
        whole = all(shape.has_whole_rows for shape in shapes)
        if not shapes or len(shapes) < len(groups) or not whole:
            return None
        if not all(combiner(r).is_tree for group in groups for r in group.members):
            return None
        rows, length = shapes[0].results, shapes[0].length
        sizes = {array_shape(output).size for output in self._outputs}
        if len({(s.results, s.length) for s in shapes}) > 1 or not sizes <= {rows, rows * length}:
            return None
        states = iter(states_of([r for g in groups for r in g.members], parts))
        stages = [[next(states) for _ in group.members] for group in groups]
        try:
            return Rows(shapes[0], stages, self._inputs(self._outputs), self._outputs).kernels()
        except NotGenerated:
            return None

    def _reduce(self, group: _Group, parts: _Parts, later: Sequence[Instruction]) -> list[Kernel]:
        """The reductions of one geometry, and outputs that only wait for their results."""
        results = [p for r in group.members for p in parts[r]]
        inputs = self._inputs([operand for r in group.members for operand in r.operands])
        if (made := MAKERS.get(group.members[0].opcode)) is not None:
            return made(group.members[0], results, inputs)
        if group.geometry is None or not _is_shared(group.members[0]):
            return [loop(results, inputs)]
        states = states_of(group.members, parts)
        finals = self._finals(group.geometry, group.members)
        if finals:
            others = [o for o in self._outputs if o not in finals]
            known = dict.fromkeys([*self._available, *results])
            needed = self._needed([*others, *(o for r in later for o in r.operands)], known)
            kept = [r for r in results if (r in needed or r in self._outputs) and r not in finals]
            try:
                return self._tree(group.geometry, states, [*kept, *finals])
            except NotGenerated:
                pass
        return self._tree(group.geometry, states, results)

    def _tree(self, shape: Geometry, states: Sequence[State], outputs: Sequence[Instruction]) -> list[Kernel]:
        inputs = self._inputs([*outputs, *(s.reduction for s in states)])
        if not combiner(states[0].reduction).is_tree:
            return Choices(shape, states[0], inputs, outputs).kernels()
        if reads_rows(shape, states, inputs):
            return Rows(shape, [states], inputs, outputs).kernels()
        return Columns(shape, states, inputs, outputs).kernels()

    def _finals(self, shape: Geometry, members: Sequence[Instruction]) -> list[Instruction]:
        """Outputs of one element for each result that need no other long reduction."""
        mine = set(members)
        found = []
        for output in self._outputs:
            waits_for = {i for i in self._needed([output]) if self._is_group_member(i)}
            if array_shape(output).size == shape.results and waits_for and waits_for <= mine:
                found.append(output)
        return found

    def _is_group_member(self, instruction: Instruction) -> bool:
        """Whether it is computed by itself, not where it is read."""
        if self._in_memory(instruction):
            return False
        if instruction.opcode == "reduce":
            return is_long(instruction)
        return instruction.opcode in MAKERS and is_own_kernel(instruction)

    def _elementwise(self, outputs: Sequence[Instruction]) -> Kernel:
        root = outputs[0]
        if len(outputs) == 1 and root.opcode == "dynamic-update-slice":
            inputs = self._inputs(root.operands[1:])
            if root.operands[0] in self._available and root.operands[0] not in inputs:
                return update(root, inputs)
        inputs = self._inputs(outputs)
        return transposition(outputs, inputs) or loop(outputs, inputs)

    def _needed(
        self, roots: Iterable[Instruction], available: Mapping[Instruction, None] | None = None
    ) -> list[Instruction]:
        """What computes the roots from what is available, operands first; ends at values in memory."""
        available = self._available if available is None else available
        order: dict[Instruction, None] = {}
        pending = [(root, False) for root in roots]
        while pending:
            instruction, is_left = pending.pop()
            if is_left:
                order[instruction] = None
            elif instruction not in order:
                pending.append((instruction, True))
                if not self._in_memory(instruction, available):
                    pending += [(operand, False) for operand in instruction.operands]
        return list(order)

    def _in_memory(
        self, instruction: Instruction, available: Mapping[Instruction, None] | None = None
    ) -> bool:
        """Whether a kernel reads it from a buffer; constants that are arrays have one, too."""
        is_constant = instruction.opcode == "constant" and array_shape(instruction).rank > 0
        return is_constant or instruction in (self._available if available is None else available)

    def _inputs(self, roots: Iterable[Instruction]) -> list[Instruction]:
        return [i for i in self._needed(roots) if self._in_memory(i)]

    def _takers(self, reduced: Instruction, order: Iterable[Instruction]) -> dict[int, Instruction]:
        """What takes out the results of an instruction, by number."""
        takers = [i for i in order if i.operands[:1] == (reduced,) and i.opcode == "get-tuple-element"]
        return {i.integer("index"): i for i in takers}

    def _groups(self, order: Sequence[Instruction]) -> list[_Group]:
        """Long reductions; those of equal geometry together, unless one needs what the other computes."""
        groups: list[_Group] = []
        depth: dict[Instruction, int] = {}
        for instruction in order:
            operands = () if self._in_memory(instruction) else instruction.operands
            depth[instruction] = max((depth[o] for o in operands), default=0)
            if not self._is_group_member(instruction):
                continue
            if instruction.opcode != "reduce":
                groups.append(_Group(None, [instruction]))
                depth[instruction] = len(groups)
                continue
            shape = geometry(instruction)
            first = depth[instruction]
            alike = (n for n in range(first, len(groups)) if groups[n].geometry == shape)
            joined = next((n for n in alike if _are_joined(groups[n].members[0], instruction)), len(groups))
            if joined == len(groups):
                groups.append(_Group(shape))
            groups[joined].members.append(instruction)
            depth[instruction] = joined + 1
        return groups
