"""Scheduled programs in which something is overwritten that is still needed.

Past copy insertion an operation that works in place writes where its operand lies: a dynamic-update-slice or
a scatter, a fusion that ends with one of its parameter, a loop, for what its body changes of its state, and a
custom call, for what it says that it aliases. Whoever reads the operand later reads what was written. An
interpreter computes values and never sees it.

XLA: hlo_dataflow_analysis.cc (GetInPlaceInputOutputPairs), copy_insertion.cc.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hlotool.analysis.memory import parameter_aliases
from hlotool.analysis.views import handed_on
from hlotool.ir.attributes import OperandAlias
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.types import ArrayShape, ShapeIndex, leaves
from hlotool.ir.walk import Context, contexts

_UPDATES = frozenset({"dynamic-update-slice", "scatter"})


@dataclass(frozen=True, slots=True)
class MissingCopy:
    """A value that is overwritten and needed.

    Attributes:
        writer: works in place.
        value: what made the value that it overwrites.
        reader: reads it all the same, later; the writer itself where it overwrites the value twice; None
            where the value is a constant, or an argument that the caller keeps.
    """

    writer: Instruction
    value: Instruction
    reader: Instruction | None

    def __str__(self) -> str:
        if self.reader is None:
            kept = "a constant" if self.value.opcode == "constant" else "an argument that is not donated"
        elif self.reader is self.writer:
            kept = "which it has twice"
        else:
            kept = f"which {self.reader.opcode} %{self.reader.name} reads later"
        writer = f"{self.writer.opcode} %{self.writer.name}"
        return f"{writer} overwrites %{self.value.name}, {kept}: a copy is missing"


@dataclass(eq=False, slots=True)
class _Buffer:
    """What lies at one place, until something is written there."""

    made_by: Instruction
    is_kept: bool = False
    written_by: Instruction | None = None


def missing_copies(module: Module) -> Iterator[MissingCopy]:
    """The values of a scheduled program that are overwritten and needed; nothing of other programs."""
    if not module.is_scheduled:
        return
    donated = {(alias.parameter, alias.parameter_index) for alias in parameter_aliases(module)}
    for computation, found in contexts(module).items():
        if Context.CONTROL_FLOW in found:
            yield from _in_sequence(computation, donated if computation is module.entry else None)


def _in_sequence(
    computation: Computation, donated: Collection[tuple[int, ShapeIndex]] | None
) -> Iterator[MissingCopy]:
    """Those of one computation, whose instructions run in the order of the text.

    Args:
        computation: in question.
        donated: of the entry, the parts of arguments that may be overwritten; None elsewhere: what a caller
            hands on is judged there.
    """
    values: dict[Instruction, list[_Buffer]] = {}
    for instruction in computation.instructions:
        handed = handed_on(instruction, values)
        changed = _written(instruction)
        if not handed or changed:
            yield from _read(instruction, values)
        for place in changed.values():
            buffer = _at(place, values)
            if buffer.is_kept:
                yield MissingCopy(instruction, buffer.made_by, None)
            elif buffer.written_by is None:
                buffer.written_by = instruction
                # An update of an array with itself changes nothing.
                if instruction.opcode not in _UPDATES and _times(buffer, instruction, values) > 1:
                    yield MissingCopy(instruction, buffer.made_by, instruction)
        values[instruction] = [
            _Buffer(instruction, _is_kept(instruction, index, donated))
            if index in changed or index not in handed
            else handed[index]
            for index, _ in leaves(instruction.shape)
        ]
    for buffer in values[computation.root]:
        if buffer.written_by is not None:
            yield MissingCopy(buffer.written_by, buffer.made_by, computation.root)


def _is_kept(
    made_by: Instruction, index: ShapeIndex, donated: Collection[tuple[int, ShapeIndex]] | None
) -> bool:
    """Whether nothing may be written there."""
    if made_by.opcode == "parameter" and donated is not None:
        return (made_by.parameter_number or 0, index) not in donated
    return made_by.opcode == "constant"


def _read(reader: Instruction, values: Mapping[Instruction, Sequence[_Buffer]]) -> Iterator[MissingCopy]:
    seen = {id(b): b for operand in reader.operands for b in values[operand] if b.written_by is not None}
    for buffer in seen.values():
        assert buffer.written_by is not None
        yield MissingCopy(buffer.written_by, buffer.made_by, reader)


def _times(buffer: _Buffer, reader: Instruction, values: Mapping[Instruction, Sequence[_Buffer]]) -> int:
    return sum(other is buffer for operand in reader.operands for other in values[operand])


#: An operand, and the leaf of it.
_Place = tuple[Instruction, ShapeIndex]


def _at(place: _Place, values: Mapping[Instruction, Sequence[_Buffer]]) -> _Buffer:
    operand, index = place
    return next(b for (at, _), b in zip(leaves(operand.shape), values[operand]) if at == index)


def _written(instruction: Instruction) -> dict[ShapeIndex, _Place]:
    """By leaf of the result what an operation overwrites."""
    if instruction.opcode in _UPDATES and isinstance(instruction.shape, ArrayShape):
        return {(): (instruction.operands[0], ())}
    if instruction.opcode == "fusion":
        return dict(_written_by_fusion(instruction))
    if instruction.opcode == "while":
        return {index: (instruction.operands[0], index) for index in _changed_state(instruction)}
    if instruction.opcode == "custom-call":
        aliases = instruction.listed("output_to_operand_aliasing", OperandAlias, ())
        return {a.output_index: (instruction.operands[a.operand], a.operand_index) for a in aliases}
    return {}


def _written_by_fusion(fusion: Instruction) -> Iterator[tuple[ShapeIndex, _Place]]:
    """The results that are updates of a parameter, and the operand that they overwrite.

    XLA: hlo_dataflow_analysis.cc (GetFusionInstructionInPlaceInputOutputPairs).
    """
    root = next(fusion.called).root
    results = enumerate(root.operands) if root.opcode == "tuple" else [(None, root)]
    for number, result in results:
        if result.opcode in _UPDATES and isinstance(result.shape, ArrayShape):
            source = result.operands[0]
            source = source.operands[0] if source.opcode == "bitcast" else source
            if source.opcode == "parameter" and isinstance(source.shape, ArrayShape):
                operand = fusion.operands[source.parameter_number or 0]
                yield (() if number is None else (number,)), (operand, ())


def _changed_state(loop: Instruction) -> Iterator[ShapeIndex]:
    """The arrays of a loop's state that its body does not hand on as they are."""
    body = loop.computation("body")
    [parameter] = body.parameters
    values: dict[Instruction, list[object]] = {}
    for instruction in body.instructions:
        handed = handed_on(instruction, values)
        places = (index for index, _ in leaves(instruction.shape))
        if instruction is parameter:
            values[instruction] = list(places)
        else:
            values[instruction] = [handed.get(index) for index in places]
    for (index, shape), value in zip(leaves(loop.shape), values[body.root]):
        if value != index and isinstance(shape, ArrayShape):
            yield index
