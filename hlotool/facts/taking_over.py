"""Which operands a result may be written over, as XLA's buffer assignment decides it.

Elementwise operations may write where an operand of the same size lies, and what updates an operand where
that lies. A fusion may where the operand is read only element by element on its way to the result.

XLA: hlo_dataflow_analysis.cc (CanShareOperandBufferWithUser), gpu_alias_info.cc.
"""

from __future__ import annotations

from collections.abc import Sequence

from hlotool.ir.attributes import OperandAlias
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.opcodes import Class
from hlotool.ir.types import ShapeIndex, TupleShape, strip_layouts
from hlotool.ir.walk import users

#: Update their first operand.
_UPDATES = frozenset({"dynamic-update-slice", "scatter"})
#: Part of the result by part of the operands.
_PARTS = frozenset({"tuple", "sort"})
#: Within a fusion that has other results, too: they read what is not yet overwritten.
_READS = frozenset({"reduce", "reduce-window"})


def is_update(instruction: Instruction) -> bool:
    """Whether it always writes where its operand lies; copies are made where that may not be."""
    inner = next(instruction.called).root if instruction.opcode == "fusion" else instruction
    return inner.opcode in _UPDATES


class TakingOver:
    """What is known of the fusions of a program, each looked at once.

    Args:
        is_lenient: as XLA:GPU, which looks through bitcasts and at sizes instead of shapes.
    """

    def __init__(self, is_lenient: bool) -> None:
        self._is_lenient = is_lenient
        self._known: dict[tuple[Computation, int], frozenset[ShapeIndex]] = {}

    def may(self, instruction: Instruction, number: int, index: ShapeIndex) -> bool:
        """Whether a part of the result may lie where the operand of this number lies; both have one size."""
        opcode, shape = instruction.opcode, instruction.shape
        is_alike = isinstance(shape, TupleShape) or strip_layouts(instruction.operands[number].shape) == (
            strip_layouts(shape)
        )
        if not (is_alike or self._is_lenient):
            return False
        if opcode == "fusion":
            callee = next(instruction.called)
            key = (callee, number)
            if key not in self._known:
                self._known[key] = frozenset(self._reached(callee, callee.parameters[number]))
            return index in self._known[key]
        if opcode in _UPDATES:
            return number == 0
        if opcode == "sort":
            return index in ((), (number,))
        if opcode == "custom-call":
            aliases: Sequence[OperandAlias] = instruction.listed(
                "output_to_operand_aliasing", OperandAlias, ()
            )
            return any((a.operand, a.output_index) == (number, index) for a in aliases)
        return instruction.row.opcode_class is Class.ELEMENTWISE

    def _reached(self, fused: Computation, parameter: Instruction) -> set[ShapeIndex]:
        """The results that may be written over a parameter."""
        readers = users(fused)
        has_several = isinstance(fused.root.shape, TupleShape)
        found: set[ShapeIndex] = set()
        seen, pending = {parameter}, [parameter]
        while pending:
            one = pending.pop()
            if one is fused.root:
                found.add(())
            for reader in readers[one]:
                if reader is fused.root and reader.opcode in _PARTS:
                    found |= {(n,) for n, operand in enumerate(reader.operands) if operand is one}
                elif self._keeps_places(reader, one):
                    if reader not in seen:
                        seen.add(reader)
                        pending.append(reader)
                elif not has_several or not self._is_lenient or reader.opcode not in _READS:
                    return set()
        return found

    def _keeps_places(self, reader: Instruction, read: Instruction) -> bool:
        if reader.opcode in _UPDATES:
            return reader.operands[0] is read and reader.operands.count(read) == 1
        if reader.opcode == "bitcast":
            return self._is_lenient
        return reader.row.opcode_class is Class.ELEMENTWISE
