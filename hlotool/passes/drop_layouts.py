"""Programs without layouts: what is left after layout assignment becomes logical again.

A `bitcast` says nothing without layouts: it becomes transposes and a reshape. XLA: layout_normalization.cc,
ShapeUtil::DecomposeBitcast.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from hlotool.ir.attributes import EntryLayout
from hlotool.ir.edit import Editor, editing, with_attributes
from hlotool.ir.literal import Literal
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ArrayShape, strip_layouts
from hlotool.passes.base import Context


@dataclass(frozen=True, slots=True)
class DropLayouts:
    """Remove all layouts but those of custom calls, and express bitcasts by transposes and reshapes."""

    name: ClassVar[str] = "drop-layouts"

    def run(self, module: Module, context: Context) -> None:
        """See `Pass.run`.

        Raises:
            Unsupported: a bitcast that changes the width of its elements or reads padding.
        """
        for computation in module.computations:
            with editing(computation) as edit:
                for instruction in edit:
                    if instruction.opcode == "bitcast" and context.spend("bitcast"):
                        edit.replace(instruction, _decompose(module, edit, instruction))
        # Without fuel some bitcasts are left, and they need the layouts.
        if not any(i.opcode == "bitcast" for i in module.instructions()):
            _strip(module, context)


def _strip(module: Module, context: Context) -> None:
    for instruction in module.instructions():
        bare = strip_layouts(instruction.shape)
        if instruction.opcode != "custom-call" and bare != instruction.shape and context.spend("layout"):
            instruction.shape = bare
            if instruction.literal is not None:
                instruction.literal = _bare_literal(instruction.literal)
    layout = module.attribute("entry_computation_layout", EntryLayout, None)
    if layout is not None:
        bare_entry = EntryLayout(tuple(map(strip_layouts, layout.parameters)), strip_layouts(layout.result))
        if bare_entry != layout and context.spend("entry layout"):
            module.attributes = with_attributes(module.attributes, entry_computation_layout=bare_entry)


def _bare_literal(literal: Literal) -> Literal:
    value = literal.value
    if isinstance(value, tuple):
        value = tuple(map(_bare_literal, value))
    return replace(literal, shape=strip_layouts(literal.shape), value=value)


def _decompose(module: Module, edit: Editor, bitcast: Instruction) -> Instruction:
    """Elements in the order of memory, in the new dimensions, in logical order again."""
    (source,), result = bitcast.operands, bitcast.shape
    given = source.shape
    if not (isinstance(given, ArrayShape) and isinstance(result, ArrayShape)) or not _is_simple(
        given, result
    ):
        raise module.unsupported(bitcast, f"bitcast from {given} to {result} has no logical form")
    steps = _Steps(edit, bitcast)
    value = source
    if given.element_type is not result.element_type:
        value = steps.add("bitcast-convert", value, replace(given, element_type=result.element_type))
    order = given.minor_to_major[::-1]
    value = steps.transpose(value, order)
    back = result.minor_to_major[::-1]
    memory = ArrayShape(result.element_type, tuple(result.dims[d] for d in back))
    if value.dims != memory.dims:
        value = steps.add("reshape", value, memory)
    value = steps.transpose(value, tuple(back.index(d) for d in range(len(back))))
    return value if value is not source else steps.add("copy", value, result)


def _is_simple(given: ArrayShape, result: ArrayShape) -> bool:
    layouts = (given.layout, result.layout)
    plain = all(layout is None or replace(layout, memory_space=0).is_plain for layout in layouts)
    return plain and given.element_type.bits == result.element_type.bits and given.size == result.size


@dataclass(frozen=True, slots=True)
class _Steps:
    """Adds instructions in front of a bitcast."""

    edit: Editor
    bitcast: Instruction

    def add(self, opcode: str, operand: Instruction, shape: ArrayShape) -> Instruction:
        """An instruction without attributes; the layout stays absent, which means row-major."""
        made = Instruction(self.bitcast.name, opcode, shape.without_layout(), (operand,))
        return self.edit.add(made, before=self.bitcast)

    def transpose(self, operand: Instruction, order: tuple[int, ...]) -> Instruction:
        """Dimension i of the result is dimension `order[i]` of the operand."""
        if order == tuple(range(len(order))):
            return operand
        shape = ArrayShape(operand.element_type, tuple(operand.dims[d] for d in order))
        made = self.add("transpose", operand, shape)
        made.attributes = {"dimensions": order}
        return made
