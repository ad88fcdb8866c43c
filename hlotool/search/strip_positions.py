"""Programs without what only points elsewhere."""

from __future__ import annotations

from hlotool.ir.attributes import Metadata
from hlotool.ir.module import Instruction, Module


def remove_positions(module: Module) -> None:
    """Drop tables of source positions, which are longer than a small program; names of operations stay."""
    for instruction in module.instructions():
        _strip(instruction)
    module.stack_frames = None


def _strip(instruction: Instruction) -> None:
    if instruction.metadata is not None:
        name = instruction.metadata.op_name
        instruction.metadata = Metadata(op_name=name) if name else None
