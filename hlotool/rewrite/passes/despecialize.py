"""What makes an optimised program run anywhere again: no schedule, no control edges, no starts and dones, no
layouts; or only some of its instructions. XLA: despecializer.cc, hlo_extractor.cc.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from msgspec import structs

from hlotool.errors import UsageError
from hlotool.ir.arrays import Literal
from hlotool.ir.attributes import EntryLayout
from hlotool.ir.edit import Editor, editing, with_attributes
from hlotool.ir.edit_calls import cone, extract, insert_body
from hlotool.ir.module import Instruction, Module
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import ArrayShape, strip_layouts
from hlotool.ir.walk import async_start
from hlotool.rewrite.passes.base import Context, each_caller
from hlotool.system.user_input import did_you_mean

# The pipeline `despecialize` runs these passes and `defuse`. XLA: despecializer.cc.


@dataclass(frozen=True, slots=True)
class Deschedule:
    """Forget that the order of the instructions is a schedule."""

    name: ClassVar[str] = "deschedule"

    def run(self, module: Module, context: Context) -> None:
        """See `Pass.run`."""
        if module.is_scheduled and context.spend("schedule"):
            module.attributes = with_attributes(module.attributes, is_scheduled=None)


@dataclass(frozen=True, slots=True)
class DropControlDependencies:
    """Remove the control dependencies between instructions."""

    name: ClassVar[str] = "drop-control-dependencies"

    def run(self, module: Module, context: Context) -> None:
        """See `Pass.run`."""
        for instruction in module.instructions():
            if instruction.control_predecessors and context.spend("instruction"):
                instruction.control_predecessors = ()


#: The operation that a start and its done are together.
_TOGETHER = {done: done.removesuffix("-done") for done in opcodes_with(Trait.FINISHES) - {"async-done"}}
_STARTS = opcodes_with(Trait.STARTS) - {"async-start"}
#: Attributes that only the start of an operation has.
_OF_STARTS = {"cross_program_prefetch_index": None}


@dataclass(frozen=True, slots=True)
class Synchronize:
    """Turn asynchronous operations into synchronous ones: start and done become one instruction."""

    name: ClassVar[str] = "synchronize"

    def run(self, module: Module, context: Context) -> None:
        """See `Pass.run`."""
        for edit, done, names in each_caller(module, "async-done", *_TOGETHER):
            if done.opcode in _TOGETHER:
                if context.spend(_TOGETHER[done.opcode]):
                    _join(edit, done)
            elif context.spend("async call"):
                start = async_start(done)
                (body,) = set(start.called)
                result = insert_body(module, edit, body, start.operands, start, names)
                _put(edit, done, result)


def _join(edit: Editor, done: Instruction) -> None:
    start = done.operands[0]
    attributes = with_attributes(start.attributes, **_OF_STARTS)
    joined = Instruction(
        done.name, _TOGETHER[done.opcode], done.shape, start.operands, attributes, start.metadata
    )
    joined.control_predecessors = start.control_predecessors
    _put(edit, done, edit.add(joined, before=start))


def _put(edit: Editor, done: Instruction, result: Instruction) -> None:
    """Replace the whole chain that ends with `done`."""
    edit.replace_uses(done, result)
    chain = [done]
    while chain[-1].opcode not in ("async-start", *_STARTS):
        chain.append(chain[-1].operands[0])
    for link in chain:
        for following in edit.successors(link):
            edit.set_control_predecessors(following, (*following.control_predecessors, result))
        edit.remove(link)


# A `bitcast` says nothing without layouts: it becomes transposes and a reshape. XLA: layout_normalization.cc,
# ShapeUtil::DecomposeBitcast.


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
        value = steps.add("bitcast-convert", value, structs.replace(given, element_type=result.element_type))
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
    plain = all(layout is None or structs.replace(layout, memory_space=0).is_plain for layout in layouts)
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


@dataclass(frozen=True, slots=True)
class Extract:
    """Keep an instruction and what it needs; the rest of the program goes.

    Attributes:
        instruction: its name, or several of one computation joined by +.
        height: only so many steps back from it; what is further away becomes a parameter. -1 is no limit.
        computation: the name of the computation it is in, where several have one of that name.
    """

    name: ClassVar[str] = "extract"
    instruction: tuple[str, ...]
    height: int = -1
    computation: str = ""

    def run(self, module: Module, context: Context) -> None:
        """See `Pass.run`.

        Raises:
            UsageError: there is no such instruction, or there are several.
        """
        results = [self._find(module, name.removeprefix("%")) for name in self.instruction]
        if not context.spend("instruction"):
            return
        members = cone(results, height=self.height if self.height >= 0 else None)
        members = [m for m in members if m.opcode != "parameter"]
        try:
            cut = extract(module, members, results).module
        except ValueError as error:
            raise UsageError(f"extract: {error}") from error
        module.computations, module.entry, module.attributes = cut.computations, cut.entry, cut.attributes

    def _find(self, module: Module, name: str) -> Instruction:
        places = [c for c in module.computations if self.computation.removeprefix("%") in ("", c.name)]
        found = [(c, i) for c in places for i in c.instructions if i.name == name]
        if len(found) == 1:
            return found[0][1]
        if not found:
            known = (i.name for c in places for i in c.instructions)
            raise UsageError(f"extract: {module.name} has no instruction {name}{did_you_mean(name, known)}")
        where = ", ".join(c.name for c, _ in found)
        raise UsageError(f"extract: {name} is in several computations: say computation= one of {where}")
