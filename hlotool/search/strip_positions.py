"""Programs without what only points elsewhere."""

from __future__ import annotations

from hlotool.ir.attributes import Metadata
from hlotool.ir.edit_clone import clone_module
from hlotool.ir.module import Instruction, Module


def remove_positions(module: Module) -> None:
    """Drop tables of source positions, which are longer than a small program; names of operations stay."""
    for instruction in module.instructions():
        _strip(instruction)
    module.stack_frames = None


def without_positions(module: Module) -> Module:
    """A copy without positions; see `remove_positions`."""
    copy = clone_module(module).module
    remove_positions(copy)
    return copy


def _strip(instruction: Instruction) -> None:
    if instruction.metadata is not None:
        name = instruction.metadata.op_name
        instruction.metadata = Metadata(op_name=name) if name else None
