"""What makes an optimised program run anywhere again: no schedule, no control edges, no starts and dones.

The pipeline `despecialize` runs these passes and `defuse`. XLA: despecializer.cc.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hlotool.ir.edit import Editor, with_attributes
from hlotool.ir.edit_calls import insert_body
from hlotool.ir.module import Instruction, Module
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.walk import async_start
from hlotool.passes.base import Context, each_caller


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
